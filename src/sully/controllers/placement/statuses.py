"""What is written into the status of a placement."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from sully.api.cluster.types import DecisionGroupStatus, Placement
from sully.controllers.conditions import written
from sully.domain.placement.conditions import SATISFIED, Finding
from sully.domain.placement.outcome import Outcome
from sully.domain.placement.reporting import status_after

Obj = dict[str, Any]


def status_patch(placement: Placement, outcome: Outcome, now: datetime) -> Obj | None:
    """Return the patch that brings a status up to date; None if it is."""
    told = status_after(placement, outcome, now)
    if told is None:
        return None
    metadata = placement.metadata
    return {
        "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
        "status": {
            "numberOfSelectedClusters": told.number_of_selected_clusters,
            "decisionGroups": [_group(each) for each in told.decision_groups],
            "conditions": [written(each) for each in told.conditions],
        },
    }


def failed(outcome: Outcome, text: str) -> Outcome:
    """Return what is told when decisions could not be written."""
    told = Finding(SATISFIED, "False", "NotAllDecisionsScheduled", text)
    return replace(outcome, conditions=(outcome.conditions[0], told))


def _group(group: DecisionGroupStatus) -> Obj:
    return {
        "decisionGroupIndex": group.decision_group_index,
        "decisionGroupName": group.decision_group_name,
        "decisions": list(group.decisions),
        "clusterCount": group.cluster_count,
    }
