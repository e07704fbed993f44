"""`sully maintenance`: create maintenances, and control them.

Owns the flags of the command, and the annotations and fields with which people decide.
Never closes or drains a device: the controller of maintenances does.
Start at maintenance.py.
"""
