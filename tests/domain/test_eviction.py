"""When pods must be evicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.api.resource.types import DeviceTaint, DeviceToleration
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import sourced
from sully.domain.devices.taints import EVICTING_EFFECTS, Origin, SourcedTaint
from sully.domain.eviction.judge import (
    Evict,
    EvictingTaint,
    EvictionPolicy,
    Exposure,
    Hold,
    Keep,
    Wait,
    eviction_time,
    judge,
    needs_budget,
)
from sully.machinery.compat import Compat
from sully.testing.builders import GPU, equal, exists, rule, select, taint
from sully.testing.clock import NOON

NEVER = None
WITH_BUDGET = "NoExecuteWithPodDisruptionBudget"


def from_slice(marks: DeviceTaint, index: int = 0) -> SourcedTaint:
    return SourcedTaint(marks, Origin("ResourceSlice", "slice-1", "uid-slice-1", index))


def from_rule(name: str, marks: DeviceTaint) -> SourcedTaint:
    return sourced(rule(name, select(), marks))


@dataclass(frozen=True)
class Case:
    """`want` is how many seconds after noon the pod is evicted."""

    taints: tuple[DeviceTaint, ...] = (taint(),)
    tolerations: tuple[DeviceToleration, ...] = ()
    want: float | None = 0
    strict: float | None = -1
    """What Kubernetes 1.37 does, where that is something else."""


CASES = {
    "no toleration": Case(),
    "no taint": Case((), want=NEVER),
    "a mismatched key": Case(tolerations=(exists(key="other"),)),
    "a mismatched value": Case(tolerations=(equal("x"),)),
    "tolerated indefinitely": Case(tolerations=(exists(),), want=NEVER),
    "tolerated for a while": Case(tolerations=(exists(seconds=60),), want=60),
    "the shortest of those that match counts": Case(
        tolerations=(exists(seconds=60), exists(seconds=30), exists(key="x", seconds=20)), want=30
    ),
    "one without end wins over one with": Case(
        tolerations=(exists(seconds=60), exists()), want=NEVER
    ),
    "two taints, one tolerated": Case((taint(), taint(key="example.com/hot")), (exists(),), want=0),
    "fewer than no seconds": Case(tolerations=(exists(seconds=-10),), want=0),
    "a taint of the future": Case((taint(after=40),), want=40),
    "a taint of the future, tolerated": Case((taint(after=40),), (exists(seconds=5),), want=45),
    "the earliest of several taints": Case((taint(after=40), taint(key="x", after=20)), want=20),
    "a taint without a time is new": Case((taint(time=None),), want=0),
    "for every effect, so indefinitely": Case(
        tolerations=(exists(effect=""),), want=NEVER, strict=0
    ),
    "for every effect, its seconds mean nothing": Case(
        tolerations=(exists(effect="", seconds=5),), want=NEVER, strict=0
    ),
    "everything tolerated": Case(
        tolerations=(DeviceToleration(operator="Exists"),), want=NEVER, strict=0
    ),
    "NoSchedule does not evict": Case((taint("NoSchedule"),), want=NEVER),
    "None does not evict": Case((taint("None"),), want=NEVER),
    "an unknown effect does not evict": Case((taint("Sparkle"),), want=NEVER),
    "with budgets, but the gate is off": Case((taint(WITH_BUDGET),), want=NEVER),
}


@pytest.mark.parametrize("strict", [False, True], ids=["documented", "strict"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_judge(case: Case, strict: bool) -> None:
    marks = tuple(from_slice(entry, index) for index, entry in enumerate(case.taints))
    want = case.strict if strict and case.strict != -1 else case.want

    got = judge(
        (Exposure(GPU, marks, case.tolerations),),
        now=NOON,
        policy=EvictionPolicy(compat=Compat.KUBERNETES if strict else Compat.SULLY),
    )

    match got:
        case Keep() | Hold():
            assert want is NEVER
        case Wait(until):
            assert want is not NEVER
            assert until == NOON + timedelta(seconds=want)
            assert want > 0
        case Evict(since):
            assert want == 0
            assert since == NOON


def test_waiting_ends_when_the_time_has_come() -> None:
    exposure = Exposure(GPU, (from_slice(taint()),), (exists(seconds=60),))
    end = NOON + timedelta(seconds=60)
    because = (EvictingTaint(GPU, exposure.taints[0], end),)

    assert judge((exposure,), now=end - timedelta(seconds=1)) == Wait(end, because)
    assert judge((exposure,), now=end) == Evict(end, because)


def test_all_taints_are_reasons_rules_first_then_by_device_and_place() -> None:
    other = replace_device("gpu-1")
    soon, late = taint(key="a"), taint(key="b")
    first = Exposure(
        GPU,
        (from_slice(soon, 0), from_slice(late, 1), from_rule("z", late), from_rule("a", soon)),
        (exists(key="a", seconds=60), exists(key="b", seconds=30)),
    )
    second = Exposure(other, (from_slice(soon, 0),))

    got = judge((second, first), now=NOON - timedelta(seconds=1))

    assert isinstance(got, Wait)
    assert got.until == NOON
    assert [
        (cause.device, str(cause.taint.origin), cause.taint.origin.index) for cause in got.because
    ] == [
        (GPU, "DeviceTaintRule/a", 0),
        (GPU, "DeviceTaintRule/z", 0),
        (GPU, "ResourceSlice/slice-1", 0),
        (GPU, "ResourceSlice/slice-1", 1),
        (other, "ResourceSlice/slice-1", 0),
    ]


def replace_device(name: str) -> DeviceId:
    return GPU._replace(device=name)


def test_a_toleration_holds_only_for_the_device_of_its_result() -> None:
    tolerated = Exposure(GPU, (from_slice(taint()),), (exists(),))
    bare = msgspec.structs.replace(tolerated, device=replace_device("gpu-1"), tolerations=())

    got = judge((tolerated, bare), now=NOON)

    assert got == Evict(NOON, (EvictingTaint(bare.device, bare.taints[0], NOON),))


def test_a_taint_with_data_can_be_a_reason() -> None:
    marks = DeviceTaint(key="a", effect="NoExecute", time_added=NOON, data={"temperature": 99})

    assert isinstance(judge((Exposure(GPU, (from_slice(marks),)),), now=NOON), Evict)


def test_a_huge_number_of_seconds_lasts_to_the_end_of_time() -> None:
    got = eviction_time(taint(), (exists(seconds=2**63 - 1),), now=NOON)

    assert got is not None
    assert got.year == 9999


SECONDS = st.none() | st.integers(-5, 10**12)
TOLERATIONS = st.builds(
    exists,
    key=st.sampled_from(("", "a", "b")),
    effect=st.sampled_from(("", "NoExecute")),
    seconds=SECONDS,
)
TAINTS = st.builds(
    taint,
    st.sampled_from(("NoExecute", "NoExecute", "NoSchedule", "None")),
    key=st.sampled_from(("a", "b")),
    after=st.integers(-100, 100),
)


@given(TAINTS, st.lists(TOLERATIONS), st.integers(0, 10**12))
def test_a_longer_toleration_never_evicts_sooner(
    marks: DeviceTaint, tolerations: list[DeviceToleration], more: int
) -> None:
    longer = [
        exists(
            key=toleration.key,
            effect=toleration.effect,
            seconds=None
            if toleration.toleration_seconds is None
            else toleration.toleration_seconds + more,
        )
        for toleration in tolerations
    ]

    before = eviction_time(marks, tolerations, now=NOON)
    after = eviction_time(marks, longer, now=NOON)

    assert after is None or (before is not None and before <= after)


@given(TAINTS, st.lists(TOLERATIONS))
def test_the_strict_reading_never_keeps_longer_than_no_end(
    marks: DeviceTaint, tolerations: list[DeviceToleration]
) -> None:
    lenient = eviction_time(marks, tolerations, now=NOON)
    strict = eviction_time(
        marks, tolerations, now=NOON, policy=EvictionPolicy(compat=Compat.KUBERNETES)
    )

    assert strict is not None or lenient is None


EXPOSURES = st.lists(
    st.builds(
        Exposure,
        st.sampled_from((GPU, GPU._replace(device="gpu-1"))),
        st.lists(TAINTS, max_size=3).map(
            lambda result: tuple(from_slice(entry, index) for index, entry in enumerate(result))
        ),
        st.lists(TOLERATIONS, max_size=2).map(tuple),
    ),
    max_size=3,
    unique_by=lambda item: item.device,
)


@given(EXPOSURES, st.randoms(use_true_random=False))
def test_the_order_of_exposures_never_matters(exposures: list[Exposure], rng: Random) -> None:
    mixed = list(exposures)
    rng.shuffle(mixed)

    assert judge(mixed, now=NOON) == judge(exposures, now=NOON)


BUDGETS = {
    "nothing tolerated": ((), 0),
    "tolerated by its own name": ((exists(effect=WITH_BUDGET),), NEVER),
    "tolerated by its own name for a while": ((exists(effect=WITH_BUDGET, seconds=60),), 60),
    "tolerated by an empty effect": ((exists(effect=""),), NEVER),
    "not by the name of another": ((exists(effect="NoExecute"),), 0),
}


@pytest.mark.parametrize(("tolerations", "want"), BUDGETS.values(), ids=BUDGETS.keys())
def test_an_effect_that_asks_budgets(
    tolerations: tuple[DeviceToleration, ...], want: float | None
) -> None:
    policy = EvictionPolicy(effects=EVICTING_EFFECTS)

    got = eviction_time(taint(WITH_BUDGET), tolerations, now=NOON, policy=policy)

    assert got == (None if want is NEVER else NOON + timedelta(seconds=want))


def test_budgets_decide_only_if_nothing_else_evicts() -> None:
    soft, hard = from_slice(taint(WITH_BUDGET)), from_slice(taint(), 1)

    assert needs_budget((EvictingTaint(GPU, soft),))
    assert not needs_budget((EvictingTaint(GPU, soft), EvictingTaint(GPU, hard)))


def is_named(*names: str) -> Callable[[Origin], bool]:
    return lambda origin: origin.name in names


def test_what_is_paused_evicts_nobody() -> None:
    exposure = Exposure(GPU, (from_rule("a", taint()),))

    got = judge((exposure,), now=NOON, paused=is_named("a"))

    assert got == Hold((EvictingTaint(GPU, exposure.taints[0], NOON),))


def test_what_is_paused_leaves_the_others_their_time_and_their_credit() -> None:
    exposure = Exposure(GPU, (from_rule("a", taint()), from_rule("b", taint(after=60))))
    held, acting = (
        EvictingTaint(GPU, entry, NOON + timedelta(seconds=after))
        for entry, after in zip(exposure.taints, (0, 60), strict=True)
    )

    early = judge((exposure,), now=NOON, paused=is_named("a"))
    late = judge((exposure,), now=NOON + timedelta(seconds=60), paused=is_named("a"))

    assert early == Wait(NOON + timedelta(seconds=60), (acting,), (held,))
    assert late == Evict(NOON + timedelta(seconds=60), (acting,), (held,))


def test_only_what_is_due_counts_for_the_rate() -> None:
    exposure = Exposure(GPU, (from_rule("a", taint()), from_rule("b", taint(after=60))))

    got = judge((exposure,), now=NOON)

    assert isinstance(got, Evict)
    assert [cause.taint.origin.name for cause in got.because] == ["a", "b"]
    assert [item.taint.origin.name for item in got.due(NOON)] == ["a"]
