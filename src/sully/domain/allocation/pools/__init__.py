"""Pools of devices: what a node sees of them, and what is left in them.

Owns: which slices are current and for which nodes.
Never: allocates.
Start at: `node_pools.py`.
"""
