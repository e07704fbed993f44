"""What is written into the status of a placement, and whether it has to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sully.api.cluster.placement_types import DecisionGroupStatus, Placement
from sully.controllers.conditions import written
from sully.domain.placement.conditions import (
    LEAVES_HELD,
    MISCONFIGURED,
    SATISFIED,
    Finding,
    merge_conditions,
)
from sully.domain.placement.outcome import Outcome
from sully.domain.placement.status import Status

LONGEST_NAME = 63
"""Of a placement that can have decisions: they carry its name in a label."""
_TOLD = 10
"""How many clusters a message names at most."""

Obj = dict[str, Any]


def status_patch(placement: Placement, outcome: Outcome, now: datetime) -> Obj | None:
    """Return the patch that brings a status up to date; None if it is."""
    status = placement.status
    findings = [*outcome.conditions, *_held(placement, outcome)]
    conditions = merge_conditions(status.conditions, findings, now)
    news = (outcome.selected, outcome.groups, conditions)
    if news == (status.number_of_selected_clusters, status.decision_groups, status.conditions):
        return None
    metadata = placement.metadata
    return {
        "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
        "status": {
            "numberOfSelectedClusters": outcome.selected,
            "decisionGroups": [_group(each) for each in outcome.groups],
            "conditions": [written(each) for each in conditions],
        },
    }


def failed(outcome: Outcome, text: str) -> Outcome:
    """Return what is told when decisions could not be written."""
    told = Finding(SATISFIED, "False", "NotAllDecisionsScheduled", text)
    return replace(outcome, conditions=(outcome.conditions[0], told))


def unnameable() -> Outcome:
    """Return what is told of a placement whose name fits into no label."""
    text = f":the name must have at most {LONGEST_NAME} characters, for the label of decisions"
    found = (
        Finding(MISCONFIGURED, "True", "Misconfigured", text),
        Finding(SATISFIED, "False", "NotAllDecisionsScheduled", text[1:]),
    )
    return Outcome(0, 0, Status("Misconfigured", "", text[1:]), (), (), found)


def _held(placement: Placement, outcome: Outcome) -> Sequence[Finding]:
    if outcome.held:
        names = ", ".join(outcome.held[:_TOLD])
        more = len(outcome.held) - _TOLD
        text = f"Waiting for the leave budget: {names}" + (f" and {more} more" if more > 0 else "")
        return (Finding(LEAVES_HELD, "True", "LeaveBudget", text),)
    if any(each.type == LEAVES_HELD for each in placement.status.conditions):
        return (Finding(LEAVES_HELD, "False", "NoneHeld", "No cluster waits for the leave budget"),)
    return ()


def _group(group: DecisionGroupStatus) -> Obj:
    return {
        "decisionGroupIndex": group.decision_group_index,
        "decisionGroupName": group.decision_group_name,
        "decisions": list(group.decisions),
        "clusterCount": group.cluster_count,
    }
