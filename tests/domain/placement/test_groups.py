"""Decision groups and the objects they are written to (checklist C1-C4, C13, I7, I11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from fleets import expression, group, groups, inputs_of, labelled, placement
from sully.api.cluster.types import DecisionStrategy, LabelSelector
from sully.domain.placement.results.groups import group_length
from sully.domain.placement.results.status import MisconfiguredError
from sully.domain.placement.schedule import schedule
from sully.testing.builders import cluster, cluster_set, set_binding

CANARY = group("canary", labelled(stage="canary"))


def canary(name: str) -> Any:
    return cluster(name, labels={"stage": "canary"})


def many(number: int) -> tuple[Any, ...]:
    return tuple(cluster(f"c{at:03d}") for at in range(number))


@dataclass(frozen=True)
class Case:
    clusters: tuple[Any, ...]
    strategy: DecisionStrategy
    want: list[tuple[str, int]]
    """Name and size of every group."""
    objects: list[tuple[int, int]] | None = None
    """Group and size of every PlacementDecision, where not one for each group."""


PLAIN = groups()
CASES = {
    "C1 three selected": Case(many(3), PLAIN, [("", 3)]),
    "C2 canaries, one a group": Case(
        (canary("a"), cluster("b"), canary("c"), cluster("d")),
        groups(CANARY, size=1),
        [("canary", 1), ("canary", 1), ("", 1), ("", 1)],
    ),
    "C3 two named groups": Case(
        (
            cluster("a", labels={"g": "1"}),
            cluster("b", labels={"g": "1"}),
            cluster("c", labels={"g": "2"}),
        ),
        groups(group("group1", labelled(g="1")), group("group2", labelled(g="2"))),
        [("group1", 2), ("group2", 1)],
    ),
    "C4 a quarter of three": Case(many(3), groups(size="25%"), [("", 1)] * 3),
    "C5 nothing selected": Case((), PLAIN, [("", 0)]),
    "C13 ten": Case(many(10), PLAIN, [("", 10)]),
    "C13 a hundred and one": Case(many(101), PLAIN, [("", 101)], [(0, 100), (0, 1)]),
    "I11 canaries of five by two": Case(
        (canary("a"), cluster("b"), cluster("c"), cluster("d"), canary("e")),
        groups(CANARY, size=2),
        [("canary", 2), ("", 2), ("", 1)],
    ),
    "groups of a hundred and fifty": Case(
        many(203), groups(size=150), [("", 150), ("", 53)], [(0, 100), (0, 50), (1, 53)]
    ),
    "by claim": Case(
        (cluster("a", claims={"p": "aws"}), cluster("b")),
        groups(group("aws", claims=(expression("p", "Exists"),))),
        [("aws", 1), ("", 1)],
    ),
    "the first group that matches takes": Case(
        (canary("a"), cluster("b")),
        groups(group("all"), CANARY),
        [("all", 2)],
    ),
    "a group without clusters is none": Case(many(2), groups(CANARY), [("", 2)]),
    "zero is one group": Case(many(3), groups(size=0), [("", 3)]),
    "more than there are": Case(many(3), groups(size=7), [("", 3)]),
    "a percentage is of all, not of the group": Case(
        (canary("a"), canary("b"), canary("c"), cluster("d")),
        groups(CANARY, size="50%"),
        [("canary", 2), ("canary", 1), ("", 1)],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_groups(case: Case) -> None:
    desired = placement("web", decision_strategy=case.strategy)
    got = schedule(inputs_of((cluster_set(), set_binding(), *case.clusters), desired))

    assert [(one.decision_group_name, one.cluster_count) for one in got.groups] == case.want
    assert [one.decision_group_index for one in got.groups] == list(range(len(case.want)))
    sizes = [(one.group_index, len(one.clusters)) for one in got.slices]
    assert sizes == (case.objects or [(at, size) for at, (_, size) in enumerate(case.want)])
    names = [f"web-decision-{number}" for number in range(1, len(sizes) + 1)]
    assert [one.name for one in got.slices] == names
    assert [name for one in got.groups for name in one.decisions] == names
    assert all(list(one.clusters) == sorted(one.clusters) for one in got.slices)


def test_labels_of_decisions() -> None:
    objects = (cluster_set(), set_binding(), canary("a"), cluster("b"))
    got = schedule(inputs_of(objects, placement("web", decision_strategy=groups(CANARY))))
    prefix = "cluster.open-cluster-management.io"

    assert [one.labels("web") for one in got.slices] == [
        {
            f"{prefix}/placement": "web",
            f"{prefix}/decision-group-index": index,
            f"{prefix}/decision-group-name": name,
        }
        for index, name in (("0", "canary"), ("1", ""))
    ]


LENGTHS = {(3, 10): 3, (0, 10): 10, (-1, 10): 10, (11, 10): 10, ("100%", 10): 10, ("7%", 100): 8}
"""Seven per cent of a hundred is a little more than seven in floating point, there as here."""


@pytest.mark.parametrize(("lengths", "want"), LENGTHS.items())
def test_length(lengths: tuple[int | str, int], want: int) -> None:
    assert group_length(*lengths) == want


@pytest.mark.parametrize("size", ["5", "x%", "ten"])
def test_a_length_that_is_not_a_share(size: str) -> None:
    with pytest.raises(MisconfiguredError) as caught:
        group_length(size, 10)

    assert caught.value.status.message == f"{size} invalid type: string is not a percentage"
    assert group_length("5", 10, quoted=True) == 5


def test_a_quoted_length_of_thousands_of_digits() -> None:
    with pytest.raises(MisconfiguredError):
        group_length("9" * 5000, 10, quoted=True)


WRONG = group("bad", LabelSelector(match_expressions=(expression("a", "Like"),)))
HALF_WRONG = {
    "the only group": ((WRONG,), []),
    "after a group": ((CANARY, WRONG), [("canary", ("a",))]),
    "before a group": ((WRONG, CANARY), []),
    "after a group without members": ((group("none", labelled(stage="x")), WRONG), []),
}


@pytest.mark.parametrize(("lengths", "want"), HALF_WRONG.values(), ids=HALF_WRONG.keys())
def test_group_with_a_wrong_selector(lengths: tuple[Any, ...], want: list[Any]) -> None:
    """OCM keeps the groups before it, and no decision of any other."""
    desired = placement("web", decision_strategy=groups(*lengths))
    objects = (cluster_set(), set_binding(), canary("a"), cluster("b"))
    got = schedule(inputs_of(objects, desired))

    assert got.conditions[0].message == ':"Like" is not a valid label selector operator'
    assert [(one.group_name, one.clusters) for one in got.slices] == want
    assert [one.cluster_count for one in got.groups] == [len(names) for _, names in want]
    assert got.selected == 2
