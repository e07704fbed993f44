"""The store: one log of revisions, current state in memory, watchers as cursors into the log.

Owns: keys, revisions, atomic commits, snapshots, watch cursors, history and its compaction.
Never: looks inside a value; JSON, kinds and HTTP are the server's business.
Start at: `base.py` (the contract), then `state.py` and `sqlite/`.
"""
