"""The decisions: values in, verdicts out.

Owns: what to do with objects: which taints count, who goes with whom, how many pods and which.
Never: reads a clock, a cache or a server; whoever asks brings the values and the time.
Start at: `taints.py` for devices, `placement/` for clusters, `ownership.py` for lives of objects.
"""
