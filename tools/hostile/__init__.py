"""Attacks a running server with more than any test does, and measures what others notice.

Owns: the target (identities, raw connections, measurements), the catalogue of hostile requests,
the loads of the long run.
Never: looks into the server; it knows what a client, /proc and the metrics show.
Start at: loads.py.
"""
