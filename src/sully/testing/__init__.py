"""Helpers for tests, shipped so that users can test what they build on Sully.

Owns: the fake clock, control planes and commands for tests, and objects to test with.
Never: is imported by anything that runs in production.
Start at: `clock.py`.
"""
