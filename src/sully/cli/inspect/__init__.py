"""Commands that show state, and those that pause and resume evictions.

Owns: the output of `devices`, `evictions`, `history`, `explain` and `snapshot`.
Never: derives a reason; views and explain have them.
Start at: devices/command.py.
"""
