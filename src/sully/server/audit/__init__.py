"""The audit log.

Owns: who wrote what, who was refused what, and the events of audit.k8s.io/v1 it is written in.
Never: decides about a request.
Start at: log.py (what is recorded, and where), then events.py (the shape).
"""
