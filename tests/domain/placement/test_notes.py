"""Texts of events (checklist C15)."""

from __future__ import annotations

import pytest

from sully.domain.placement.results.notes import Verb, decision_note, score_note
from sully.domain.placement.results.status import SUCCESS, Status

WARNING = Status("Warning", "AddOn/res/cpu", "AddOnPlacementScores b/res expired")
NOTES: dict[str, tuple[Verb, Status, str]] = {
    "created": (
        "created",
        WARNING,
        "Decision p-decision-1 is created with placement p in namespace ns",
    ),
    "deleted": (
        "deleted",
        WARNING,
        "Decision p-decision-1 is deleted with placement p in namespace ns",
    ),
    "updated": (
        "updated",
        SUCCESS,
        "Decision p-decision-1 is updated with placement p in namespace ns",
    ),
    "updated with a warning": (
        "updated",
        WARNING,
        "Decision p-decision-1 is updated with placement p in namespace ns: "
        "AddOnPlacementScores b/res expired in plugin AddOn/res/cpu",
    ),
}


@pytest.mark.parametrize(("verb", "status", "want"), NOTES.values(), ids=NOTES.keys())
def test_decision_note(verb: Verb, status: Status, want: str) -> None:
    assert decision_note(verb, "p-decision-1", ("ns", "p"), status) == want


def test_score_note() -> None:
    assert score_note({"b": -100, "a": 200}) == "a:200 b:-100 "
    assert score_note({}) == ""
    assert score_note({"c" * 995: 1000, "d": 1}) == "......"


@pytest.mark.parametrize(("number", "length", "cut"), [(50, 1000, False), (51, 1006, True)])
def test_score_note_that_is_too_long(number: int, length: int, cut: bool) -> None:
    """Entries of twenty characters: fifty fit exactly."""
    note = score_note({f"oc-group-203-{at:03d}": 32 for at in range(number)})

    assert (len(note), note.endswith("......")) == (length, cut)
