"""Attacks on a running `sully up`, over TLS, one file per attacker.

Start at tools/hostile/target.py: the server under attack, the attackers, what is measured of it.
Every line of docs/security.md names one of these tests.
"""
