"""When a pod is evicted, how fast, and what is recorded.

Owns: the verdict per pod, evictions per second, rule status, previews and eviction records.
Never: writes, waits or reads a clock.
Start at: judge.py (the verdict), then rates.py.
"""
