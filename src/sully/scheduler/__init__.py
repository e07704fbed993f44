"""Owns the scheduling of pods as a state machine without I/O: events in, effects out.

Never waits, writes, logs or reads a clock; the caller passes the time and executes effects.
Start at core.py (one pod at a time), then schedule_algorithm.py (which node), then effects.py.
"""
