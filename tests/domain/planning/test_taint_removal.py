"""Which rules are deleted to remove a taint, and what prevents it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import pytest

from sully.api.resource.types import DeviceTaintRule
from sully.domain.devices.device import EffectiveDevice, Published, driver_taints
from sully.domain.devices.rules import sourced
from sully.domain.devices.taints import Origin
from sully.domain.planning.rules.taint_grammar import TaintToRemove
from sully.domain.planning.rules.taint_removal import (
    RemainingTaint,
    plan_removal,
    remedy,
    same_criteria,
)
from sully.testing.builders import DRIVER, KEY, cel, device, rule, select, slice_, taint

GPU = select(driver=DRIVER, pool="pool-1", device="gpu-0")
POOL = select(driver=DRIVER, pool="pool-1")


def on_device(*rules: DeviceTaintRule, driver: bool = False) -> EffectiveDevice:
    marks = (taint(),) if driver else ()
    published = Published(slice_("slice-1", device("gpu-0", *marks)), 0)
    return EffectiveDevice(published, (*driver_taints(published), *map(sourced, rules)))


@dataclass(frozen=True)
class Case:
    rules: tuple[DeviceTaintRule, ...]
    pattern: tuple[str, str, str] = (DRIVER, "pool-1", "gpu-0")
    taint: TaintToRemove = field(default_factory=lambda: TaintToRemove(KEY))
    driver: bool = False
    going: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()


CASES = {
    "the rule for the device": Case((rule("r", GPU),), going=("r",)),
    "a narrower rule under a wider pattern": Case(
        (rule("r", GPU),), pattern=(DRIVER, "*", "*"), going=("r",)
    ),
    "several": Case((rule("b", GPU), rule("a", GPU)), going=("a", "b")),
    "a wider rule": Case((rule("r", POOL),), remaining=("DeviceTaintRule/r",)),
    "a glob does not cover what a rule leaves open": Case(
        (rule("r", POOL),), pattern=(DRIVER, "pool-1", "gpu-*"), remaining=("DeviceTaintRule/r",)
    ),
    "any name covers what a rule leaves open": Case(
        (rule("r", POOL),), pattern=(DRIVER, "pool-1", "*"), going=("r",)
    ),
    "another key": Case((rule("r", GPU, taint(key="other")),)),
    "another effect": Case((rule("r", GPU),), taint=TaintToRemove(KEY, "NoSchedule")),
    "the driver": Case((), driver=True, remaining=("ResourceSlice/slice-1",)),
    "a rule and the driver": Case(
        (rule("r", GPU),), driver=True, going=("r",), remaining=("ResourceSlice/slice-1",)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_removing(case: Case) -> None:
    def selects(*names: str) -> bool:
        return all(map(fnmatchcase, names, case.pattern))

    removal = plan_removal(
        case.rules, [on_device(*case.rules, driver=case.driver)], selects, case.taint
    )

    assert tuple(rule.metadata.name for rule in removal.rules) == case.going
    assert tuple(str(item.origin) for item in removal.remaining) == case.remaining


def test_a_rule_without_a_selector_is_for_no_device() -> None:
    removal = plan_removal([rule("r", None)], [], lambda *_: True, TaintToRemove(KEY))

    assert not removal.rules


REMEDIES = {
    "DeviceTaintRule": "sully untaint rule x",
    "ResourceSlicePatch": "kubectl edit resourceslicepatch x",
    "ResourceSlice": "the driver removes it",
}


@pytest.mark.parametrize(("kind", "text"), REMEDIES.items(), ids=REMEDIES)
def test_remedies(kind: Any, text: str) -> None:
    origin = Origin(kind, "x")

    assert text in remedy(RemainingTaint("d/p/gpu-0", origin))


CLASSED = rule("classed", select(device_class_name="a100"))
BY_CEL = rule("cel", select(selectors=cel("x", "y")))
CRITERIA: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "the class": ("a100", (), ("classed",)),
    "another class": ("h100", (), ()),
    "the expressions in any order": ("", ("y", "x"), ("cel",)),
    "some of the expressions": ("", ("x",), ()),
    "class and expression": ("a100", ("x",), ()),
}


@pytest.mark.parametrize(("name", "expressions", "want"), CRITERIA.values(), ids=CRITERIA)
def test_rules_by_criteria(name: str, expressions: tuple[str, ...], want: tuple[str, ...]) -> None:
    result = same_criteria(
        [CLASSED, BY_CEL, rule("named", GPU)],
        lambda *_: True,
        TaintToRemove(KEY),
        name,
        expressions,
    )

    assert tuple(item.metadata.name for item in result) == want


def test_criteria_do_not_reach_beyond_the_names() -> None:
    result = same_criteria([CLASSED], lambda *at: at[0] == DRIVER, TaintToRemove(KEY), "a100", ())

    assert result == ()
