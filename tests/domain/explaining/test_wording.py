"""How times, numbers, names and sources read."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sully.domain.explaining.sources import Sources, author
from sully.domain.explaining.story import Explanation, Table, tables
from sully.domain.explaining.wording import ended, joined, listed, moment, noun, number
from sully.testing.builders import meta, patch, rule, slice_
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
def test_moment(seconds: float, text: str) -> None:
    assert moment(NOON + timedelta(seconds=seconds), NOON) == text


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
def test_listed(names: list[str], text: str) -> None:
    assert listed(names) == text


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (number(1, "pod"), "1 pod"),
        (number(0, "pod"), "0 pods"),
        (joined(["a", "b"], "or"), "a or b"),
        (noun("DeviceTaintRule/fw"), "rule fw"),
        (noun("Something/x"), "Something x"),
        (ended("no end"), "no end."),
        (ended("two\n lines!"), "two lines!"),
    ],
)
def test_words(got: str, want: str) -> None:
    assert got == want


def test_a_source_that_nobody_knows_has_at_least_its_name() -> None:
    assert Sources().of("DeviceTaintRule/gone").told() == "rule gone"


def test_sources_know_their_authors() -> None:
    by = {"sully.dev/created-by": "alice", "sully.dev/description": "hot"}
    known = Sources([rule("r", annotations=by)], [patch("p")], [slice_("s")])

    assert known.of("DeviceTaintRule/r").told() == "rule r (by alice)"
    assert known.of("DeviceTaintRule/r").why == "hot"
    assert known.of("ResourceSlicePatch/p").told() == "patch p"
    assert known.of("ResourceSlice/s").told() == "slice s (by driver gpu.example.com)"


def test_who_writes_the_status_is_no_author() -> None:
    entry = {"manager": "kubelet", "subresource": "status", "fieldsV1": {"f:spec": {}}}

    assert author(meta("x", managed_fields=(entry, "nonsense"))) == ""


def test_an_explanation_for_programs_has_every_part() -> None:
    found = Explanation(
        kind="Pod",
        namespace="team",
        name="p",
        state="Pending",
        cause="Gated",
        summary=("It waits.",),
        details=tables(
            Table("Empty", ("a",), ()), Table("Full", ("first", "second one"), (("1", "2"),))
        ),
    )

    assert found.title == "Pod team/p: Pending (Gated)"
    assert found.as_json() == {
        "kind": "Pod",
        "namespace": "team",
        "name": "p",
        "state": "Pending",
        "cause": "Gated",
        "because": [],
        "summary": ["It waits."],
        "remedies": [],
        "details": [{"title": "Full", "rows": [{"first": "1", "secondOne": "2"}]}],
        "notes": [],
    }
