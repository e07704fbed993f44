"""Commands that look and change nothing, and those that pause and resume an eviction.

Owns: the screens of `devices`, `evictions`, `history`, `explain` and `snapshot`.
Never: derives a reason; views and explain have them.
Start at: devices.py.
"""
