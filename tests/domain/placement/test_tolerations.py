"""Taints of clusters and tolerations of placements, case by case as OCM tests them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fleets import decision, equal, exists, inputs_of, later, placement
from sully.api.cluster.types import UNAVAILABLE, UNREACHABLE, ManagedCluster, Taint, Toleration
from sully.domain.placement.options import OCM, PlacementOptions
from sully.domain.placement.results.status import Status
from sully.domain.placement.schedule import trace
from sully.domain.placement.tolerations import (
    TaintFinding,
    TaintVerdict,
    effective,
    expiry,
    explain,
    judge,
    problem,
)
from sully.machinery.compat import Compat
from sully.testing.builders import cluster, cluster_set, cluster_taint, set_binding

IF_NEW, PREFER = "NoSelectIfNew", "PreferNoSelect"
KEY_EMPTY = "If the key is empty, operator must be Exists."
EXISTS_VALUE = "If the operator is Exists, the value should be empty."


@dataclass(frozen=True)
class Case:
    """Clusters are named a, b, c …; `want` are those that pass the filter."""

    taints: tuple[tuple[Taint, ...], ...]
    tolerations: tuple[Toleration, ...] = ()
    decided: str = ""
    want: str = ""
    problem: str = ""
    options: PlacementOptions = OCM
    requeue: float | None = None
    """Seconds after noon at which the decided clusters must be requeued."""


ONE = ((cluster_taint(),),)
NEW = ((cluster_taint(effect=IF_NEW),),)
AGES = tuple((cluster_taint(added=-age),) for age in (8, 9, 10))

CASES = {
    "T1 no toleration": Case(ONE),
    "T2 Equal": Case(ONE, (equal(),), want="a"),
    "T3 Equal with an empty key": Case(ONE, (equal(key=""),), problem=KEY_EMPTY),
    "T3 no operator and an empty key": Case(ONE, (Toleration(),), problem=KEY_EMPTY),
    "T4 Equal with an empty value": Case(ONE, (equal(value=""),)),
    "T5 another value, another key": Case(
        ((cluster_taint(value="v2"),), (cluster_taint(key="k2"),)), (equal(),), want=""
    ),
    "T6 Exists": Case(ONE, (exists(),), want="a"),
    "T7 Exists with a value": Case(
        ONE, (Toleration(operator="Exists", value="v1"),), problem=EXISTS_VALUE
    ),
    "T8 Exists of another key": Case(ONE, (exists("k2"),)),
    "T9 NoSelectIfNew, not decided": Case(NEW),
    "T9 NoSelectIfNew, decided": Case(NEW, decided="a", want="a"),
    "T10 NoSelectIfNew tolerated, not decided": Case(NEW, (equal(),), want="a"),
    "T10 NoSelectIfNew tolerated, decided": Case(NEW, (equal(),), "a", want="a"),
    "T11 NoSelectIfNew, other toleration, not decided": Case(NEW, (equal("k2"),)),
    "T11 NoSelectIfNew, other toleration, decided": Case(NEW, (equal("k2"),), "a", want="a"),
    "T12 PreferNoSelect": Case(((cluster_taint(effect=PREFER),),), want="a"),
    "T12 PreferNoSelect tolerated": Case(((cluster_taint(effect=PREFER),),), (equal(),), want="a"),
    "T12 PreferNoSelect, other toleration": Case(
        ((cluster_taint(effect=PREFER),),), (equal("k2"),), want="a"
    ),
    "T13 two taints each, both tolerated": Case(
        ((cluster_taint(), cluster_taint("k2")), (cluster_taint("k2"), cluster_taint())),
        (equal(), equal("k2")),
        want="ab",
    ),
    "two taints, one tolerated": Case(((cluster_taint(), cluster_taint("k2")),), (equal(),)),
    "T14 effect empty": Case(ONE, (equal(effect=""),), want="a"),
    "T14 effect of another kind": Case(ONE, (equal(effect=IF_NEW),)),
    "T14 effect the same": Case(ONE, (equal(effect="NoSelect"),), want="a"),
    "T15 NoSelectIfNew, effect empty": Case(NEW, (equal(),), want="a"),
    "T15 NoSelectIfNew, effect the same": Case(NEW, (equal(effect=IF_NEW),), want="a"),
    "T15 NoSelectIfNew, effect NoSelect": Case(NEW, (equal(effect="NoSelect"),)),
    "T15 NoSelectIfNew, value differs": Case(NEW, (equal(value="x", effect=IF_NEW),)),
    "T16 decided, value and effect differ": Case(
        NEW, (equal(value="x", effect="NoSelect"),), "a", want="a"
    ),
    "T17 ten seconds, undecided": Case(AGES, (exists(seconds=10),), want="ab"),
    "T18 ten seconds, two decided": Case(
        AGES, (exists(seconds=10),), decided="ab", want="ab", requeue=1
    ),
    "an expired toleration lets the next one speak": Case(
        ((cluster_taint(added=-20),),),
        (exists(seconds=10), exists(seconds=30)),
        "a",
        "a",
        requeue=10,
    ),
    "the first that is valid sets the time, though another lasts longer": Case(
        ((cluster_taint(),),), (exists(seconds=10), exists()), "a", "a", requeue=10
    ),
    "two taints, the shorter decides": Case(
        ((cluster_taint(), cluster_taint("k2")),),
        (exists(seconds=10), exists("k2", seconds=5)),
        "a",
        "a",
        requeue=5,
    ),
    "NoSelectIfNew, tolerated a while, then decided: kept without end": Case(
        NEW, (exists(seconds=10),), "a", "a"
    ),
    "no time on the taint is long ago": Case(
        ((cluster_taint(added=None),),), (exists(seconds=10**9),)
    ),
    "no time on the taint is just now": Case(
        ((cluster_taint(added=None),),),
        (exists(seconds=1),),
        want="a",
        options=PlacementOptions(),
    ),
    "no time and no seconds": Case(
        ((cluster_taint(added=None),),), (exists(seconds=0),), options=PlacementOptions()
    ),
    "no time, no seconds": Case(((cluster_taint(added=None),),), (exists(),), want="a"),
    "an unknown operator matches nothing": Case(
        ONE, (Toleration(key="k1", operator="Like", value="v1"),)
    ),
    "a key alone matches the health taints": Case(
        ((cluster_taint(UNREACHABLE, ""),),), (Toleration(key=UNREACHABLE),), want="a"
    ),
    "everything tolerated": Case(ONE, (Toleration(operator="Exists"),), want="a"),
    "seconds with the effect NoSelectIfNew": Case(
        ((cluster_taint(effect=IF_NEW, added=-20),),),
        (exists(effect=IF_NEW, seconds=10),),
        want="a",
        options=PlacementOptions(),
    ),
    "seconds with the effect NoSelectIfNew count in OCM": Case(
        ((cluster_taint(effect=IF_NEW, added=-20),),), (exists(effect=IF_NEW, seconds=10),)
    ),
    "an invalid toleration without a cluster": Case((), (equal(key=""),)),
}


def world(case: Case) -> list[object]:
    clusters = [cluster(name, *marks) for name, marks in zip("abcdef", case.taints, strict=False)]
    return [cluster_set(), set_binding(), decision("p", *case.decided), *clusters]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_filter(case: Case) -> None:
    got = trace(inputs_of(world(case), placement("p", *case.tolerations), options=case.options))

    if case.problem:
        assert got.status == Status("Misconfigured", "TaintToleration", case.problem)
        assert got.feasible is None
        return
    assert got.feasible is not None
    assert "".join(one.name for one in got.feasible) == case.want
    ends = [got.verdicts[name].stays_until for name in case.decided]
    first = min((end for end in ends if end is not None), default=None)
    assert first == (later(case.requeue) if case.requeue is not None else None)


EDGES = {
    "none": (None, None, None),
    "zero": (0, later(0), later(0)),
    "negative": (-5, later(-5), later(-5)),
    "an hour": (3600, later(3600), later(3600)),
    "the most that fits": (9223372036, later(9223372036), later(9223372036)),
}


@pytest.mark.parametrize(("seconds", "reference", "exact"), EDGES.values(), ids=EDGES.keys())
def test_expiry(seconds: int | None, reference: datetime | None, exact: datetime | None) -> None:
    toleration = exists(seconds=seconds)

    assert expiry(toleration, cluster_taint(), Compat.KUBERNETES) == reference
    assert expiry(toleration, cluster_taint(), Compat.SULLY) == exact


@pytest.mark.parametrize("seconds", [9223372037, 36893488147])
def test_seconds_that_overflow(seconds: int) -> None:
    """OCM counts nanoseconds in 64 bits: more of them mean not tolerated at all."""
    over = expiry(exists(seconds=seconds), cluster_taint(), Compat.KUBERNETES)
    exact = expiry(exists(seconds=seconds), cluster_taint(), Compat.SULLY)

    assert over is not None
    assert over < later(0)
    assert exact is not None
    assert exact > later(9223372035)


def test_more_seconds_than_there_are() -> None:
    end = expiry(exists(seconds=2**62), cluster_taint(), Compat.SULLY)

    assert end is not None
    assert end.year == 9999


PREFERRING = PlacementOptions(compat=replace(Compat.KUBERNETES, honors_prefer_no_select=True))
VERDICTS = {
    "no taint": ((), (), OCM, TaintVerdict()),
    "OCM ignores PreferNoSelect": (
        (cluster_taint(effect=PREFER),),
        (),
        OCM,
        TaintVerdict(),
    ),
    "PreferNoSelect counts": (
        (cluster_taint(effect=PREFER),),
        (),
        PREFERRING,
        TaintVerdict(disliked=True),
    ),
    "PreferNoSelect tolerated for a while": (
        (cluster_taint(effect=PREFER),),
        (exists(seconds=5),),
        PREFERRING,
        TaintVerdict(stays_until=later(5), expires=later(5)),
    ),
    "health alone": (
        (cluster_taint(UNREACHABLE, ""),),
        (),
        OCM,
        TaintVerdict(
            cluster_taint(UNREACHABLE, ""), cluster_taint(UNREACHABLE, ""), unhealthy=True
        ),
    ),
    "health and more": (
        (cluster_taint(UNREACHABLE, ""), cluster_taint()),
        (),
        OCM,
        TaintVerdict(cluster_taint(UNREACHABLE, ""), cluster_taint(UNREACHABLE, "")),
    ),
    "new ones are kept out, others stay": (
        (cluster_taint(effect=IF_NEW),),
        (),
        OCM,
        TaintVerdict(cluster_taint(effect=IF_NEW)),
    ),
}


@pytest.mark.parametrize(
    ("taints", "tolerations", "options", "want"), VERDICTS.values(), ids=VERDICTS.keys()
)
def test_judge(
    taints: tuple[Taint, ...],
    tolerations: tuple[Toleration, ...],
    options: PlacementOptions,
    want: TaintVerdict,
) -> None:
    assert judge(taints, tolerations, later(0), options) == want


NEAREST = {
    "nothing to be near": ((), TaintFinding(cluster_taint(), False)),
    "tolerated": ((exists(),), TaintFinding(cluster_taint(), True, exists())),
    "tolerated until": (
        (exists("k2"), exists(seconds=30)),
        TaintFinding(cluster_taint(), True, exists(seconds=30), later(30)),
    ),
    "another effect": (
        (exists(effect=IF_NEW),),
        TaintFinding(cluster_taint(), False, exists(effect=IF_NEW), None, "effect"),
    ),
    "another key": (
        (exists("k2"),),
        TaintFinding(cluster_taint(), False, exists("k2"), None, "key"),
    ),
    "another value is nearer than another key": (
        (exists("k2"), equal(value="x")),
        TaintFinding(cluster_taint(), False, equal(value="x"), None, "value"),
    ),
    "an unknown operator": (
        (Toleration(key="k1", operator="Like"),),
        TaintFinding(
            cluster_taint(), False, Toleration(key="k1", operator="Like"), None, "operator"
        ),
    ),
    "one that ran out is nearest, and of two the longer": (
        (equal(value="x"), exists(seconds=5), exists(seconds=9), exists(seconds=7)),
        TaintFinding(cluster_taint(), False, exists(seconds=9), later(9), "expired"),
    ),
}


@pytest.mark.parametrize(("tolerations", "want"), NEAREST.values(), ids=NEAREST.keys())
def test_explain(tolerations: tuple[Toleration, ...], want: TaintFinding) -> None:
    assert explain(cluster_taint(), tolerations, later(20), Compat.KUBERNETES) == want


DEFAULTED = {
    "both are added": ((), [UNAVAILABLE, UNREACHABLE]),
    "what is about one of them replaces it": ((exists(UNREACHABLE, seconds=5),), [UNAVAILABLE]),
    "so does one for every key": ((Toleration(operator="Exists"),), []),
    "not one of another effect": (
        (exists(UNREACHABLE, effect=IF_NEW),),
        [UNAVAILABLE, UNREACHABLE],
    ),
}


@pytest.mark.parametrize(("own", "want"), DEFAULTED.values(), ids=DEFAULTED.keys())
def test_default_for_health(own: tuple[Toleration, ...], want: list[str]) -> None:
    got = effective(own, PlacementOptions(health_toleration_seconds=300))

    assert got[: len(own)] == own
    assert [one.key for one in got[len(own) :]] == want
    assert {one.toleration_seconds for one in got[len(own) :]} <= {300}
    assert effective(own, PlacementOptions()) == own


KEYS = st.sampled_from(["k1", "k2"])
VALUES = st.sampled_from(["", "v1"])
EFFECTS = st.sampled_from(["NoSelect", IF_NEW, PREFER])
SECONDS = st.none() | st.integers(-10, 60)
TAINTS = st.builds(cluster_taint, KEYS, VALUES, EFFECTS, added=st.integers(-30, 0))
TOLERATIONS = st.one_of(
    st.builds(equal, KEYS, VALUES, st.just("") | EFFECTS, SECONDS),
    st.builds(exists, st.just("") | KEYS, st.just("") | EFFECTS, SECONDS),
)


@given(st.lists(TAINTS, max_size=3), st.lists(TOLERATIONS, max_size=3))
def test_order_never_matters(taints: list[Taint], tolerations: list[Toleration]) -> None:
    """Whether a cluster passes; which end is reported first may depend on the order."""

    def passes(marks: tuple[Taint, ...], all_: tuple[Toleration, ...]) -> tuple[bool, bool, bool]:
        got = judge(marks, all_, later(0), PREFERRING)
        return got.blocks is None, got.expels is None, got.disliked

    answers = {
        passes(marks, all_) for marks in permutations(taints) for all_ in permutations(tolerations)
    }
    assert len(answers) == 1


@given(
    TAINTS,
    TOLERATIONS,
    st.integers(0, 2**40),
    st.integers(-20, 100),
)
def test_longer_never_evicts_sooner(
    mark: Taint, toleration: Toleration, more: int, at: int
) -> None:
    if toleration.toleration_seconds is None:
        return
    longer = Toleration(
        key=toleration.key,
        operator=toleration.operator,
        value=toleration.value,
        effect=toleration.effect,
        toleration_seconds=toleration.toleration_seconds + more,
    )
    options = PlacementOptions()
    before = judge((mark,), (toleration,), later(at), options)
    after = judge((mark,), (longer,), later(at), options)

    assert before.expels is not None or after.expels is None
    assert before.blocks is not None or after.blocks is None


@given(st.lists(TAINTS, min_size=1, max_size=3), st.lists(TOLERATIONS, max_size=3), st.booleans())
def test_untolerated_is_never_decided(
    taints: list[Taint], tolerations: list[Toleration], decided: bool
) -> None:
    one: ManagedCluster = cluster("a", *taints)
    case = Case((tuple(taints),), tuple(tolerations), "a" if decided else "")
    got = trace(inputs_of(world(case), placement("p", *tolerations)))

    if problem(tolerations) is not None:
        assert got.selected == []
        return
    hard = [
        mark
        for mark in one.spec.taints
        if mark.effect == "NoSelect"
        and not explain(mark, tolerations, later(0), Compat.KUBERNETES).tolerated
    ]
    assert not hard or got.selected == []


def test_case_is_a_table() -> None:
    """OCM's eighteen cases are all here."""
    numbers = {name.split()[0] for name in CASES if name[0] == "T" and name[1].isdigit()}

    assert numbers == {f"T{number}" for number in range(1, 19)}
