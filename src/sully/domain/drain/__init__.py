"""Draining devices: which pod is evicted now, what is waited for, and when to stop.

Owns the drain core (events in, effects out) and the rules that cordon devices.
Never does I/O or reads the time; `cli/change/drain/runner.py` executes the effects.
Start at core.py.
"""
