"""Which clusters a placement gets, and why the others not.

Owns: taints and tolerations of clusters, sets, predicates, scores, groups, conditions, what-if.
Never: reads a clock, a cache or a server; the time and every object are arguments.
Start at: `schedule.py` for one placement, `incremental/fleet.py` for many of them kept up to date.
"""
