"""Kinds that only questions read, or read as more than the scheduler needs of them."""

from __future__ import annotations

from typing import Any

from sully.client.transport import Kind
from sully.domain.planning.objects import PlannedPod
from sully.domain.workloads.workloads import Budget
from sully.views.kinds import CLASSES, SLICES
from sully.views.snapshot.kinds import HISTORY, NODES, SCHEDULABLE_PODS, SCHEDULING

SEEN_PODS: Kind[PlannedPod] = Kind("", "v1", "pods", "Pod", PlannedPod)
"""Pods with their labels, which say what budgets are about them."""
BUDGETS: Kind[Budget] = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Budget)

ABOUT_DEVICES: tuple[Kind[Any], ...] = (
    *(each for each in SCHEDULING if each is not SCHEDULABLE_PODS),
    SEEN_PODS,
    *HISTORY,
    BUDGETS,
)
"""What there is to know about devices, and about who uses, wants or had them."""
TOLD_IF_MISSING: tuple[Kind[Any], ...] = (SLICES, CLASSES, NODES)
"""What every cluster has that is worth a question, so a file without it lacks it."""
