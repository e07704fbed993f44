"""Kinds that only `explain` reads, or reads as more than the scheduler needs of them."""

from __future__ import annotations

from typing import Any

from sully.client.transport import Kind
from sully.domain.planning.objects import PlannedPod
from sully.domain.workloads.workloads import Budget
from sully.views.kinds import CLASSES, SLICES
from sully.views.snapshot.kinds import (
    CONSTRAINT_KINDS,
    HISTORY,
    NODES,
    SCHEDULABLE_PODS,
    SCHEDULING,
)

LABELED_PODS: Kind[PlannedPod] = Kind("", "v1", "pods", "Pod", PlannedPod)
"""Pods with their labels, by which budgets select them."""
BUDGETS: Kind[Budget] = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Budget)

DEVICE_KINDS: tuple[Kind[Any], ...] = (
    *(kind for kind in SCHEDULING if kind is not SCHEDULABLE_PODS),
    LABELED_PODS,
    *CONSTRAINT_KINDS,
    *HISTORY,
    BUDGETS,
)
"""All about devices, and about what uses, requests or held them."""
EXPECTED_KINDS: tuple[Kind[Any], ...] = (SLICES, CLASSES, NODES)
"""What every cluster has, so a file without it is incomplete."""
