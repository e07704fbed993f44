"""OCM's integration cases as far as they are about decisions (checklist I1-I15).

Every change is followed by all placements deciding and writing, as controllers do.
"""

from __future__ import annotations

from typing import Any

import pytest

from fleets import (
    decision,
    equal,
    exists,
    expression,
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
from sully.api.cluster.types import LabelSelector
from sully.domain.placement.incremental.deciding import decide
from sully.domain.placement.incremental.decision_counts import DecidedClusters
from sully.domain.placement.incremental.fleet import Fleet
from sully.domain.placement.results.outcome import Outcome
from sully.testing.builders import cluster, cluster_set, cluster_taint, set_binding

BASE = (cluster_set(), set_binding())


class Hub:
    """A fleet in which placements decide after every change."""

    def __init__(self, *objects: Any) -> None:
        self.fleet = Fleet()
        self.at = 0.0
        self.outcomes: dict[str, Outcome] = {}
        self.put(*objects)

    def put(self, *objects: Any) -> Hub:
        for one in objects:
            put(self.fleet, one)
        return self.settle()

    def remove(self, *objects: Any) -> Hub:
        for one in objects:
            remove(self.fleet, one)
        return self.settle()

    def wait(self, seconds: float) -> Hub:
        self.at += seconds
        return self.settle()

    def settle(self) -> Hub:
        for key in sorted(self.fleet.placements):
            outcome = decide(self.fleet, key, later(self.at))
            assert outcome is not None
            self.outcomes[key[1]] = outcome
            for part in outcome.slices:
                self.fleet.decide((key[0], part.name), DecidedClusters(key, part.clusters))
            for at in self.fleet.counts.entries(key):
                if at[1] not in {part.name for part in outcome.slices}:
                    self.fleet.decide(at, None)
        return self

    def has(self, name: str = "p") -> str:
        return " ".join(self.outcomes[name].clusters)

    def reason(self, name: str = "p") -> str:
        return self.outcomes[name].conditions[1].reason


def test_i1_exists_and_equal() -> None:
    hub = Hub(
        *BASE,
        cluster("a", cluster_taint("k1")),
        cluster("b", cluster_taint("k2", "value2")),
        cluster("c", cluster_taint("k3")),
        placement("p", exists("k1"), equal("k2", "value2"), want=3),
    )

    assert (hub.has(), hub.reason()) == ("a b", "NotAllDecisionsScheduled")


def test_i2_effects_that_do_not_fit() -> None:
    hub = Hub(
        *BASE,
        cluster("a", cluster_taint("k1", effect="NoSelect")),
        cluster("b", cluster_taint("k2", effect="PreferNoSelect")),
        cluster("c", cluster_taint("k3", effect="NoSelectIfNew")),
        cluster("d"),
        placement("p", exists("k1", effect="NoSelectIfNew"), exists("k3", effect="NoSelect")),
    )
    assert hub.has() == "b d"

    assert hub.put(cluster("d", cluster_taint("k3", effect="NoSelectIfNew"))).has() == "b d"


def test_i3_tolerated_for_a_while() -> None:
    hub = Hub(
        *BASE,
        cluster("a", cluster_taint("k1")),
        cluster("b", cluster_taint("k2")),
        cluster("c", cluster_taint("k3", added=-60)),
        placement("p", exists("k1", seconds=10), exists("k2", seconds=20), exists("k3")),
    )
    seen = [hub.has(), hub.wait(10).has(), hub.wait(10).has()]

    assert [*seen, hub.put(cluster("c", cluster_taint("k4"))).has()] == ["a b c", "b c", "c", ""]


def test_i4_a_decision_deleted_by_hand() -> None:
    hub = Hub(*BASE, cluster("a"), placement())
    fleet = hub.fleet

    assert fleet.remove_decision(("apps", "p-decision-1")) == {("apps", "p")}
    assert hub.settle().has() == "a"


def test_i5_a_cluster_that_is_being_deleted() -> None:
    hub = Hub(*BASE, cluster("a"), cluster("b"), placement())

    assert hub.put(cluster("a", terminating=True)).has() == "b"


def test_i6_no_cluster_is_one_empty_decision() -> None:
    hub = Hub(*BASE, placement())

    assert [one.clusters for one in hub.outcomes["p"].slices] == [()]


def test_i8_numbers_and_sets_change() -> None:
    hub = Hub(
        *BASE,
        cluster_set("other"),
        set_binding("other"),
        *(cluster(name) for name in "abc"),
        cluster("z", sets="other"),
    )

    assert hub.put(placement(want=2)).has() == "a b"
    assert hub.put(placement(want=1)).has() == "a"
    assert hub.put(placement(want=3)).has() == "a b c"
    assert hub.put(placement(want=3, cluster_sets=("other",))).has() == "z"


def test_i9_an_invalid_toleration_and_its_repair() -> None:
    hub = Hub(*BASE, cluster("a"), placement())
    broken = hub.put(placement("p", equal(key="")))
    assert (broken.has(), broken.outcomes["p"].conditions[0].status) == ("", "True")

    mended = hub.put(placement())
    assert (mended.has(), mended.outcomes["p"].conditions[0].status) == ("a", "False")


def test_i10_sets_and_bindings_come_and_go() -> None:
    everything = cluster_set("global", LabelSelector())
    hub = Hub(cluster("a"), cluster("b", sets="other"), placement())
    assert hub.reason() == "NoManagedClusterSetBindings"

    assert hub.put(*BASE).has() == "a"
    assert hub.put(cluster("c")).has() == "a c"
    assert hub.put(everything, set_binding("global")).has() == "a b c"
    assert hub.remove(set_binding()).has() == "a b c"
    assert hub.remove(everything).has() == ""
    assert (
        hub.put(cluster_set("global", labelled(x="y")), cluster("d", labels={"x": "y"})).has()
        == "d"
    )


def test_i12_by_default_resources_do_not_count() -> None:
    clusters = (cluster(name, amounts={"cpu": cpu}) for name, cpu in zip("abc", "123", strict=True))

    assert Hub(*BASE, *clusters, placement(want=2)).has() == "a b"


def test_i13_scores_of_resources() -> None:
    def sized(name: str, cpu: int, memory: int) -> Any:
        return cluster(name, amounts={"cpu": cpu, "memory": f"{memory}Gi"})

    both = policy(
        scored("ResourceAllocatableCPU"), scored("ResourceAllocatableMemory"), mode="Exact"
    )
    hub = Hub(*BASE, sized("a", 1, 1), sized("b", 5, 5), placement(want=1, prioritizer_policy=both))
    assert hub.has() == "b"

    assert hub.put(sized("c", 9, 9)).has() == "c"
    assert hub.remove(sized("c", 9, 9)).has() == "b"


def test_i13_balance_avoids_what_others_use() -> None:
    choice = policy(scored("Balance", 2), scored("ResourceAllocatableCPU"))
    hub = Hub(
        *BASE,
        cluster("a", amounts={"cpu": 9}),
        cluster("b", amounts={"cpu": 1}),
        decision("other", "a"),
        placement(want=1, prioritizer_policy=choice),
    )

    assert hub.has() == "b"


def test_i14_scores_of_add_ons() -> None:
    desired = placement(want=2, prioritizer_policy=policy(scored("demo/demo"), mode="Exact"))
    hub = Hub(*BASE, *(cluster(name) for name in "abc"), desired)
    assert hub.has() == "a b"

    scores = (
        score(name, "demo", demo=value) for name, value in zip("abc", (80, 90, 100), strict=True)
    )
    assert hub.put(*scores).has() == "b c"
    assert hub.put(score("a", "demo", demo=100), score("c", "demo", demo=-100)).has() == "a b"


PREDICATES = {
    "labels": (predicate(labels=labelled(env="x")), "a"),
    "claims": (predicate(claims=(expression("cloud", "In", "y"),)), "b"),
    "CEL": (predicate('managedCluster.metadata.labels["env"] == "x"'), "a"),
}


@pytest.mark.parametrize(("one", "want"), PREDICATES.values(), ids=PREDICATES.keys())
def test_i15_predicates_change(one: Any, want: str) -> None:
    hub = Hub(
        *BASE, cluster("a", labels={"env": "x"}), cluster("b", claims={"cloud": "y"}), placement()
    )
    assert hub.has() == "a b"
    assert hub.put(placement(predicates=(one,))).has() == want
    assert hub.put(placement(predicates=(predicate("!!"),))).has() == ""
    assert hub.put(placement(predicates=(one,))).has() == want
