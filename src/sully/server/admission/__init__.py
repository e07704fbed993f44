"""Admission: checks of a write that need other objects or the user.

Owns: node restriction, permissions on parts of claims and clusters, devices allocated once, quotas,
the record of rule changes, ValidatingAdmissionPolicies, expressions compiled before validation.
Never: checks what a kind's Strategy can check alone.
Start at: plugins.py (the interface), then devices.py; policies.py for ValidatingAdmissionPolicies.
"""
