"""The events of placements, with the texts of OCM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sully.domain.placement.incremental.decision_counts import PlacementKey
from sully.domain.placement.results.status import Status

LONGEST = 1000
"""Characters of a list of scores, so that the note stays below what events may hold."""

Verb = Literal["created", "updated", "deleted"]


def decision_note(verb: Verb, decision: str, placement: PlacementKey, status: Status) -> str:
    """Return the event of a written PlacementDecision; an update has the warning of the pass."""
    namespace, name = placement
    note = f"Decision {decision} is {verb} with placement {name} in namespace {namespace}"
    if verb == "updated" and status.code == "Warning":
        return f"{note}: {status.message} in plugin {status.plugin}"
    return note


def score_note(totals: Mapping[str, int]) -> str:
    """List what all feasible clusters score, in order of name, as many as fit."""
    note = ""
    for name, total in sorted(totals.items()):
        entry = f"{name}:{total} "
        if len(note) + len(entry) > LONGEST:
            return note + "......"
        note += entry
    return note
