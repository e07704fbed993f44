"""What pure packages must not use: time, randomness, tasks, logs, metrics.

Owns: the clock, uids and suffixes, back-off, the work queue, log and metric set-up.
Never: knows a kind, a store or a protocol.
Start at: `clock.py`, then `workqueue.py`.
"""
