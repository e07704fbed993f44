"""Kills a control plane at random moments and checks that it kept its word.

Owns: the load, the journal of what was sent and acknowledged, and the checks after a restart.
Never: looks into the data directory; it knows only what a client can see.
Start at: rounds.py.
"""
