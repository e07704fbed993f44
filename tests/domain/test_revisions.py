"""Templates and their numbers."""

from __future__ import annotations

import re

import pytest

from domain.lifecycles import deployment, replica_set, template
from sully.domain.workloads.revisions import (
    HISTORY,
    REVISION,
    annotations_for,
    forgotten,
    next_revision,
    present,
    revision,
    same_template,
    template_hash,
)

SAFE = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{1,10}")


def test_a_hash_depends_on_the_content_and_not_on_its_order() -> None:
    one = {"spec": {"a": 1, "b": [1, {"c": 2, "d": 3}]}, "metadata": {}}
    other = {"metadata": {}, "spec": {"b": [1, {"d": 3, "c": 2}], "a": 1}}

    assert template_hash(one, None) == template_hash(other, None)
    assert SAFE.fullmatch(template_hash(one, None))
    counts = {template_hash(one, count) for count in (None, 0, 1, 2)}
    assert len(counts) == 4
    assert template_hash(one, None) != template_hash({**one, "x": 1}, None)


def test_templates_are_the_same_apart_from_their_hash() -> None:
    assert same_template(template("a"), template("a", **{"pod-template-hash": "x"}))
    assert same_template(
        template("a"), template("a") | {"metadata": {"labels": {"app": "web"}, "annotations": {}}}
    )
    assert not same_template(template("a"), template("b"))
    assert not same_template(template("a"), template("a", tier="x"))


def test_of_two_with_the_template_the_older_counts() -> None:
    sets = [
        replica_set("b", 1, born=2, image="new"),
        replica_set("a", 1, born=1, image="new"),
        replica_set("c", 1, image="old"),
    ]

    result = present(deployment(1), sets)

    assert result is not None
    assert result.name == "a"
    assert present(deployment(1, image="none"), sets) is None


def test_the_next_number_is_above_all() -> None:
    sets = [replica_set("a", 0, revision="2"), replica_set("b", 0, revision="11")]

    assert next_revision(sets) == 12
    assert next_revision([replica_set("a", 0, revision="x"), replica_set("b", 0)]) == 1
    assert next_revision([]) == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("1000000000000000000", 10**18),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", 0),
        ("99999999999999999999", 0),
        ("7 ", 0),
        ("\u0667", 0),
    ],
)
def test_revisions_have_64_bits(text: str, number: int) -> None:
    assert revision({REVISION: text}) == number


NOTES = {
    "first": ({}, 1, {REVISION: "1"}),
    "the same": ({REVISION: "3"}, 3, {REVISION: "3"}),
    "its number is higher already": ({REVISION: "7"}, 3, {REVISION: "7"}),
    "back again": ({REVISION: "1"}, 4, {REVISION: "4", HISTORY: "1"}),
    "back once more": (
        {REVISION: "4", HISTORY: "1"},
        6,
        {REVISION: "6", HISTORY: "1,4"},
    ),
    "others stay": ({"x": "y"}, 1, {"x": "y", REVISION: "1"}),
}


@pytest.mark.parametrize(("before", "number", "want"), NOTES.values(), ids=NOTES.keys())
def test_what_a_replica_set_records(
    before: dict[str, str], number: int, want: dict[str, str]
) -> None:
    assert annotations_for(deployment(1), before, number) == want


def test_a_history_does_not_grow_indefinitely() -> None:
    long = ",".join(str(number) for number in range(1000, 1400))

    result = annotations_for(deployment(1), {REVISION: "1400", HISTORY: long}, 1401)[HISTORY]

    assert len(result) <= 2000
    assert result.endswith(",1399,1400")


def test_annotations_are_handed_on_but_not_its_own() -> None:
    own_annotations = {
        "note": "x",
        REVISION: "9",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }

    result = annotations_for(deployment(1, annotations=own_annotations), {}, 1)

    assert result == {"note": "x", REVISION: "1"}


def test_old_ones_are_forgotten_in_order_of_their_number() -> None:
    old = [replica_set(f"r{number}", 0, revision=str(number)) for number in (3, 1, 2, 10)]
    busy = replica_set("r0", 2, revision="0")

    def names(limit: int | None) -> list[str]:
        it = deployment(1, revision_history_limit=limit)
        return [item.name for item in forgotten(it, [*old, busy])]

    assert names(2) == ["r1", "r2"]  # r0 is oldest, but has pods
    assert names(0) == ["r1", "r2", "r3", "r10"]
    assert names(5) == names(None) == names(2**31 - 1) == []
