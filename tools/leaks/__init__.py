"""A control plane through which many pods go: what it still holds when all of them are deleted.

Owns: the load, the samples, and what counts as a leak.
Never: kills anything; `crashes` does.
Start at: rounds.py.
"""
