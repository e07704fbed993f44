"""The conditions of a placement, with the reasons and messages of OCM."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from sully.domain.placement.results.status import Status
from sully.machinery.meta import Condition

MISCONFIGURED = "PlacementMisconfigured"
SATISFIED = "PlacementSatisfied"
REMOVALS_DELAYED = "sully.dev/RemovalsDelayed"
"""Lists the clusters that would be removed from a placement if there were budget."""


class PlacementCondition(msgspec.Struct, frozen=True):
    """A condition without its time, which depends on the previous one."""

    type: str
    status: str
    reason: str
    message: str


class Tally(msgspec.Struct, frozen=True):
    """The numbers of a pass: sets it may use, clusters in them, clusters selected."""

    cluster_sets: Sequence[str]
    bound: int
    """How many bindings lead to a set."""
    eligible: Sequence[str]
    available: int
    selected: int
    unscheduled: int


def misconfigured(status: Status) -> PlacementCondition:
    """Report whether the placement can be acted on as it is written."""
    if status.code == "Misconfigured":
        text = f"{status.plugin}:{status.message}"
        return PlacementCondition(MISCONFIGURED, "True", "Misconfigured", text)
    text = "Placement configurations check pass"
    return PlacementCondition(MISCONFIGURED, "False", "Succeedconfigured", text)


def satisfied(tally: Tally, status: Status) -> PlacementCondition:
    """Report whether the placement has all requested clusters, and if not, why."""
    reason, message = _obstacle(tally, status)
    if reason:
        return PlacementCondition(SATISFIED, "False", reason, message)
    return PlacementCondition(
        SATISFIED, "True", "AllDecisionsScheduled", "All cluster decisions scheduled"
    )


def _obstacle(tally: Tally, status: Status) -> tuple[str, str]:
    if not tally.bound:
        text = "No valid ManagedClusterSetBindings found in placement namespace"
        return "NoManagedClusterSetBindings", text
    if not tally.eligible:
        sets = ",".join(tally.cluster_sets)
        text = f"None of ManagedClusterSets [{sets}] is bound to placement namespace"
        return "NoIntersection", text
    if not tally.available:
        sets = ",".join(tally.eligible)
        text = f"All ManagedClusterSets [{sets}] have no member ManagedCluster"
        return "AllManagedClusterSetsEmpty", text
    if status.code == "Error":
        return "NotAllDecisionsScheduled", status.message
    if not tally.selected:
        # Also when taints, not predicates, removed them all: the wording is OCM's.
        text = "No ManagedCluster matches any of the cluster predicate"
        return "NoManagedClusterMatched", text
    if tally.unscheduled:
        return "NotAllDecisionsScheduled", f"{tally.unscheduled} cluster decisions unscheduled"
    return "", ""


def merge_conditions(
    old: Sequence[Condition], findings: Sequence[PlacementCondition], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with the findings; a time moves only when a status does."""
    by_type = {condition.type: condition for condition in old}
    for finding in findings:
        before = by_type.get(finding.type)
        moved = before is None or before.status != finding.status
        since = now if moved or before is None else before.last_transition_time
        by_type[finding.type] = Condition(
            type=finding.type,
            status=finding.status,
            last_transition_time=since,
            reason=finding.reason,
            message=finding.message,
            observed_generation=before.observed_generation if before is not None else 0,
        )
    return tuple(by_type.values())
