"""Events about decisions, in the words that users of Open Cluster Management know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sully.api.cluster.placement_types import Placement, PlacementDecision
from sully.client.events import EventRecorder, Reference, reference
from sully.domain.placement.status import Status
from sully.views.fleetkinds import DECISIONS, PLACEMENTS

_LONGEST = 1000
"""Of a list of scores; events refuse much longer notes."""


class Teller:
    """Says what was done about the decisions of placements."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def created(self, placement: Placement, decision: PlacementDecision) -> None:
        """Tell of a new decision."""
        self._tell(placement, decision, "Normal", "DecisionCreate", _sentence("created", decision))

    def deleted(self, placement: Placement, decision: PlacementDecision) -> None:
        """Tell of a decision that is gone."""
        self._tell(placement, decision, "Normal", "DecisionDelete", _sentence("deleted", decision))

    def updated(
        self, placement: Placement, decision: PlacementDecision, status: Status, scores: str
    ) -> None:
        """Tell that a decision names other clusters, and what all of them score."""
        text = _sentence("updated", decision)
        warns = status.code == "Warning"
        if warns:
            text = f"{text}: {status.message} in plugin {status.plugin}"
        type_: Literal["Normal", "Warning"] = "Warning" if warns else "Normal"
        self._tell(placement, decision, type_, "DecisionUpdate", text)
        if scores:
            self._tell(placement, decision, "Normal", "ScoreUpdate", scores)

    def _tell(
        self,
        placement: Placement,
        decision: PlacementDecision,
        type_: Literal["Normal", "Warning"],
        reason: str,
        text: str,
    ) -> None:
        about, related = reference(PLACEMENTS, placement), reference(DECISIONS, decision)
        self._recorder.event(
            about, type_, reason, text, action=f"{reason}d", related=_unversioned(related)
        )


def _unversioned(related: Reference) -> Reference:
    return Reference(related.api_version, related.kind, related.key, related.uid)


def _sentence(done: str, decision: PlacementDecision) -> str:
    metadata = decision.metadata
    placement = metadata.name.rpartition("-decision-")[0]
    return (
        f"Decision {metadata.name} is {done} with placement {placement}"
        f" in namespace {metadata.namespace}"
    )


def score_note(totals: Iterable[tuple[str, int]]) -> str:
    """Write the scores of clusters, given in order of name, as far as there is room."""
    parts: list[str] = []
    length = 0
    for name, total in totals:
        part = f"{name}:{total} "
        length += len(part)
        if length > _LONGEST:
            parts.append("......")
            break
        parts.append(part)
    return "".join(parts)
