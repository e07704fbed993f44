"""What changes of a fleet would do to all decisions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from fleets import decision, exists, labelled, later, placement, policy, predicate, scored
from sully.api.cluster.types import UNREACHABLE, Placement, PlacementStatus, Taint
from sully.domain.placement.changes import (
    Change,
    DropCluster,
    LabelCluster,
    NoSuchClusterError,
    PutObject,
    SilenceClusters,
    TaintCluster,
    UntaintCluster,
)
from sully.domain.placement.incremental.deciding import decide
from sully.domain.placement.incremental.fleet import Fleet
from sully.domain.placement.options import OCM, PlacementOptions
from sully.domain.placement.whatif import Forecast, whatif
from sully.machinery.compat import Compat
from sully.machinery.meta import Condition
from sully.machinery.selectors.labels import from_object
from sully.testing.builders import cluster, cluster_set, cluster_taint, set_binding

MAINTENANCE = Taint(key="maintenance", effect="NoSelect")


def fleet(options: PlacementOptions | None = None) -> Fleet:
    """Two regions, a placement for all, one that wants one, one that tolerates for a while."""
    result = Fleet(options or OCM)
    result.put_set(cluster_set())
    result.put_binding(set_binding())
    for name in ("eu-1", "eu-2", "us-1"):
        result.put_cluster(cluster(name, labels={"region": name[:2]}))
    desired_placements = (
        placement("all"),
        placement("one", want=1),
        placement("patient", exists(UNREACHABLE, seconds=60)),
    )
    for desired in desired_placements:
        result.put_placement(desired)
        outcome = decide(result, ("apps", desired.metadata.name), later(0))
        assert outcome is not None
        result.put_decision(decision(desired.metadata.name, *outcome.clusters))
    return result


def moves(forecast: Forecast) -> list[tuple[float, str, str, str]]:
    return [
        (
            (one.at - later(0)).total_seconds(),
            one.placement[1],
            " ".join(one.left),
            " ".join(one.joined),
        )
        for one in forecast.moves
    ]


EUROPE = from_object({"matchLabels": {"region": "eu"}})
CASES: dict[str, tuple[tuple[Change, ...], float, list[tuple[float, str, str, str]]]] = {
    "nothing": ((), 0, []),
    "taint a cluster": (
        (TaintCluster("eu-1", MAINTENANCE),),
        0,
        [(0, "all", "eu-1", ""), (0, "one", "eu-1", "eu-2"), (0, "patient", "eu-1", "")],
    ),
    "silence a region, now": (
        (SilenceClusters(EUROPE),),
        0,
        [(0, "all", "eu-1 eu-2", ""), (0, "one", "eu-1", "us-1")],
    ),
    "silence a region, and wait": (
        (SilenceClusters(EUROPE),),
        90,
        [
            (0, "all", "eu-1 eu-2", ""),
            (0, "one", "eu-1", "us-1"),
            (60, "patient", "eu-1 eu-2", ""),
        ],
    ),
    "drop a cluster": (
        (DropCluster("us-1"),),
        0,
        [(0, "all", "us-1", ""), (0, "patient", "us-1", "")],
    ),
    "one thing after the other": (
        (
            TaintCluster("us-1", MAINTENANCE, timedelta(seconds=10)),
            UntaintCluster("us-1", "maintenance", timedelta(seconds=20)),
        ),
        30,
        [
            (10, "all", "us-1", ""),
            (10, "patient", "us-1", ""),
            (20, "all", "", "us-1"),
            (20, "patient", "", "us-1"),
        ],
    ),
    "what happens later does not happen yet": (
        (DropCluster("us-1", timedelta(seconds=10)),),
        5,
        [],
    ),
    "another label": (
        (
            PutObject(placement("one", predicates=(predicate(labels=labelled(gpu="y")),))),
            LabelCluster("us-1", "gpu", "y"),
        ),
        0,
        [(0, "one", "eu-1", "us-1")],
    ),
}


@pytest.mark.parametrize(("changes", "seconds", "want"), CASES.values(), ids=CASES.keys())
def test_moves(
    changes: tuple[Change, ...], seconds: float, want: list[tuple[float, str, str, str]]
) -> None:
    assert moves(whatif(fleet(), changes, later(0), later(seconds))) == want


def balanced(*desired_placements: Placement, **has: str) -> Fleet:
    """Two clusters, and placements that have been looked at and have one each."""
    fleet = Fleet()
    fleet.put_set(cluster_set())
    fleet.put_binding(set_binding())
    for name in ("a", "b"):
        fleet.put_cluster(cluster(name))
    status = PlacementStatus(
        conditions=(Condition(type="T", status="True", reason="", message=""),)
    )
    for desired in desired_placements:
        fleet.put_placement(replace(desired, status=status))
        fleet.put_decision(decision(desired.metadata.name, has[desired.metadata.name]))
    return fleet


def test_only_who_is_woken_looks_again() -> None:
    """Both would rather be alone on a cluster, and neither moves until something happens."""
    fleet = balanced(placement("x", want=1), placement("y", want=1), x="a", y="a")

    assert moves(whatif(fleet, (), later(0), later(60))) == []
    changes = [LabelCluster("b", "k", "v", timedelta(seconds=5))]
    assert moves(whatif(fleet, changes, later(0), later(60))) == [(5, "x", "a", "b")]


def test_who_moved_looks_again_after_the_others() -> None:
    """The first one makes room and comes back, because the second went the same way."""
    careful = placement("y", predicates=(predicate(labels=labelled(gpu="y")),), want=1)
    fleet = balanced(placement("x", want=1), careful, x="a", y="a")

    forecast = whatif(fleet, [LabelCluster("b", "gpu", "y")], later(0))
    assert moves(forecast) == [(0, "y", "a", "b")]


def test_a_placement_that_does_not_come_to_rest() -> None:
    never = policy(scored("Steady", -1), mode="Exact")
    fleet = balanced(placement("x", want=1, prioritizer_policy=never), x="a")

    forecast = whatif(fleet, [LabelCluster("b", "k", "v")], later(0), later(10**6))
    assert forecast.oscillating == (("apps", "x"),)
    assert len(forecast.moves) < 20


def test_differences_and_what_comes_next() -> None:
    forecast = whatif(fleet(), [SilenceClusters(EUROPE)], later(0))

    assert [(one.placement[1], one.left, one.joined) for one in forecast.differences] == [
        ("all", ("eu-1", "eu-2"), ()),
        ("one", ("eu-1",), ("us-1",)),
    ]
    assert forecast.differences[0].after == ("us-1",)
    assert forecast.next_at == later(60)


def test_time_alone() -> None:
    """Tolerations that end are seen without any change."""
    result = fleet()
    result.put_cluster(cluster("eu-1", cluster_taint(UNREACHABLE, "")))
    result.put_decision(decision("all", "eu-2", "us-1"))
    result.put_decision(decision("one", "eu-2"))

    assert moves(whatif(result, (), later(0), later(59))) == []
    assert moves(whatif(result, (), later(0), later(60))) == [(60, "patient", "eu-1", "")]


def test_the_budget_is_rehearsed_and_not_spent() -> None:
    result = fleet(PlacementOptions(compat=Compat.KUBERNETES, removals_per_minute=1))
    forecast = whatif(result, [SilenceClusters(EUROPE)], later(0), later(61))

    assert moves(forecast)[0] == (0, "all", "eu-1", "")
    assert [one.left for one in forecast.differences if one.placement[1] == "all"] == [
        ("eu-1", "eu-2")
    ]
    assert result.removals.granted == frozenset()


def test_the_fleet_itself_stays_as_it_is() -> None:
    result = fleet()
    before = {key: decide(result, key, later(0)) for key in result.placements}
    whatif(result, [DropCluster("eu-1"), SilenceClusters(EUROPE)], later(0), later(500))

    assert {key: decide(result, key, later(0)) for key in result.placements} == before


def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(NoSuchClusterError):
        whatif(fleet(), [TaintCluster("mars", MAINTENANCE)], later(0))
