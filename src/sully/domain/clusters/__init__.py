"""Managed clusters: health, policies and rights.

Owns: conditions and taints that follow from health, taint policies, what an agent may do on the
hub.
Never: writes, waits or reads a clock.
Start at: health.py, then policies.py.
"""
