"""Taints of managed clusters: since when, by whom, and what policies recorded about them.

Owns: `timeAdded`, and the annotations in which Sully keeps what the API of OCM has no field for.
Never: decides which taints a cluster has; controllers do.
Start at: times.py, then history.py.
"""
