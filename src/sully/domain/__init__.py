"""The decisions: values in, verdicts out.

Owns: taints and tolerations, eviction, scheduling, allocation, placement, workloads, quota.
Never: reads a clock, a cache or a server; the caller passes the values and the time.
Start at: `tolerations.py`, then `devices/taints.py` and `eviction/judge.py` for devices,
`placement/` for clusters.
"""
