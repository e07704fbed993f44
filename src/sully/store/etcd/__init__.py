"""The store on etcd, shared by several processes.

Owns: etcd's wire messages, a client that moves between members, and the store on top of it.
Never: judges a write alone; what counts is etcd's comparison, and what its watch then delivers.
Start at: `store.py`, then `follower.py` (how this process learns what happened).
"""
