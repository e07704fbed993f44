"""Trials: what the scheduler would do with a pod now, and if something were different.

Owns: a copy of the scheduler filled from a snapshot, and the search for the smallest change.
Never: decides on devices or nodes itself; the scheduler's own algorithm does.
Start at: `search.py`.
"""
