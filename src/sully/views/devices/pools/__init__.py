"""Pools of devices, and which of them an event affects.

Owns: a pool with its slices and taints, the pools of a node, and the pools to evaluate again.
Never: merges patches or rules into a device; merging.py does.
Start at: pool.py.
"""
