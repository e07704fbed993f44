"""Owns what a pass over a placement results in: decision groups, status, events, reasons.

Never selects a cluster: `schedule.py` and `incremental/` do.
Start at `outcome.py`.
"""
