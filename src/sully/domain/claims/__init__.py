"""ResourceClaims and the pods that reference them.

Owns: the life of a claim, reservations, and a pod as a user of devices.
Never: allocates (domain/allocation does), writes or waits.
Start at: lifecycle.py, then pods.py.
"""
