"""The audit log.

Owns: audit events (audit.k8s.io/v1) and the files they are written to.
Never: decides about requests.
Start at: log.py (what is recorded, and where), then events.py (the shape).
"""
