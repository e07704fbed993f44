"""Kills a control plane at random moments and checks that acknowledged writes are durable.

Owns: the load, the journal of what was sent and acknowledged, and the checks after a restart.
Never: reads the data directory, only what a client can read.
Start at: rounds.py.
"""
