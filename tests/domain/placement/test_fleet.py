"""The fleet kept up to date: equal to a pass from nothing, whatever came in whatever order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleets import (
    decision,
    equal,
    exists,
    fleet_of,
    groups,
    inputs_of,
    labelled,
    later,
    placement,
    policy,
    predicate,
    put,
    remove,
    score,
    scored,
)
from property_examples import examples
from sully.api.cluster.types import (
    LabelSelector,
    ManagedCluster,
    Placement,
    PlacementDecision,
)
from sully.domain.placement.incremental.deciding import decide, inputs, totals
from sully.domain.placement.incremental.fleet import Fleet
from sully.domain.placement.options import OCM, PlacementOptions
from sully.domain.placement.results.outcome import Outcome
from sully.domain.placement.schedule import schedule, trace
from sully.testing.builders import cluster, cluster_set, cluster_taint, set_binding

KEY = ("apps", "p")
NAMES = [f"c{number}" for number in range(6)]
SETS = st.sampled_from(["fleet", "other"])
TAINTS = st.lists(
    st.builds(
        cluster_taint,
        st.sampled_from(["k1", "k2"]),
        st.just("v1"),
        st.sampled_from(["NoSelect", "NoSelectIfNew", "PreferNoSelect"]),
        added=st.integers(-20, 0),
    ),
    max_size=2,
)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "2", "4Gi"]), max_size=2
)


@st.composite
def clusters(draw: st.DrawFn) -> ManagedCluster:
    return cluster(
        draw(st.sampled_from(NAMES)),
        *draw(TAINTS),
        sets=draw(SETS),
        labels={"tier": draw(st.sampled_from("12"))},
        amounts=draw(AMOUNTS),
        terminating=draw(st.integers(0, 9)) == 0,
    )


TOLERATIONS = st.lists(
    st.one_of(
        st.builds(
            exists, st.sampled_from(["k1", "k2", ""]), seconds=st.none() | st.integers(0, 60)
        ),
        st.builds(equal, st.sampled_from(["k1", "k2"])),
        # One that cannot be used, now and then.
        st.just(equal(key="")),
    ),
    max_size=2,
)
CONFIGURATIONS = st.lists(
    st.builds(
        scored,
        st.sampled_from(
            [
                "Balance",
                "Steady",
                "ResourceAllocatableCPU",
                "ResourceAllocatableMemory",
                "s/x",
                "s/y",
                "Fastest",
            ]
        ),
        st.integers(-2, 3),
    ),
    max_size=3,
)
PREDICATES = st.lists(
    st.sampled_from(
        [
            predicate(labels=labelled(tier="1")),
            predicate('managedCluster.metadata.labels["tier"] == "2"'),
            predicate('managedCluster.scores("s").exists(s, s.value > 0)'),
        ]
    ),
    max_size=2,
)


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    return placement(
        draw(st.sampled_from("pqr")),
        *draw(TOLERATIONS),
        want=draw(st.none() | st.integers(0, 4)),
        cluster_sets=draw(st.sampled_from([(), ("fleet",), ("other", "fleet")])),
        predicates=tuple(draw(PREDICATES)),
        prioritizer_policy=policy(
            *draw(CONFIGURATIONS), mode=draw(st.sampled_from(["", "Additive", "Exact"]))
        ),
        decision_strategy=draw(st.sampled_from([groups(), groups(size=2), groups(size="x")])),
    )


@st.composite
def decisions(draw: st.DrawFn) -> PlacementDecision:
    names = draw(st.lists(st.sampled_from([*NAMES, "gone"]), max_size=4))
    return decision(draw(st.sampled_from("pqr")), *names, number=draw(st.integers(1, 2)))


SCORES = st.builds(
    score,
    st.sampled_from(NAMES),
    st.just("s"),
    valid_until=st.none() | st.integers(-5, 60),
    x=st.integers(-100, 100),
    y=st.sampled_from([0, 50]),
)
SETS_ = st.one_of(
    st.just(cluster_set("fleet")),
    st.just(cluster_set("other", labelled(tier="1"))),
    st.just(cluster_set("other", LabelSelector())),
)
OBJECTS = st.one_of(
    clusters(),
    clusters(),
    clusters(),
    placements(),
    decisions(),
    SCORES,
    SETS_,
    st.builds(set_binding, SETS),
)
EVENTS = st.lists(
    st.tuples(OBJECTS, st.integers(0, 5).map(lambda n: n == 0), st.integers(0, 8)), max_size=25
)
BASE = (
    cluster_set("fleet"),
    cluster_set("other"),
    set_binding("fleet"),
    set_binding("other"),
    *(cluster(name) for name in NAMES[:4]),
    *(placement(name, want=2) for name in "pqr"),
)


def identity(one: Any) -> tuple[str, str, str]:
    return type(one).__name__, one.metadata.namespace, one.metadata.name


@settings(max_examples=examples(150))
@given(EVENTS, st.sampled_from([OCM, PlacementOptions()]))
def test_equal_to_a_pass_from_nothing(
    events: list[tuple[Any, bool, int]], options: PlacementOptions
) -> None:
    fleet = fleet_of(BASE, options)
    objects = {identity(one): one for one in BASE}
    at = 0
    for one, gone, passed in events:
        at += passed
        if gone:
            remove(fleet, one)
            objects.pop(identity(one), None)
        else:
            put(fleet, one)
            objects[identity(one)] = one
        for key, desired in fleet.placements.items():
            fresh = inputs_of(objects.values(), desired, at=at, options=options)
            assert decide(fleet, key, later(at)) == schedule(fresh)
            assert schedule(inputs(fleet, desired, later(at))) == schedule(fresh)
            assert totals(fleet, key, later(at)) == trace(fresh).totals


@settings(max_examples=examples(60))
@given(EVENTS, st.integers(0, 60))
def test_a_copy_is_independent(events: list[tuple[Any, bool, int]], at: int) -> None:
    fleet = fleet_of(BASE)
    before = {key: decide(fleet, key, later(at)) for key in fleet.placements}
    copy = fleet.copy()
    for one, gone, _ in events:
        (remove if gone else put)(copy, one)
        for key in copy.placements:
            decide(copy, key, later(at))

    assert {key: decide(fleet, key, later(at)) for key in fleet.placements} == before


INDEPENDENT = (
    cluster_set(),
    set_binding(),
    cluster("a", cluster_taint(added=-5)),
    cluster("b", labels={"tier": "1"}),
    placement("p", exists(seconds=30), want=1),
    decision("p", "a"),
)


def test_every_order_of_events_ends_the_same() -> None:
    want = schedule(inputs_of(INDEPENDENT, INDEPENDENT[4]))
    for order in permutations(INDEPENDENT):
        fleet = Fleet()
        for one in order:
            put(fleet, one)
            if KEY in fleet.placements:
                # Asking in between must not change the final decisions.
                decide(fleet, KEY, later(0))

        assert decide(fleet, KEY, later(0)) == want


def selected(outcome: Outcome | None) -> tuple[str, ...]:
    assert outcome is not None
    return outcome.clusters


WORLD = (cluster_set(), set_binding(), cluster("a"), cluster("b"), placement(want=1))


def test_an_expression_sees_every_part_of_a_cluster() -> None:
    ready = 'managedCluster.status.conditions.exists(c, c.type == "x" && c.status == "True")'
    fleet = fleet_of((*WORLD, placement(predicates=(predicate(ready),))))
    assert selected(decide(fleet, KEY, later(0))) == ()

    assert put(fleet, cluster("a", conditions={"x": "True"})) == {KEY}
    assert selected(decide(fleet, KEY, later(0))) == ("a",)


def test_time_alone_removes_a_cluster() -> None:
    """I3: tolerated 10 and 20 seconds, then a taint that nothing tolerates."""
    desired = placement("p", exists("k1", seconds=10), exists("k2", seconds=20))
    fleet = fleet_of(
        (
            cluster_set(),
            set_binding(),
            desired,
            cluster("a", cluster_taint()),
            cluster("b", cluster_taint("k2")),
            cluster("c"),
        )
    )

    assert selected(decide(fleet, KEY, later(0))) == ("a", "b", "c")
    assert selected(decide(fleet, KEY, later(9.9))) == ("a", "b", "c")
    assert selected(decide(fleet, KEY, later(10))) == ("b", "c")
    assert selected(decide(fleet, KEY, later(20))) == ("c",)
    put(fleet, cluster("c", cluster_taint("k3")))
    assert selected(decide(fleet, KEY, later(20))) == ()


def test_steady_against_a_better_newcomer() -> None:
    """I13: CPU draws, and Steady with weight 3 holds."""
    for weight, want in ((1, ("a",)), (3, ("b",))):
        choice = policy(scored("ResourceAllocatableCPU"), scored("Steady", weight), mode="Exact")
        fleet = fleet_of(
            (
                cluster_set(),
                set_binding(),
                placement(want=1, prioritizer_policy=choice),
                decision("p", "b"),
                cluster("b", amounts={"cpu": "1"}),
            )
        )
        decide(fleet, KEY, later(0))
        put(fleet, cluster("a", amounts={"cpu": "9"}))

        assert selected(decide(fleet, KEY, later(0))) == want


def test_groups_follow_as_clusters_come_and_go() -> None:
    """I11."""
    desired = placement(decision_strategy=groups(size=2))
    fleet = fleet_of((cluster_set(), set_binding(), desired, *(cluster(name) for name in "abcde")))

    def sizes() -> list[int]:
        outcome = decide(fleet, KEY, later(0))
        assert outcome is not None
        return [one.cluster_count for one in outcome.groups]

    assert sizes() == [2, 2, 1]
    fleet.remove_cluster("a")
    assert sizes() == [2, 2]


def test_shapes_are_shared_and_let_go() -> None:
    fleet = fleet_of((*WORLD, placement("q", want=5)))
    first = fleet.shape(KEY)

    assert fleet.shape(("apps", "q")) is first
    put(fleet, placement("q", exists()))
    assert fleet.shape(("apps", "q")) is not first
    fleet.remove_placement(KEY)
    put(fleet, placement("p", want=1))
    assert fleet.shape(KEY) is not first


@pytest.mark.parametrize("annotation", ["true", "false"])
def test_left_alone(annotation: str) -> None:
    """C7."""
    off = {"cluster.open-cluster-management.io/experimental-scheduling-disable": annotation}
    fleet = fleet_of((*WORLD, placement(annotations=off)))

    assert (decide(fleet, KEY, later(0)) is None) == (annotation == "true")
    assert decide(fleet, ("apps", "nobody"), later(0)) is None


def test_a_score_runs_out_and_comes_again() -> None:
    """Time alone makes a score worthless, and a new one takes the warning away."""
    choice = policy(scored("s/x"), mode="Exact")
    fleet = fleet_of((*WORLD, placement(want=1, prioritizer_policy=choice)))
    put(fleet, score("b", "s", x=9, valid_until=10))
    states = []
    for at, change in ((10, None), (11, None), (12, score("b", "s", x=9, valid_until=99))):
        if change is not None:
            put(fleet, change)
        outcome = decide(fleet, KEY, later(at))
        assert outcome is not None
        states.append((outcome.clusters, outcome.status.code))

    assert states == [(("b",), "Success"), (("a",), "Warning"), (("b",), "Success")]


def test_a_cluster_that_is_only_kept_has_an_end_too() -> None:
    """It stays in spite of NoSelectIfNew, and its other taint is tolerated for a while."""
    marks = (cluster_taint("k1", effect="NoSelectIfNew"), cluster_taint("k2"))
    objects = (
        cluster_set(),
        set_binding(),
        placement("p", exists("k2", seconds=30)),
        cluster("a", *marks),
        decision("p", "a"),
    )
    outcome = decide(fleet_of(objects), KEY, later(0))

    assert selected(outcome) == ("a",)
    assert outcome is not None
    assert outcome.requeue_at == later(30)
    assert selected(decide(fleet_of(objects), KEY, later(30))) == ()
