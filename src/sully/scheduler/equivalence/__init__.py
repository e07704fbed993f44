"""Equivalence classes of pods, and what is cached for each.

Owns: which pods are alike to the scheduler, and which nodes do not fit a class.
Never: decides about a pod: that is `schedule_algorithm.py`.
Start at: `classes.py`.
"""
