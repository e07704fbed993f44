"""Planned work on devices: when a device is closed, drained, worked on, proven and given back.

Owns the state machine of a DeviceMaintenance: observations in, states of units out, with reasons.
Never does I/O, reads the time or evicts; the drain is `domain/drain`, and
controllers/devicemaintenances executes the decisions.
Start at decisions.py, then steps.py.
"""
