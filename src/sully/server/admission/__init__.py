"""Checks of a write that need other objects or the user.

Owns: devices allocated once, quotas, the record of rule changes, expressions compiled before
validation.
Never: checks what a kind's Strategy can check alone.
Start at: guards.py (for every kind), then devices.py (no device twice).
"""
