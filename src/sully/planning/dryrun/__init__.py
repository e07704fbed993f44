"""What a change would store: the objects before and after it.

Owns: dry runs, on the server or on one in memory.
Never: writes anything.
Start at: `dry_run.py`.
"""
