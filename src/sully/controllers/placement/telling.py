"""Events about decisions; what they say is in domain/placement/notes.py."""

from __future__ import annotations

from typing import Literal

from sully.api.cluster.types import Placement, PlacementDecision
from sully.client.events import EventRecorder, Reference, reference
from sully.domain.placement.fleet import key_of
from sully.domain.placement.notes import Verb, decision_note
from sully.domain.placement.status import SUCCESS, Status
from sully.views.fleet_kinds import DECISIONS, PLACEMENTS


class Teller:
    """Says what was done about the decisions of placements."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def created(self, placement: Placement, decision: PlacementDecision) -> None:
        """Tell of a new decision."""
        text = _note("created", placement, decision)
        self._tell(placement, decision, "Normal", "DecisionCreate", text)

    def deleted(self, placement: Placement, decision: PlacementDecision) -> None:
        """Tell of a decision that is gone."""
        text = _note("deleted", placement, decision)
        self._tell(placement, decision, "Normal", "DecisionDelete", text)

    def updated(
        self, placement: Placement, decision: PlacementDecision, status: Status, scores: str
    ) -> None:
        """Tell that a decision names other clusters, and what all of them score."""
        text = _note("updated", placement, decision, status)
        type_: Literal["Normal", "Warning"] = "Warning" if status.code == "Warning" else "Normal"
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


def _note(
    verb: Verb, placement: Placement, decision: PlacementDecision, status: Status = SUCCESS
) -> str:
    return decision_note(verb, decision.metadata.name, key_of(placement), status)
