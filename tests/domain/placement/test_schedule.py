"""One pass from nothing: scores, selection, conditions (checklist S1-S14, C5, C8-C13)."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fleets import (
    decision,
    equal,
    exists,
    fleet_of,
    groups,
    inputs_of,
    later,
    placement,
    policy,
    predicate,
    score,
    scored,
)
from sully.api.cluster.types import (
    UNREACHABLE,
    AddOnScore,
    Placement,
    PrioritizerConfig,
    PrioritizerPolicy,
    ScoreCoordinate,
    Taint,
    Toleration,
)
from sully.domain.placement.incremental.deciding import decide
from sully.domain.placement.incremental.fleet import key_of
from sully.domain.placement.options import OCM, PlacementOptions
from sully.domain.placement.prioritizers import balance_score, resource_score
from sully.domain.placement.results.conditions import (
    PlacementCondition,
    Tally,
    merge_conditions,
    misconfigured,
    satisfied,
)
from sully.domain.placement.results.outcome import DISABLED, is_disabled
from sully.domain.placement.results.status import SUCCESS, Status
from sully.domain.placement.schedule import schedule, trace
from sully.machinery.compat import Compat
from sully.testing.builders import cluster, cluster_set, cluster_taint, set_binding
from sully.testing.clock import NOON

PLAIN = placement()
BASE = (cluster_set(), set_binding())
THREE = (*BASE, cluster("c1"), cluster("c2"), cluster("c3"))


@dataclass(frozen=True)
class Case:
    objects: tuple[Any, ...]
    desired: Placement = PLAIN
    selected: str = ""
    unscheduled: int = 0
    scores: dict[str, dict[str, int]] | None = None
    ranked: str | None = None
    status: Status = SUCCESS


def memory(name: str, amount: str) -> Any:
    return cluster(name, amounts={"memory": amount})


MEMORY = (*BASE, memory("c1", "100"), memory("c2", "50"), memory("c3", "0"))
ADD_ON = tuple(score(f"c{at}", "demo", demo=value) for at, value in ((1, 30), (2, 40), (3, 50)))

CASES = {
    "S1 one cluster, default policy": Case(
        (*BASE, cluster("c1")),
        selected="c1",
        scores={"Balance": {"c1": 100}, "Steady": {"c1": 0}},
    ),
    "S2 three wanted, one there": Case(
        (*BASE, cluster("c1")), placement(want=3), "c1", unscheduled=2
    ),
    "S3 invalid toleration": Case(
        THREE,
        placement("p", equal(key=""), want=1),
        scores={},
        status=Status(
            "Misconfigured", "TaintToleration", "If the key is empty, operator must be Exists."
        ),
    ),
    "S4 what is decided stays": Case(
        (*THREE, decision("p", "c2", "c3")),
        placement(want=2),
        "c2 c3",
        scores={
            "Balance": {"c1": 100, "c2": 100, "c3": 100},
            "Steady": {"c1": 0, "c2": 100, "c3": 100},
        },
    ),
    "S5 an empty mode is Additive": Case(
        THREE,
        placement(prioritizer_policy=policy(mode="")),
        "c1 c2 c3",
        scores={
            "Balance": {"c1": 100, "c2": 100, "c3": 100},
            "Steady": {"c1": 0, "c2": 0, "c3": 0},
        },
    ),
    "S6 taints leave two of three": Case(
        (
            *BASE,
            cluster("c1", cluster_taint()),
            cluster("c2", cluster_taint("k2", "v2")),
            cluster("c3"),
        ),
        placement("p", equal(), want=3),
        "c1 c3",
        unscheduled=1,
    ),
    "S7 Additive with memory and an add-on": Case(
        (*MEMORY, *ADD_ON),
        placement(
            want=2,
            prioritizer_policy=policy(
                scored("Balance", 3), scored("ResourceAllocatableMemory"), scored("demo/demo")
            ),
        ),
        "c1 c2",
        scores={
            "Balance": {"c1": 100, "c2": 100, "c3": 100},
            "Steady": {"c1": 0, "c2": 0, "c3": 0},
            "ResourceAllocatableMemory": {"c1": 100, "c2": 0, "c3": -100},
            "AddOn/demo/demo": {"c1": 30, "c2": 40, "c3": 50},
        },
    ),
    "S8 Exact: Steady does not run": Case(
        (*MEMORY, decision("p", "c3")),
        placement(
            want=2,
            prioritizer_policy=policy(
                scored("Balance", 3), scored("ResourceAllocatableMemory"), mode="Exact"
            ),
        ),
        "c1 c2",
        scores={
            "Balance": {"c1": 100, "c2": 100, "c3": 100},
            "ResourceAllocatableMemory": {"c1": 100, "c2": 0, "c3": -100},
        },
    ),
    "S9 four wanted, two there": Case(
        (*BASE, cluster("c1"), cluster("c2"), decision("p", "c2")),
        placement(want=4),
        "c1 c2",
        unscheduled=2,
    ),
    "S10 others have two": Case(
        (*THREE, decision("other", "c1"), decision("third", "c2")),
        placement(want=1),
        "c3",
        scores={
            "Balance": {"c1": -100, "c2": -100, "c3": 100},
            "Steady": {"c1": 0, "c2": 0, "c3": 0},
        },
        ranked="c3 c1 c2",
    ),
    "S11 others share one, own is another": Case(
        (*THREE, decision("o1", "c2", "c3"), decision("o2", "c1", "c2"), decision("p", "c3")),
        placement(want=1),
        "c3",
        scores={
            "Balance": {"c1": 0, "c2": -100, "c3": 0},
            "Steady": {"c1": 0, "c2": 0, "c3": 100},
        },
    ),
    "S12 own decisions do not count for Balance": Case(
        (*THREE, decision("p", "c1"), decision("o1", "c1", "c2"), decision("o2", "c1", "c3")),
        placement(want=1, prioritizer_policy=policy(scored("Balance"), mode="Exact")),
        "c2",
        scores={"Balance": {"c1": -100, "c2": 0, "c3": 0}},
    ),
    "a decision of the same name elsewhere is another's": Case(
        (*THREE, decision("p", "c1", namespace="elsewhere")),
        placement(want=1),
        "c2",
    ),
    "the most decided cluster need not be feasible": Case(
        (*THREE, decision("o1", "gone", "c1"), decision("o2", "gone")),
        placement(want=3, prioritizer_policy=policy(scored("Balance"), mode="Exact")),
        "c1 c2 c3",
        scores={"Balance": {"c1": 0, "c2": 100, "c3": 100}},
    ),
    "S13 resources spread": Case(
        (*BASE, memory("c1", "20"), memory("c2", "60"), memory("c3", "100")),
        placement(
            want=1,
            prioritizer_policy=policy(scored("ResourceAllocatableMemory"), mode="Exact"),
        ),
        "c3",
        scores={"ResourceAllocatableMemory": {"c1": -100, "c2": 0, "c3": 100}},
    ),
    "S13 all equal": Case(
        (*BASE, memory("c1", "0"), memory("c2", "0")),
        placement(prioritizer_policy=policy(scored("ResourceAllocatableMemory"), mode="Exact")),
        "c1 c2",
        scores={"ResourceAllocatableMemory": {"c1": 100, "c2": 100}},
    ),
    "S13 all equal and more than nothing": Case(
        (*BASE, memory("c1", "8Gi"), memory("c2", "8Gi")),
        placement(prioritizer_policy=policy(scored("ResourceAllocatableMemory"), mode="Exact")),
        "c1 c2",
        scores={"ResourceAllocatableMemory": {"c1": 100, "c2": 100}},
    ),
    "S13 none reported": Case(
        THREE,
        placement(prioritizer_policy=policy(scored("ResourceAllocatableCPU"), mode="Exact")),
        "c1 c2 c3",
        scores={"ResourceAllocatableCPU": {}},
    ),
    "one without the resource stands between": Case(
        (*BASE, memory("c1", "1Gi"), cluster("c2"), memory("c3", "1Mi")),
        placement(
            want=2,
            prioritizer_policy=policy(scored("ResourceAllocatableMemory"), mode="Exact"),
        ),
        "c1 c2",
        ranked="c1 c2 c3",
    ),
    "S14 a missing score is 0": Case(
        (*THREE, score("c2", "test", cpu=5), score("c3", "test", other=9)),
        placement(want=1, prioritizer_policy=policy(scored("test/cpu"), mode="Exact")),
        "c2",
        scores={"AddOn/test/cpu": {"c1": 0, "c2": 5, "c3": 0}},
    ),
    "S14 an expired score is 0, with a warning": Case(
        (*THREE, score("c1", "test", cpu=5, valid_until=-1), score("c2", "test", cpu=1)),
        placement(want=1, prioritizer_policy=policy(scored("test/cpu"), mode="Exact")),
        "c2",
        status=Status("Warning", "AddOn/test/cpu", "AddOnPlacementScores c1/test expired"),
    ),
    "a score is good until its last instant": Case(
        (*THREE, score("c3", "test", cpu=5, valid_until=0)),
        placement(want=1, prioritizer_policy=policy(scored("test/cpu"), mode="Exact")),
        "c3",
    ),
    "several expired, in order of name": Case(
        (*THREE, *(score(name, "test", cpu=5, valid_until=-1) for name in ("c2", "c1"))),
        placement(prioritizer_policy=policy(scored("test/cpu"), mode="Exact")),
        "c1 c2 c3",
        status=Status("Warning", "AddOn/test/cpu", "AddOnPlacementScores c1/test c2/test expired"),
    ),
    "weight 0 switches a default off": Case(
        (*THREE, decision("o1", "c1"), decision("p", "c3")),
        placement(want=1, prioritizer_policy=policy(scored("Balance", 0), scored("Steady", 0))),
        "c1",
        scores={},
    ),
    "a negative weight turns the order": Case(
        (*THREE, decision("o1", "c1", "c2")),
        placement(want=1, prioritizer_policy=policy(scored("Balance", -1))),
        "c1",
    ),
    "the later of two entries for a built-in counts": Case(
        (*THREE, decision("o1", "c1"), decision("p", "c1")),
        placement(want=1, prioritizer_policy=policy(scored("Steady", 0), scored("Steady", 5))),
        "c1",
    ),
    "two entries for one add-on both count": Case(
        (*THREE, score("c2", "s", x=60), score("c3", "s", y=100)),
        placement(
            want=1,
            prioritizer_policy=policy(scored("s/x"), scored("s/x"), scored("s/y"), mode="Exact"),
        ),
        "c2",
    ),
    "Exact with nothing goes by name": Case(
        (*THREE, decision("o1", "c1"), decision("p", "c3")),
        placement(want=1, prioritizer_policy=policy(mode="Exact")),
        "c1",
    ),
    "names go by bytes": Case(
        (*BASE, cluster("c10"), cluster("c9"), cluster("c1")), placement(want=2), "c1 c10"
    ),
    "zero wanted": Case(THREE, placement(want=0)),
    "fewer than none wanted is none": Case(THREE, placement(want=-1)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pass(case: Case) -> None:
    got = trace(inputs_of(case.objects, case.desired))

    assert sorted(got.selected) == case.selected.split()
    assert got.unscheduled == case.unscheduled
    assert got.status == case.status
    if case.scores is not None:
        assert {one.name: scores for one, scores in got.scores} == case.scores
    if case.ranked is not None:
        assert got.ranked == case.ranked.split()


def test_every_case_of_kubernetes() -> None:
    numbers = {name.split()[0] for name in CASES if name[0] == "S" and name[1].isdigit()}

    assert numbers == {f"S{number}" for number in range(1, 15)}


def test_stages_of_a_pass() -> None:
    """S1 and S3: an invalid toleration ends the pass after the first stage."""
    good = trace(inputs_of(THREE, placement()))
    bad = trace(inputs_of(THREE, placement("p", equal(key=""))))

    assert (len(good.qualified or ()), len(good.feasible or ())) == (3, 3)
    assert (len(bad.qualified or ()), bad.feasible) == (3, None)


BALANCE = {(3, 3): -100, (2, 3): -32, (1, 3): 32, (0, 3): 100, (1, 2): 0, (0, 0): 100, (1, 6): 66}


@pytest.mark.parametrize(("counts", "want"), BALANCE.items())
def test_balance(counts: tuple[int, int], want: int) -> None:
    assert balance_score(*counts) == want


@pytest.mark.parametrize(
    ("amount", "want"), [(0.0, -100), (8.0, 100), (4.0, 0), (3.0, -25), (7.99, 99)]
)
def test_resource(amount: float, want: int) -> None:
    assert resource_score(amount, 0.0, 8.0) == want


NO_ADD_ON = PrioritizerConfig(score_coordinate=ScoreCoordinate(type="AddOn"))
WRONG = {
    "mode": (policy(mode="x"), "incorrect prioritizer policy mode: x"),
    "no coordinate": (policy(PrioritizerConfig()), "scoreCoordinate field is required"),
    "built-in": (policy(scored("Fastest")), "incorrect builtin prioritizer: Fastest"),
    "Spread": (policy(scored("Spread")), "incorrect builtin prioritizer: Spread"),
    "no add-on": (policy(NO_ADD_ON), "addOn should not be empty"),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("objects", [THREE, BASE], ids=["clusters", "no cluster"])
def test_wrong_prioritizer(
    wrong: PrioritizerPolicy, message: str, objects: tuple[Any, ...]
) -> None:
    got = trace(inputs_of(objects, placement(prioritizer_policy=wrong)))

    assert got.status == Status("Misconfigured", "", message)
    assert got.selected == []


def test_wrong_prioritizer_that_is_off() -> None:
    got = trace(inputs_of(THREE, placement(prioritizer_policy=policy(scored("Fastest", 0)))))

    assert not got.status.stops


@pytest.mark.parametrize(("once", "want"), [(False, 200), (True, 100)])
def test_built_in_with_a_stray_add_on(once: bool, want: int) -> None:
    """OCM counts it beside the default; it was meant to replace it."""
    stray = scored("Balance", add_on=AddOnScore(resource_name="a", score_name="b"))
    desired = placement(prioritizer_policy=policy(stray))
    got = trace(
        inputs_of(
            THREE,
            desired,
            options=PlacementOptions(
                compat=replace(Compat.KUBERNETES, merges_built_in_prioritizers=once)
            ),
        )
    )

    assert got.totals == {"c1": want, "c2": want, "c3": want}


GOOD = (
    "PlacementMisconfigured",
    "False",
    "Succeedconfigured",
    "Placement configurations check pass",
)
UNMATCHED = (
    "PlacementSatisfied",
    "False",
    "NoManagedClusterMatched",
    "No ManagedCluster matches any of the cluster predicate",
)
DONE = ("PlacementSatisfied", "True", "AllDecisionsScheduled", "All cluster decisions scheduled")


def unsatisfied(reason: str, message: str) -> tuple[str, ...]:
    return "PlacementSatisfied", "False", reason, message


CONDITIONS = {
    "no binding": (
        (cluster_set(), cluster("c1")),
        placement(),
        GOOD,
        unsatisfied(
            "NoManagedClusterSetBindings",
            "No valid ManagedClusterSetBindings found in placement namespace",
        ),
    ),
    "C8 a binding to a set that is not there": (
        (set_binding(), cluster("c1")),
        placement(),
        GOOD,
        unsatisfied(
            "NoManagedClusterSetBindings",
            "No valid ManagedClusterSetBindings found in placement namespace",
        ),
    ),
    "no set in common": (
        THREE,
        placement(cluster_sets=("x", "w")),
        GOOD,
        unsatisfied(
            "NoIntersection", "None of ManagedClusterSets [x,w] is bound to placement namespace"
        ),
    ),
    "empty sets": (
        (*BASE, cluster_set("b"), set_binding("b")),
        placement(),
        GOOD,
        unsatisfied(
            "AllManagedClusterSetsEmpty",
            "All ManagedClusterSets [b,fleet] have no member ManagedCluster",
        ),
    ),
    "only one that is being deleted": (
        (*BASE, cluster("c1", terminating=True)),
        placement(),
        GOOD,
        unsatisfied(
            "AllManagedClusterSetsEmpty",
            "All ManagedClusterSets [fleet] have no member ManagedCluster",
        ),
    ),
    "nothing matches": (THREE, placement(predicates=(predicate("false"),)), GOOD, UNMATCHED),
    "taints take all": ((*BASE, cluster("c1", cluster_taint())), placement(), GOOD, UNMATCHED),
    "none wanted": (THREE, placement(want=0), GOOD, UNMATCHED),
    "all there": (THREE, placement(want=3), GOOD, DONE),
    "some missing": (
        THREE,
        placement(want=5),
        GOOD,
        unsatisfied("NotAllDecisionsScheduled", "2 cluster decisions unscheduled"),
    ),
    "misconfigured": (
        THREE,
        placement(prioritizer_policy=policy(mode="x")),
        (
            "PlacementMisconfigured",
            "True",
            "Misconfigured",
            ":incorrect prioritizer policy mode: x",
        ),
        UNMATCHED,
    ),
    "an invalid toleration is not looked at without clusters": (
        BASE,
        placement("p", equal(key="")),
        GOOD,
        unsatisfied(
            "AllManagedClusterSetsEmpty",
            "All ManagedClusterSets [fleet] have no member ManagedCluster",
        ),
    ),
}


@pytest.mark.parametrize(
    ("objects", "desired", "configured", "satisfied"), CONDITIONS.values(), ids=CONDITIONS.keys()
)
def test_conditions(
    objects: tuple[Any, ...],
    desired: Placement,
    configured: tuple[str, ...],
    satisfied: tuple[str, ...],
) -> None:
    """C5, C11: every row of the table of reasons."""
    got = [
        (one.type, one.status, one.reason, one.message)
        for one in schedule(inputs_of(objects, desired)).conditions
    ]

    assert got == [configured, satisfied]


def test_an_error_is_not_a_misconfiguration() -> None:
    """C12: the text of an error is reported, and the configuration still counts as valid."""
    failed = Status("Error", "x", "it failed")
    tally = Tally((), 1, ("fleet",), 3, 0, 0)

    assert misconfigured(failed).status == "False"
    assert satisfied(tally, failed) == PlacementCondition(
        "PlacementSatisfied", "False", "NotAllDecisionsScheduled", "it failed"
    )


def test_times_of_conditions_move_with_the_status() -> None:
    findings = schedule(inputs_of(THREE, placement())).conditions
    first = merge_conditions((), findings, NOON)
    again = merge_conditions(first, findings, later(60))
    turned = merge_conditions(
        first, schedule(inputs_of(THREE, placement(want=0))).conditions, later(60)
    )

    assert again == first
    assert [one.last_transition_time for one in turned] == [NOON, later(60)]


@pytest.mark.parametrize(
    ("annotations", "want"), [({}, False), ({"true": ""}, False), ({DISABLED: "true"}, True)]
)
def test_disabled(annotations: dict[str, str], want: bool) -> None:
    """C7."""
    assert is_disabled(placement(annotations=annotations)) is want


SOFT = cluster_taint(effect="PreferNoSelect")
PREFERENCES = {
    "the others come first": ((cluster("a", SOFT), cluster("b")), placement(want=1), "b"),
    "where there are not enough, it is taken": (
        (cluster("a", SOFT), cluster("b")),
        placement(want=2),
        "a b",
    ),
    "it also loses what it has": (
        (cluster("a", SOFT), cluster("b"), decision("p", "a")),
        placement(want=1),
        "b",
    ),
    "tolerated it is like the others": (
        (cluster("a", SOFT), cluster("b")),
        placement("p", exists(), want=1),
        "a",
    ),
    "until the toleration ends": (
        (cluster("a", cluster_taint(effect="PreferNoSelect", added=-10)), cluster("b")),
        placement("p", exists(seconds=10), want=1),
        "b",
    ),
}


BAD = cluster_taint(added=-5)
BRIEFLY = exists(seconds=10)
LASTING = {
    "a cluster that will be removed comes last": (
        (cluster("a", BAD), cluster("b")),
        placement("p", BRIEFLY, want=1),
        "b",
    ),
    "after those that are not preferred": (
        (cluster("a", BAD), cluster("b", cluster_taint("soft", effect="PreferNoSelect"))),
        placement("p", BRIEFLY, want=1),
        "b",
    ),
    "where there are not enough, it is taken": (
        (cluster("a", BAD), cluster("b")),
        placement("p", BRIEFLY, want=2),
        "a b",
    ),
    "it keeps what it has": (
        (cluster("a", BAD), cluster("b"), decision("p", "a")),
        placement("p", BRIEFLY, want=1),
        "a",
    ),
    "tolerated indefinitely it is like the others": (
        (cluster("a", BAD), cluster("b")),
        placement("p", exists(), want=1),
        "a",
    ),
    "a taint that removes nothing does not count": (
        (cluster("a", cluster_taint(effect="NoSelectIfNew")), cluster("b")),
        placement("p", BRIEFLY, want=1),
        "a",
    ),
}
PREFERENCES |= LASTING


@pytest.mark.parametrize(
    ("objects", "desired", "want"), PREFERENCES.values(), ids=PREFERENCES.keys()
)
def test_prefer(objects: tuple[Any, ...], desired: Placement, want: str) -> None:
    got = schedule(inputs_of((*BASE, *objects), desired, options=PlacementOptions()))

    assert got.clusters == tuple(want.split())


HOLDING = {
    "a toleration": placement("p", equal(key="")),
    "an expression": placement(predicates=(predicate("!!"),)),
    "a prioritizer": placement(prioritizer_policy=policy(scored("Fastest"))),
    "a group size": placement(decision_strategy=groups(size="x")),
}


@pytest.mark.parametrize("desired", HOLDING.values(), ids=HOLDING.keys())
@pytest.mark.parametrize("hold", [False, True])
def test_hold(desired: Placement, hold: bool) -> None:
    """What was decided stays when the placement breaks, and is still called broken.

    Not what the namespace has no right to any more: else breaking a placement would keep it.
    """
    elsewhere = (cluster("going", terminating=True), cluster("moved", sets="elsewhere"))
    had = decision("p", "c1", "c2", "c3", "going", "gone", "moved")
    objects, options = (
        (*THREE, *elsewhere, had, desired),
        PlacementOptions(compat=replace(Compat.KUBERNETES, keeps_clusters_on_error=hold)),
    )
    got = schedule(inputs_of(objects, desired, options=options))

    assert got.clusters == (("c1", "c2", "c3") if hold else ())
    assert got == decide(fleet_of(objects, options), key_of(desired), later(0))
    assert got.conditions[0].status == "True"


def test_quoted_group_size() -> None:
    desired = placement(decision_strategy=groups(size="2"))
    reference, ours = (
        schedule(inputs_of(THREE, desired, options=options))
        for options in (OCM, PlacementOptions())
    )

    assert reference.conditions[0].message == ":2 invalid type: string is not a percentage"
    assert (reference.slices, reference.groups, reference.selected) == ((), (), 3)
    assert [one.cluster_count for one in ours.groups] == [2, 1]


REQUEUES = {
    "the first to end": ((cluster_taint(),), (exists(seconds=30),), OCM, 30),
    "nothing ends": ((cluster_taint(),), (exists(),), OCM, None),
    "the default for health": (
        (cluster_taint(UNREACHABLE, ""),),
        (),
        PlacementOptions(health_toleration_seconds=300),
        300,
    ),
}


@pytest.mark.parametrize(
    ("taints", "tolerations", "options", "want"), REQUEUES.values(), ids=REQUEUES.keys()
)
def test_requeue(
    taints: tuple[Taint],
    tolerations: tuple[Toleration],
    options: PlacementOptions,
    want: float | None,
) -> None:
    objects = (*BASE, cluster("a", *taints))
    got = schedule(inputs_of(objects, placement("p", *tolerations), options=options))

    assert got.requeue_at == (later(want) if want is not None else None)
    assert got.clusters == ("a",)


def test_requeue_when_a_score_ends() -> None:
    objects = (*THREE, score("c3", "s", x=1, valid_until=40))
    desired = placement(want=1, prioritizer_policy=policy(scored("s/x"), mode="Exact"))

    assert schedule(inputs_of(objects, desired)).requeue_at is None
    ours = schedule(inputs_of(objects, desired, options=PlacementOptions())).requeue_at
    assert ours is not None
    assert ours > later(40)
    assert schedule(inputs_of(objects, desired, at=41, options=PlacementOptions())).clusters == (
        "c1",
    )


@given(st.randoms(use_true_random=False), st.integers(0, 5))
def test_order_of_objects_never_matters(random: Random, want: int) -> None:
    objects: list[Any] = [
        *MEMORY,
        *ADD_ON,
        cluster("c4", cluster_taint()),
        decision("o1", "c1", "c2"),
        decision("p", "c3"),
    ]
    desired = placement(
        "p",
        exists(seconds=9),
        want=want,
        prioritizer_policy=policy(scored("ResourceAllocatableMemory"), scored("demo/demo")),
    )
    expected = schedule(inputs_of(objects, desired))
    random.shuffle(objects)

    assert schedule(inputs_of(objects, desired)) == expected
