"""Owns the hub's controllers of managed clusters: acceptance, leases, taints, cluster sets.

Never selects clusters for placements, and never reports a cluster as available: its agent does.
Start at acceptance.py, then leases.py and taints.py; wiring.py adds all to a manager.
"""
