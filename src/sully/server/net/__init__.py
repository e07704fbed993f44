"""Connections of the API server: TCP, TLS and HTTP framing.

Owns: listening, the state and deadlines of each connection, how many there may be, certificates and
their renewal.
Never: parses a request body, or knows what a verb is.
Start at: listen.py (accepts), then connection.py (one connection).
"""
