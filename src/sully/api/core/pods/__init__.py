"""Pods: the kind with the most rules.

Owns: defaults, admission, validation, updates, status, binding and columns of pods.
Never: decides where a pod goes or when it must leave.
Start at: strategy.py, which calls the others in the order of a write.
"""

from sully.api.core.pods.binding import bind_pod, check_binding
from sully.api.core.pods.conditions import condition_of, is_ready, with_condition
from sully.api.core.pods.strategy import PODS, deletion_grace

__all__ = [
    "PODS",
    "bind_pod",
    "check_binding",
    "condition_of",
    "deletion_grace",
    "is_ready",
    "with_condition",
]
