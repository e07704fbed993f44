"""Which placements a change may matter to (checklist C16): those, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from fleets import decision, fleet_of, later, placement, policy, predicate, put, score, scored
from sully.api.cluster.types import Placement
from sully.domain.placement.incremental.deciding import decide
from sully.domain.placement.incremental.fleet import PlacementKeys
from sully.domain.placement.options import OCM, PlacementOptions
from sully.testing.builders import cluster, cluster_set, cluster_taint, set_binding

KEY = ("apps", "p")
WORLD = (cluster_set(), set_binding(), cluster("a"), cluster("b"), placement(want=1))
TOUCHES: dict[str, tuple[Any, PlacementKeys]] = {
    "C16 a cluster": (cluster("a", cluster_taint()), {KEY}),
    "a cluster like before": (cluster("a"), set()),
    "a condition of a cluster": (cluster("a", conditions={"x": "True"}), set()),
    "a cluster elsewhere": (cluster("z", sets="other"), set()),
    "C16 a cluster that moves away": (cluster("a", sets="other"), {KEY}),
    "C16 a set": (cluster_set(), {KEY}),
    "C16 a set nobody is bound to": (cluster_set("other"), set()),
    "C16 a binding": (set_binding("other"), {KEY}),
    "C16 a binding elsewhere": (set_binding("fleet", "elsewhere"), set()),
    "its own decision": (decision("p", "a"), {KEY}),
    "the decision of another": (decision("q", "a"), {("apps", "q")}),
    "C16 a score that nothing reads": (score("a", "s", x=1), set()),
}


@pytest.mark.parametrize(("change", "want"), TOUCHES.values(), ids=TOUCHES.keys())
def test_who_is_touched(change: Any, want: PlacementKeys) -> None:
    fleet = fleet_of(WORLD)
    decide(fleet, KEY, later(0))

    assert put(fleet, change) == want


READS = policy(scored("s/x"))
MANY = (
    *(cluster_set(), cluster_set("other"), cluster("a"), cluster("z", sets="other")),
    *(set_binding(), set_binding("other"), set_binding("other", "elsewhere")),
    placement("any", prioritizer_policy=READS),
    placement("named", cluster_sets=("fleet",), prioritizer_policy=READS),
    placement("others", cluster_sets=("other",), prioritizer_policy=READS),
    placement("away", namespace="elsewhere", prioritizer_policy=READS),
)
ANY, NAMED, OTHERS = (("apps", name) for name in ("any", "named", "others"))
AWAY = ("elsewhere", "away")
AMONG: dict[str, tuple[Any, PlacementKeys]] = {
    "C16 a set": (cluster_set(), {ANY, NAMED}),
    "C16 a set that two namespaces may use": (cluster_set("other"), {ANY, OTHERS, AWAY}),
    "C16 a binding": (set_binding(), {ANY, NAMED}),
    "C16 a cluster": (cluster("a", cluster_taint()), {ANY, NAMED}),
    "C16 a cluster that moves": (cluster("a", sets="other"), {ANY, NAMED, OTHERS, AWAY}),
    "C16 a score of a cluster": (score("a", "s", x=1), {ANY, NAMED}),
    "C16 a score of another cluster": (score("z", "s", x=1), {ANY, OTHERS, AWAY}),
    "C16 a score of a cluster nobody has": (score("q", "s", x=1), set()),
}


@pytest.mark.parametrize(("change", "want"), AMONG.values(), ids=AMONG.keys())
def test_who_is_touched_among_many(change: Any, want: PlacementKeys) -> None:
    fleet = fleet_of(MANY)
    for key in fleet.placements:
        decide(fleet, key, later(0))

    assert put(fleet, change) == want


@pytest.mark.parametrize(
    ("desired", "options", "want"),
    [
        (placement(prioritizer_policy=policy(scored("s/x"))), OCM, {KEY}),
        (placement(prioritizer_policy=policy(scored("t/x"))), OCM, set()),
        (
            placement(predicates=(predicate('managedCluster.scores("s").size() > 0'),)),
            OCM,
            set(),
        ),
        (
            placement(predicates=(predicate('managedCluster.scores("s").size() > 0'),)),
            PlacementOptions(),
            {KEY},
        ),
    ],
    ids=["a prioritizer", "another score", "an expression, in OCM", "an expression"],
)
def test_who_is_touched_by_a_score(
    desired: Placement, options: PlacementOptions, want: PlacementKeys
) -> None:
    fleet = fleet_of((*WORLD, desired), options)
    decide(fleet, KEY, later(0))

    assert put(fleet, score("a", "s", x=1)) == want
