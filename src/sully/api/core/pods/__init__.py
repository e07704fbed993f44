"""Pods: the kind with the most rules.

Owns: defaults, admission, validation, updates, status, binding and columns of pods.
Never: decides where a pod is scheduled or when it is evicted.
Start at: strategy.py, which calls the others in the order of a write.
"""
