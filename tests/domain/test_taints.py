"""Which tolerations cover which taints."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.api.resource.checks import Options
from sully.api.resource.types import DeviceTaint, DeviceToleration
from sully.domain.devices.taints import (
    BLOCKING_EFFECTS,
    BUDGET_EFFECTS,
    EFFECTS,
    EVICTING_EFFECTS,
    KUBERNETES_EFFECTS,
    PREFERENCE_EFFECTS,
    Origin,
    SourcedTaint,
    enabled_effects,
    strongest_effect,
    tolerates_eviction,
    untolerated,
)
from sully.domain.tolerations import tolerates
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates
from sully.testing.builders import KEY, equal, exists, taint

ECC = taint(value="ecc")


@dataclass(frozen=True)
class Case:
    toleration: DeviceToleration
    want: bool
    taint: DeviceTaint = ECC


ANYTHING = DeviceToleration(operator="Exists")
CASES = {
    "same key and effect, Exists": Case(exists(), True),
    "the same for a taint without value": Case(exists(), True, taint()),
    "every key, Exists": Case(exists(key=""), True),
    "every key and effect, Exists": Case(ANYTHING, True),
    "every effect": Case(exists(effect=""), True),
    "Equal, same value": Case(equal("ecc"), True),
    "Equal, other value": Case(equal("heat"), False),
    "Equal without value does not stand for any value": Case(equal(), False),
    "Equal without value, taint without value": Case(equal(), True, taint()),
    "an operator that defaulting has not filled": Case(
        DeviceToleration(key=KEY, value="ecc"), True
    ),
    "every key, Equal, same value": Case(equal("ecc", key=""), True),
    "every key, Equal, other value": Case(equal("heat", key=""), False),
    "other key": Case(exists(key="example.com/other"), False),
    "keys are compared with their prefix": Case(exists(key="broken"), False),
    "keys are compared with their case": Case(exists(key=KEY.upper()), False),
    "other effect": Case(exists(effect="NoSchedule"), False),
    "NoExecute does not cover NoSchedule": Case(exists(), False, taint("NoSchedule")),
    "an unknown operator": Case(DeviceToleration(key=KEY, operator="Gt", value="ecc"), False),
    "seconds do not matter, even none": Case(exists(seconds=0), True),
    "seconds do not matter, even fewer": Case(exists(seconds=-5), True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_tolerates(case: Case) -> None:
    assert tolerates(case.toleration, case.taint) is case.want


EVICTION = {
    "a toleration that names the effect": (exists(), True, True),
    "a toleration for every effect": (exists(effect=""), True, False),
    "a toleration for everything": (ANYTHING, True, False),
    "a toleration of another effect": (exists(effect="NoSchedule"), False, False),
    "a toleration of another key": (exists(key="x"), False, False),
}


@pytest.mark.parametrize(("toleration", "want", "strict"), EVICTION.values(), ids=EVICTION.keys())
def test_tolerates_eviction(toleration: DeviceToleration, want: bool, strict: bool) -> None:
    assert tolerates_eviction(toleration, taint()) is want
    assert tolerates_eviction(toleration, taint(), Compat.KUBERNETES) is strict


def _marked(*effects: str) -> tuple[SourcedTaint, ...]:
    return tuple(
        SourcedTaint(taint(effect), Origin("ResourceSlice", "s", index=index))
        for index, effect in enumerate(effects)
    )


UNTOLERATED = {
    "both effects block": (("NoSchedule", "NoExecute"), (), (0, 1)),
    "each taint needs its own toleration": (("NoSchedule", "NoExecute"), (exists(),), (0,)),
    "one toleration may cover several": (("NoSchedule", "NoExecute"), (exists(effect=""),), ()),
    "the same taint twice is tolerated once": (("NoExecute", "NoExecute"), (exists(),), ()),
    "None never blocks": (("None",), (), ()),
    "an unknown effect never blocks": (("Sparkle",), (), ()),
    "a preference never blocks": (("PreferNoSchedule",), (), ()),
    "budgets block like NoExecute": (("NoExecuteWithPodDisruptionBudget",), (exists(),), (0,)),
}


@pytest.mark.parametrize(
    ("effects", "tolerations", "want"), UNTOLERATED.values(), ids=UNTOLERATED.keys()
)
def test_untolerated(
    effects: tuple[str, ...], tolerations: tuple[DeviceToleration, ...], want: tuple[int, ...]
) -> None:
    got = untolerated(_marked(*effects), tolerations)

    assert tuple(item.origin.index for item in got) == want


def test_a_taint_that_waits_for_budgets_blocks_where_it_evicts() -> None:
    marks = _marked("NoExecuteWithPodDisruptionBudget", "NoSchedule")

    assert untolerated(marks, (), BLOCKING_EFFECTS) == marks
    assert untolerated(marks, (), BLOCKING_EFFECTS & KUBERNETES_EFFECTS) == marks[1:]
    assert untolerated(marks, (), frozenset()) == ()


WORDS = st.sampled_from(("", "a", "b"))
TOLERATIONS = st.builds(
    DeviceToleration,
    key=WORDS,
    operator=st.sampled_from(("Equal", "Exists", "")),
    value=WORDS,
    effect=st.sampled_from(("", "NoSchedule", "NoExecute")),
    toleration_seconds=st.none() | st.integers(-2, 100),
)
TAINTS = st.builds(
    DeviceTaint,
    key=st.sampled_from(("a", "b")),
    value=WORDS,
    effect=st.sampled_from(("NoSchedule", "NoExecute", "None")),
)


@given(TOLERATIONS, TAINTS)
def test_a_wider_toleration_covers_no_less(
    toleration: DeviceToleration, taint: DeviceTaint
) -> None:
    wider = DeviceToleration(key="", operator="Exists", effect=toleration.effect)

    assert tolerates(wider, taint) or not tolerates(toleration, taint)


@given(TOLERATIONS, TAINTS)
def test_the_strict_reading_never_tolerates_more(
    toleration: DeviceToleration, taint: DeviceTaint
) -> None:
    assert tolerates_eviction(toleration, taint) or not tolerates_eviction(
        toleration, taint, Compat.KUBERNETES
    )


# -- the table of effects -------------------------------------------------------------------------

GATED = {name: effect.feature_gate for name, effect in EFFECTS.items() if effect.feature_gate}


def test_what_effects_do() -> None:
    assert {"NoSchedule", "NoExecute", "NoExecuteWithPodDisruptionBudget"} == BLOCKING_EFFECTS
    assert {"NoExecute", "NoExecuteWithPodDisruptionBudget"} == EVICTING_EFFECTS
    assert {"NoExecuteWithPodDisruptionBudget"} == BUDGET_EFFECTS
    assert {"PreferNoSchedule"} == PREFERENCE_EFFECTS
    assert {"None", "NoSchedule", "NoExecute"} == KUBERNETES_EFFECTS


STRONGEST = {
    "none": ((), ""),
    "eviction first": (("NoSchedule", "NoExecute"), "NoExecute"),
    "budgets are weaker": (("NoExecuteWithPodDisruptionBudget", "NoExecute"), "NoExecute"),
    "a preference before none": (("None", "PreferNoSchedule"), "PreferNoSchedule"),
    "known before unknown": (("Later", "None"), "None"),
    "unknown": (("Sometimes", "Later"), "Later"),
}


@pytest.mark.parametrize(("effects", "want"), STRONGEST.values(), ids=STRONGEST.keys())
def test_the_strongest_effect(effects: tuple[str, ...], want: str) -> None:
    assert strongest_effect(effects) == want


@pytest.mark.parametrize("on", [(), *((gate,) for gate in GATED.values()), tuple(GATED.values())])
def test_validation_accepts_the_effects_that_are_enabled(on: tuple[str, ...]) -> None:
    gates = Gates({gate: gate in on for gate in GATED.values()})

    enabled = enabled_effects(EFFECTS, gates)

    assert enabled == KUBERNETES_EFFECTS | {name for name in GATED if GATED[name] in on}
    assert sorted(enabled) == Options(gates).effects
