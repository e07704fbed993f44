"""Owns what a hub does for managed clusters: lets them in, watches over them, taints, counts sets.

Never chooses clusters for placements, and never says that a cluster is available: its agent does.
Start at acceptance.py, then leases.py and taints.py; wiring.py adds all to a manager.
"""
