"""Attacks on a running `sully up`, over TLS, one file per attacker.

Start at target.py: the server under attack, who the attackers are, and what is measured of it.
Every line of docs/security.md names one of these tests.
"""
