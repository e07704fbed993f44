"""`sully cordon`, `sully drain` and `sully uncordon`.

Owns: their flags, the DeviceTaintRules of cordons, running a drain, and what it prints.
Never: decides which pod is evicted next; that is domain/drain.
Start at: drain.py.
"""
