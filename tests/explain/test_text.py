"""How times, numbers, names and sources read."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sully.explain.explanation import Explanation, Table, tables
from sully.explain.sources import Sources, author, program
from sully.explain.text import (
    as_sentence,
    enumerate_names,
    join,
    object_text,
    time_text,
)
from sully.testing.builders import patch, rule, slice_, tracked_meta
from sully.testing.clock import NOON


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "2030-01-01T12:00:00Z (0s ago)"),
        (-90, "2030-01-01T11:58:30Z (90s ago)"),
        (3600, "2030-01-01T13:00:00Z (in 60m)"),
        (0.5, "2030-01-01T12:00:00Z (0s ago)"),
    ],
)
def test_time(seconds: float, text: str) -> None:
    assert time_text(NOON + timedelta(seconds=seconds), NOON) == text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d", "e", "f"], "a, b, c, d and 2 more"),
    ],
)
def test_enumerate_names(names: list[str], text: str) -> None:
    assert enumerate_names(names) == text


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (join(["a", "b"], "or"), "a or b"),
        (object_text("DeviceTaintRule/fw"), "rule fw"),
        (object_text("Something/x"), "Something x"),
        (as_sentence("no end"), "no end."),
        (as_sentence("two\n lines!"), "two lines!"),
    ],
)
def test_words(got: str, want: str) -> None:
    assert got == want


def test_a_source_that_nobody_knows_has_at_least_its_name() -> None:
    assert Sources().of("DeviceTaintRule/gone").label == "rule gone"


def test_sources_know_their_authors() -> None:
    by = {"sully.dev/created-by": "alice", "sully.dev/description": "hot"}
    known = Sources([rule("r", annotations=by)], [patch("p")], [slice_("s")])

    by_alice, by_nobody = known.of("DeviceTaintRule/r"), known.of("ResourceSlicePatch/p")
    assert (by_alice.label, by_alice.by, by_alice.why) == ("rule r", "alice", "hot")
    assert (by_nobody.label, by_nobody.by) == ("patch p", "")
    assert known.of("ResourceSlice/s").driver == "gpu.example.com"


def test_who_writes_the_status_is_not_an_author() -> None:
    entry = {"manager": "kubelet", "subresource": "status", "fieldsV1": {"f:spec": {}}}

    assert program(tracked_meta("x", managed_fields=(entry, "nonsense")), "f:spec") == ""


def test_a_field_manager_is_a_program_and_no_author() -> None:
    entry = {"manager": "kubectl-create", "fieldsV1": {"f:spec": {}}}
    metadata = tracked_meta("x", managed_fields=(entry,))

    assert (author(metadata), program(metadata, "f:spec")) == ("", "kubectl-create")


def test_an_explanation_for_programs_has_every_part() -> None:
    explanation = Explanation(
        kind="Pod",
        namespace="team",
        name="p",
        state="Pending",
        cause="SchedulingGated",
        summary=("It waits.",),
        details=tables(
            Table("Empty", ("a",), ()), Table("Full", ("first", "second one"), (("1", "2"),))
        ),
    )

    assert explanation.title == "Pod team/p: Pending (SchedulingGated)"
    assert explanation.as_json() == {
        "kind": "Pod",
        "namespace": "team",
        "name": "p",
        "state": "Pending",
        "cause": "SchedulingGated",
        "because": [],
        "summary": ["It waits."],
        "remedies": [],
        "details": [{"title": "Full", "rows": [{"first": "1", "secondOne": "2"}]}],
        "notes": [],
    }
