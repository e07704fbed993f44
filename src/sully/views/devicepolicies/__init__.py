"""Devices as policies see them: what every source reports, kept up to date.

Owns the facts about devices that sources read, and which devices a policy selects.
Never decides what a policy does: that is `domain/devicepolicies`.
Start at policy_devices.py, then facts.py.
"""
