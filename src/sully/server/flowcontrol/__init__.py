"""Priority levels and limits on requests in progress.

Owns: which priority level a request belongs to, and how many seats each level and user has.
Never: reads a body or decides about rights.
Start at: priority.py (the levels), then limits.py (the seats).
"""
