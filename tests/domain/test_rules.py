"""Which devices rules select."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from sully.api.resource.annotations import ALLOCATED_ATTRIBUTES
from sully.api.resource.types import DeviceCapacity, DeviceClass, DeviceTaintSelector
from sully.domain.devices.device import EffectiveDevice, Published
from sully.domain.devices.rules import (
    Choice,
    choose,
    names_match,
    record,
    recorded,
    sourced,
    stacked,
    with_taints,
)
from sully.domain.devices.selectors import Content
from sully.testing.builders import (
    DRIVER,
    GPU,
    cel,
    class_,
    device,
    rule,
    select,
    slice_,
    taint,
    text,
)

NO_CLASSES: dict[str, DeviceClass] = {}
NAMES = {
    "absent": (None, False),
    "empty": (select(), True),
    "driver": (select(driver=DRIVER), True),
    "other driver": (select(driver="other"), False),
    "pool": (select(pool="pool-1"), True),
    "other pool": (select(pool="pool-2"), False),
    "device": (select(device="gpu-0"), True),
    "other device": (select(device="gpu-1"), False),
    "all three": (select(driver=DRIVER, pool="pool-1", device="gpu-0"), True),
    "two of three": (select(driver=DRIVER, pool="pool-1", device="gpu-1"), False),
}


@pytest.mark.parametrize(("selector", "want"), NAMES.values(), ids=NAMES.keys())
def test_names(selector: DeviceTaintSelector | None, want: bool) -> None:
    assert names_match(selector, GPU) is want
    assert choose(selector, GPU, None, NO_CLASSES.get).selected is want


CONTENT = Content(DRIVER, {"model": text("A100")}, {"memory": DeviceCapacity(value="40Gi")})
MODEL = f'device.attributes["{DRIVER}"].model'
CLASSES = {
    "a100": class_("a100", f'{MODEL} == "A100"'),
    "h100": class_("h100", f'{MODEL} == "H100"'),
    "odd": class_("odd", f'device.attributes["{DRIVER}"].size > 1'),
}


@dataclass(frozen=True)
class Case:
    selector: DeviceTaintSelector
    want: bool
    problem: str = ""
    own: bool = False
    cause: str = ""
    missing_key: str = ""
    content: Content | None = CONTENT


CASES = {
    "an expression that matches": Case(select(selectors=cel(f'{MODEL} == "A100"')), True),
    "an expression that does not": Case(select(selectors=cel(f'{MODEL} == "H100"')), False),
    "all expressions must match": Case(select(selectors=cel("true", "false")), False),
    "capacity": Case(
        select(
            selectors=cel(f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) == 0')
        ),
        True,
    ),
    "names decide first": Case(select(driver="other", selectors=cel("device.x")), False),
    "a class": Case(select(device_class_name="a100"), True),
    "another class": Case(select(device_class_name="h100"), False),
    "a class that does not exist": Case(
        select(device_class_name="none"), False, "there is no class none"
    ),
    "class and expression": Case(select(device_class_name="a100", selectors=cel("false")), False),
    "an error in the expression": Case(
        select(selectors=cel("true", f'device.attributes["{DRIVER}"].size > 1')),
        False,
        "selector #1: runtime error: no such key: size",
        own=True,
        cause="runtime error: no such key: size",
        missing_key="size",
    ),
    "an error in the class": Case(
        select(device_class_name="odd"),
        False,
        "class odd: selector #0: runtime error: no such key: size",
    ),
    "what the first refuses, the second is not asked": Case(
        select(selectors=cel("false", f'device.attributes["{DRIVER}"].size > 1')), False
    ),
    "no record": Case(
        select(selectors=cel("true")),
        False,
        "its attributes were not recorded at allocation",
        content=None,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_class_and_expressions(case: Case) -> None:
    got = choose(case.selector, GPU, case.content, CLASSES.get)

    assert got == Choice(
        case.want, case.problem, case.own, cause=case.cause, missing_key=case.missing_key
    )


def test_an_expression_that_cannot_be_compiled_selects_nothing() -> None:
    got = choose(select(selectors=cel("device.")), GPU, CONTENT, CLASSES.get)

    assert not got.selected
    assert got.problem.startswith("selector #0: compile error: ERROR: <input>:1:8: Syntax error")


def _published(*taints: str) -> EffectiveDevice:
    return EffectiveDevice(Published(slice_("s", device("gpu-0", *map(taint, taints))), 0))


def test_taints_of_rules_are_added_by_the_name_of_the_rule() -> None:
    rules = [rule(name, select(), taint(key=name)) for name in ("b", "a", "c")]

    got = with_taints(_published(), stacked(map(sourced, rules)))

    assert [str(taint.origin) for taint in got.taints] == [f"DeviceTaintRule/{x}" for x in "abc"]
    assert [taint.taint.key for taint in got.taints] == ["a", "b", "c"]


def test_the_same_taint_from_two_rules_counts_twice() -> None:
    got = with_taints(_published(), stacked(sourced(rule(name, select())) for name in "ab"))

    assert [taint.taint for taint in got.taints] == [taint(), taint()]


def test_a_device_that_no_rule_selects_stays_the_same_object() -> None:
    plain = _published()

    assert with_taints(plain, ()) is plain


def test_what_was_recorded_can_be_read_again() -> None:
    other = replace(CONTENT, attributes={}, allow_multiple_allocations=True)
    annotation = record([(GPU, CONTENT), (GPU._replace(pool="a/b"), other)])

    got = recorded({ALLOCATED_ATTRIBUTES: annotation})

    assert got[str(GPU)].same_as(CONTENT)
    assert got[f"{DRIVER}/a/b/gpu-0"].same_as(other)


@pytest.mark.parametrize("text_", ["", "{", "[]", '{"d/p/g": 1}', '{"d/p/g": {"attributes": 3}}'])
def test_an_annotation_that_a_user_corrupted_reports_nothing(text_: str) -> None:
    assert recorded({ALLOCATED_ATTRIBUTES: text_}) == {}
    assert recorded({}) == {}
