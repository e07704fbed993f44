"""Plans for clusters and placements, case by case: what the hub makes of a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fleets import decision, exists, labelled, later, placement, scored
from fleets import policy as prioritizing
from sully.api.cluster.taints.policy_taints import OWNED
from sully.api.cluster.types import UNREACHABLE, LabelSelector, ManagedCluster
from sully.api.sully.types import (
    ClusterTaintPolicy,
    ClusterTaintPolicyFlaps,
)
from sully.client.transport import Key
from sully.controllers.placement.settings import PlacementSettings
from sully.domain.clusters.health import AVAILABLE
from sully.domain.planning.report import Plan
from sully.planning.dryrun.changes import Change, Put, Remove
from sully.planning.placements import plan_placements
from sully.testing.builders import (
    SET,
    cluster,
    cluster_policy,
    cluster_policy_rule,
    cluster_set,
    cluster_taint,
    set_binding,
)
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, DECISIONS, PLACEMENTS, POLICIES, SETS
from sully.views.snapshot.snapshot import Gap, Objects, Snapshot

NOT_REPLACED = cluster_taint(UNREACHABLE, "", added=-60)
SICK = "Sick"
NEVER_CONTENT = prioritizing(scored("Steady", -1), mode="Exact")


def healthy(name: str, *taints: Any, **more: Any) -> ManagedCluster:
    return cluster(name, *taints, conditions={AVAILABLE: "True"}, **more)


def unreachable(name: str, *taints: Any) -> ManagedCluster:
    return cluster(name, *taints, conditions={AVAILABLE: "Unknown"})


def policy(
    after: int, *, about: str = SICK, status: str = "True", **more: Any
) -> ClusterTaintPolicy:
    """Return a policy that taints sick clusters of a region."""
    rule = cluster_policy_rule(about, status, key="sick", set_after_seconds=after)
    selector = LabelSelector(match_labels={"region": "eu"})
    return cluster_policy(rule, selector=selector, **more)


def put(result: ManagedCluster) -> Put:
    return Put(CLUSTERS, result)


@dataclass(frozen=True)
class Case:
    clusters: Sequence[ManagedCluster]
    has: Sequence[str]
    """What the placement has, which wants all that it can get."""
    changes: Sequence[Change]
    moves: Sequence[str] = ()
    """Seconds, what it loses and what it gets."""
    ends: Sequence[str] | None = None
    """What it has in the end, if that is reported."""
    lacks: int = 0
    notes: int = 0
    policies: Sequence[ClusterTaintPolicy] = ()
    tolerations: Sequence[Any] = ()
    foreign: bool = False
    """The hub does not know our kinds."""
    flags: PlacementSettings = field(default_factory=PlacementSettings)


SICKLY = {AVAILABLE: "True", SICK: "True"}
MARKED = cluster(
    "b",
    cluster_taint("sick", ""),
    conditions=SICKLY,
    labels={"region": "eu"},
    annotations={OWNED: "sick:NoSelect"},
)
CASES = {
    "a new cluster is out of reach until its agent comes": Case(
        [healthy("a")], ["a"], [put(cluster("b"))], notes=1
    ),
    "a new cluster is tolerated for the time in the placement": Case(
        [healthy("a")],
        ["a"],
        [put(cluster("b"))],
        ["0 + b", "60 b + "],
        tolerations=[exists(UNREACHABLE, seconds=60)],
        notes=1,
    ),
    "the hub puts its own taint back": Case(
        [healthy("a"), unreachable("b", NOT_REPLACED)], ["a"], [put(unreachable("b"))]
    ),
    "which is new then": Case(
        [healthy("a"), unreachable("b", NOT_REPLACED)],
        ["a"],
        [put(unreachable("b"))],
        ["0 + b", "60 b + "],
        tolerations=[exists(UNREACHABLE, seconds=60)],
    ),
    "who tries a taint of the hub asks what comes when the cluster is unreachable": Case(
        [healthy("a"), healthy("b")],
        ["a", "b"],
        [put(healthy("b", cluster_taint(UNREACHABLE, "")))],
        ["60 b + "],
        ["a"],
        tolerations=[exists(UNREACHABLE, seconds=60)],
        notes=1,
    ),
    "and what policies make of that": Case(
        [healthy("a"), healthy("b", labels={"region": "eu"})],
        ["a", "b"],
        [put(healthy("b", cluster_taint(UNREACHABLE, ""), labels={"region": "eu"}))],
        ["30 b + "],
        ["a"],
        policies=[policy(30, about=AVAILABLE, status="Unknown")],
        tolerations=[exists(UNREACHABLE)],
        notes=1,
    ),
    "where nobody taints after health, nobody does so now": Case(
        [cluster("a"), cluster("b", cluster_taint("k"))],
        ["a"],
        [put(cluster("b"))],
        ["0 + b"],
        ["a", "b"],
    ),
    "another label brings a cluster under a policy": Case(
        [healthy("a"), cluster("b", conditions=SICKLY)],
        ["a", "b"],
        [put(cluster("b", conditions=SICKLY, labels={"region": "eu"}))],
        ["0 b + "],
        ["a"],
        policies=[policy(0)],
    ),
    "which takes its time": Case(
        [healthy("a"), cluster("b", conditions=SICKLY)],
        ["a", "b"],
        [put(cluster("b", conditions=SICKLY, labels={"region": "eu"}))],
        ["30 b + "],
        ["a"],
        policies=[policy(30)],
    ),
    "and stays within its limit": Case(
        [healthy("a"), cluster("b", conditions=SICKLY), cluster("c", conditions=SICKLY)],
        ["a", "b", "c"],
        [put(cluster(name, conditions=SICKLY, labels={"region": "eu"})) for name in ("b", "c")],
        ["0 b + "],
        ["a", "c"],
        policies=[policy(0, max_unavailable="50%")],
    ),
    "which clusters that are tainted already count for": Case(
        [MARKED, cluster("c", conditions=SICKLY)],
        ["c"],
        [put(cluster("c", conditions=SICKLY, labels={"region": "eu"}))],
        policies=[policy(0, max_unavailable=1)],
    ),
    "faults are counted in a plan, too": Case(
        [healthy("a"), cluster("b", conditions=SICKLY)],
        ["a", "b"],
        [put(cluster("b", conditions=SICKLY, labels={"region": "eu"}))],
        ["30 b + "],
        ["a"],
        policies=[policy(30, flaps=ClusterTaintPolicyFlaps(count=2, within="1m"))],
    ),
    "what a policy does anyway is left out": Case(
        [healthy("a"), cluster("b", conditions=SICKLY, labels={"region": "eu"})],
        ["a", "b"],
        [put(healthy("a", cluster_taint("k")))],
        ["0 a + "],
        [],
        lacks=1,
        policies=[policy(30)],
    ),
    "a cluster that would have been removed stays": Case(
        [healthy("a"), healthy("b", cluster_taint("k", added=-5))],
        ["a", "b"],
        [put(healthy("b"))],
        ends=["a", "b"],
        tolerations=[exists("k", seconds=60)],
    ),
    "a placement goes": Case(
        [healthy("a")], ["a"], [Remove(PLACEMENTS, Key("apps", "web"))], ["0 a + "], []
    ),
    "what is created and deleted together does not move, and one without rest is reported": Case(
        [healthy("a"), healthy("b")],
        ["a"],
        [Put(PLACEMENTS, placement("web", want=1, prioritizer_policy=NEVER_CONTENT))],
        [f"{second} {'a + b' if second % 2 else 'b + a'}" for second in range(1, 10)],
        ["b"],
        notes=1,
    ),
    "ours likes clusters that nothing speaks against": Case(
        [healthy("a", cluster_taint("k", effect="PreferNoSelect")), healthy("b")],
        ["a"],
        [Put(PLACEMENTS, placement("web", want=1))],
        ["0 a + b"],
        ["b"],
    ),
    "flags of the hub set how long a missed lease is tolerated": Case(
        [healthy("a"), healthy("b")],
        ["a", "b"],
        [put(healthy("b", cluster_taint(UNREACHABLE, "")))],
        ["300 b + "],
        ["a"],
        notes=1,
        flags=PlacementSettings(toleration_seconds=300),
    ),
    "and how many clusters are removed in a minute": Case(
        [healthy("a"), healthy("b"), healthy("c")],
        ["a", "b", "c"],
        [
            put(healthy("b", cluster_taint(UNREACHABLE, ""))),
            put(healthy("c", cluster_taint(UNREACHABLE, ""))),
        ],
        ["0 b + ", "60 c + "],
        ["a"],
        notes=2,
        flags=PlacementSettings(removals_per_minute=1),
    ),
    "a namespace loses its set": Case(
        [healthy("a")], ["a"], [Remove(BINDINGS, Key("apps", SET))], ["0 a + "], [], lacks=1
    ),
    "and gets another": Case(
        [healthy("a"), healthy("b", sets="other", labels={"tier": "gold"})],
        ["a"],
        [
            Put(SETS, cluster_set("gold", labelled(tier="gold"))),
            Put(BINDINGS, set_binding("gold")),
        ],
        ["0 + b"],
        ["a", "b"],
    ),
    "which leads nowhere": Case(
        [healthy("a")], ["a"], [Put(BINDINGS, set_binding("none"))], notes=1
    ),
    "a set goes": Case(
        [healthy("a")], ["a"], [Remove(SETS, Key("", SET))], ["0 a + "], [], lacks=1
    ),
    "a set that the hub puts back": Case(
        [healthy("a")], ["a"], [Remove(SETS, Key("", "global"))], notes=1
    ),
    "one that it mends": Case(
        [healthy("a"), healthy("b", sets="other")],
        ["a"],
        [
            Put(SETS, cluster_set("global", labelled(tier="silver"))),
            Put(BINDINGS, set_binding("global")),
        ],
        ["0 + b"],
        ["a", "b"],
        notes=1,
    ),
    "a policy comes": Case(
        [healthy("a"), cluster("b", conditions=SICKLY, labels={"region": "eu"})],
        ["a", "b"],
        [Put(POLICIES, policy(30))],
        ["30 b + "],
        ["a"],
    ),
    "a policy would do nothing any more": Case(
        [healthy("a"), cluster("b", conditions=SICKLY, labels={"region": "eu"})],
        ["a", "b"],
        [Remove(POLICIES, Key("", "p"))],
        ends=["a", "b"],
        policies=[policy(30)],
    ),
    "a policy goes, and its taint with it": Case(
        [healthy("a"), MARKED],
        ["a"],
        [Remove(POLICIES, Key("", "p"))],
        ["0 + b"],
        ["a", "b"],
        policies=[policy(30)],
    ),
    "OCM does not know about that": Case(
        [healthy("a", cluster_taint("k", effect="PreferNoSelect")), healthy("b")],
        ["a"],
        [Put(PLACEMENTS, placement("web", want=1))],
        ends=["a"],
        foreign=True,
    ),
}


def snapshot(case: Case) -> Snapshot:
    desired = placement("web", *case.tolerations)
    results = [
        Objects(CLUSTERS, list(case.clusters)),
        Objects(SETS, [cluster_set()]),
        Objects(BINDINGS, [set_binding()]),
        Objects(PLACEMENTS, [desired]),
        Objects(DECISIONS, [decision("web", *case.has)]),
    ]
    if case.foreign:
        return Snapshot(results, taken=later(0), gaps=[Gap(POLICIES, "not served")])
    return Snapshot([*results, Objects(POLICIES, list(case.policies))], taken=later(0))


def replacements(plan: Plan) -> list[str]:
    texts = []
    for change in plan.decision_changes:
        removed, added = " ".join(change.removed_clusters), " ".join(change.added_clusters)
        texts.append(f"{change.after_seconds:g} {removed} + {added}".replace("  ", " "))
    return texts


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_plans_of_a_fleet(case: Case) -> None:
    plan = plan_placements(snapshot(case), case.changes, case.flags)

    assert replacements(plan) == list(case.moves)
    ends = [list(placement.after) for placement in plan.placements]
    assert ends == ([] if case.ends is None else [list(case.ends)])
    assert len(plan.unsatisfied_placements) == case.lacks
    assert len(plan.notes) == case.notes


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ([put(healthy("a"))], "ManagedCluster/a unchanged"),
        ([put(healthy("a", cluster_taint("k")))], "ManagedCluster/a changed"),
        ([put(healthy("b"))], "ManagedCluster/b created"),
        ([Put(PLACEMENTS, placement("web"))], "Placement/apps/web unchanged"),
        ([Put(PLACEMENTS, placement("web", want=1))], "Placement/apps/web changed"),
        ([Remove(CLUSTERS, Key("", "a"))], "ManagedCluster/a deleted"),
    ],
)
def test_what_a_change_is_called(changes: Sequence[Change], reported: str) -> None:
    plan = plan_placements(snapshot(Case([healthy("a")], ["a"], changes)), changes)

    assert [change.text for change in plan.changes] == [reported]
