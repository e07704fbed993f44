"""Sets, bindings and who belongs (checklist C8-C10)."""

from __future__ import annotations

import pytest

from fleets import expression, inputs_of, labelled, placement
from sully.api.cluster.types import LabelSelector, ManagedClusterSet
from sully.domain.placement.incremental.fleet import Fleet
from sully.domain.placement.incremental.membership import BrokenSetError, eligible_sets, membership
from sully.testing.builders import cluster, cluster_set, set_binding

CLUSTERS = {
    "in-fleet": cluster("in-fleet"),
    "in-other": cluster("in-other", sets="other"),
    "labelled": cluster("labelled", sets=None, labels={"a": "b"}),
}
MEMBERS = {
    "exclusive": (cluster_set(), {"in-fleet"}),
    "no type is exclusive": (
        ManagedClusterSet(metadata=cluster_set().metadata),
        {"in-fleet"},
    ),
    "no selector selects nothing": (cluster_set(kind="LabelSelector"), set()),
    "an empty one everything": (cluster_set(selector=LabelSelector()), set(CLUSTERS)),
    "by label": (cluster_set(selector=labelled(a="b")), {"labelled"}),
}


@pytest.mark.parametrize(("result", "want"), MEMBERS.values(), ids=MEMBERS.keys())
def test_members(result: ManagedClusterSet, want: set[str]) -> None:
    rule = membership(result)

    assert {name for name, one in CLUSTERS.items() if rule.has(one.metadata.labels)} == want
    assert rule.problem == ""


BROKEN = {
    "an unknown type": cluster_set(kind="Random"),
    "a selector that cannot be read": cluster_set(
        selector=LabelSelector(match_expressions=(expression("a", "Like"),))
    ),
}


@pytest.mark.parametrize("result", BROKEN.values(), ids=BROKEN.keys())
def test_broken_set_stops_those_who_may_use_it(result: ManagedClusterSet) -> None:
    """C10: an error, and nothing is written until it is mended."""
    fleet = Fleet()
    fleet.put_set(result)
    fleet.put_binding(set_binding())
    fleet.put_placement(placement())

    with pytest.raises(BrokenSetError):
        fleet.shape(("apps", "p"))
    assert fleet.put_set(cluster_set()) == {("apps", "p")}
    assert fleet.shape(("apps", "p")).sets == ("fleet",)


@pytest.mark.parametrize(
    ("bound", "expected", "want"),
    [
        ({"2", "3"}, ("1", "2"), ("2",)),
        ({"b", "a"}, (), ("a", "b")),
        (set(), ("a",), ()),
        ({"a"}, ("b",), ()),
    ],
)
def test_eligible(bound: set[str], expected: tuple[str, ...], want: tuple[str, ...]) -> None:
    """C9."""
    assert eligible_sets(bound, expected) == want


def test_a_cluster_in_two_sets_counts_once() -> None:
    objects = (
        cluster_set(),
        set_binding(),
        cluster_set("all", LabelSelector()),
        set_binding("all"),
        cluster("a"),
        cluster("b", terminating=True),
    )
    got = inputs_of(objects, placement())

    assert [one.name for one in got.candidates] == ["a"]
    assert got.reach.eligible == ("all", "fleet")
