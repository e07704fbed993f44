"""The fleet from caches: every order ends the same, and the right placements hear of it."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from fleets import decision, exists, inputs_of, later, placement, policy, predicate, score, scored
from sully.client.transport import Key, Kind
from sully.domain.placement.changes import DropCluster
from sully.domain.placement.options import PlacementOptions
from sully.domain.placement.schedule import schedule
from sully.testing.builders import cluster, cluster_set, cluster_taint, set_binding
from sully.testing.clock import FakeClock
from sully.views.fleet import FleetCaches, FleetView
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, DECISIONS, PLACEMENTS, SCORES, SETS
from views.feeds import Feed

KEY = Key("apps", "p")


class Scene:
    """The view, over collections that a test feeds."""

    def __init__(self, **more: Any) -> None:
        self.clock = FakeClock()
        kinds: dict[str, Kind[Any]] = {
            "ManagedCluster": CLUSTERS,
            "ManagedClusterSet": SETS,
            "ManagedClusterSetBinding": BINDINGS,
            "Placement": PLACEMENTS,
            "PlacementDecision": DECISIONS,
            "AddOnPlacementScore": SCORES,
        }
        self._feeds = {name: Feed(kind, self.clock) for name, kind in kinds.items()}
        caches = FleetCaches(
            clusters=self._feeds["ManagedCluster"].informer,
            sets=self._feeds["ManagedClusterSet"].informer,
            bindings=self._feeds["ManagedClusterSetBinding"].informer,
            placements=self._feeds["Placement"].informer,
            decisions=self._feeds["PlacementDecision"].informer,
            scores=self._feeds["AddOnPlacementScore"].informer,
        )
        self.view = FleetView(caches, clock=self.clock, **more)
        self.heard: list[Key] = []
        self.view.enqueue(self.heard.append)

    def put(self, *objects: Any) -> None:
        for one in objects:
            self._feeds[type(one).__name__].put(one)

    def remove(self, *objects: Any) -> None:
        for one in objects:
            self._feeds[type(one).__name__].remove(one)

    def clusters(self) -> tuple[str, ...]:
        outcome = self.view.decide(KEY)
        assert outcome is not None
        return outcome.clusters


OBJECTS = (
    cluster_set(),
    set_binding(),
    cluster("a", cluster_taint(added=-5)),
    cluster("b"),
    placement("p", exists(seconds=30), want=1, prioritizer_policy=policy(scored("s/x"))),
    score("a", "s", x=50),
)


def test_every_order_ends_the_same() -> None:
    want = schedule(inputs_of(OBJECTS, OBJECTS[4]))
    for order in permutations(OBJECTS):
        scene = Scene()
        for one in order:
            scene.put(one)
            scene.view.decide(KEY)

        assert scene.view.decide(KEY) == want


@pytest.mark.parametrize("gone", OBJECTS, ids=lambda one: type(one).__name__)
def test_what_is_deleted_leaves_no_trace(gone: Any) -> None:
    scene = Scene()
    scene.put(*OBJECTS)
    scene.view.decide(KEY)
    scene.remove(gone)
    rest = [one for one in OBJECTS if one is not gone]

    if gone is OBJECTS[4]:
        assert scene.view.decide(KEY) is None
    else:
        assert scene.view.decide(KEY) == schedule(inputs_of(rest, OBJECTS[4]))
    scene.put(gone)
    assert scene.view.decide(KEY) == schedule(inputs_of(OBJECTS, OBJECTS[4]))


def test_who_hears() -> None:
    scene = Scene()
    scene.put(*OBJECTS, placement("q", cluster_sets=("other",)))
    for key in (KEY, Key("apps", "q")):
        scene.view.decide(key)
    scene.heard.clear()

    scene.put(cluster("b", cluster_taint()))
    assert scene.heard == [KEY]
    scene.put(cluster("b", cluster_taint(), conditions={"x": "True"}))
    assert scene.heard == [KEY]
    scene.put(decision("q", "b"))
    assert scene.heard == [KEY, Key("apps", "q")]


def test_whoever_listens_late_hears_of_all() -> None:
    scene = Scene()
    scene.put(*OBJECTS)
    heard: list[Key] = []
    stop = scene.view.enqueue(heard.append)
    stop()
    scene.put(placement("later"))

    assert heard == [KEY]


def test_time_passes() -> None:
    scene = Scene()
    scene.put(*OBJECTS)
    assert scene.clusters() == ("a",)
    outcome = scene.view.decide(KEY)
    assert outcome is not None
    assert outcome.requeue_at == later(25)

    scene.clock.advance(25)
    assert scene.clusters() == ("b",)
    assert scene.view.decide(KEY) == schedule(inputs_of(OBJECTS, OBJECTS[4], at=25))


def test_explanations_trials_and_forecasts() -> None:
    scene = Scene(options=PlacementOptions())
    scene.put(*OBJECTS, decision("p", "a"))

    assert scene.view.totals(KEY) == {"a": 250, "b": 100}
    assert scene.view.explain(OBJECTS[4]).of("b").rank == 2
    trial = placement("trial", predicates=(predicate("false"),))
    assert scene.view.explain(trial).of("a").stage == "Predicate"
    forecast = scene.view.whatif([DropCluster("a")])
    assert [(one.left, one.joined) for one in forecast.moves] == [(("a",), ("b",))]
    assert scene.clusters() == ("a",)
