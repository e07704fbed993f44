"""Helpers for tests, shipped so that users can test what they build on Sully.

Owns: the fake clock and the other stand-ins for what a test must control.
Never: is imported by anything that runs in production.
Start at: `clock.py`.
"""
