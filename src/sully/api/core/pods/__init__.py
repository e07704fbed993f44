"""Pods: the kind with the most rules.

Owns: defaults, admission, validation, updates, status, binding and columns of pods.
Never: decides where a pod goes or when it must leave.
Start at: strategy.py, which calls the others in the order of a write.
"""
