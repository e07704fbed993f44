"""Selectors on devices: what they see, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sully.machinery.cel import (
    CompileError,
    DeviceInput,
    EvaluationError,
    device_environment,
    selects,
)

DEVICE = DeviceInput(
    "gpu.example.com",
    {
        "model": {"string": "A100"},
        "index": {"int": 0},
        "healthy": {"bool": True},
        "driver.io/version": {"version": "1.2.3"},
        "numa.io/node": {"int": 1},
    },
    {"memory": {"value": "40Gi"}, "other.io/slots": {"value": "7"}},
    allow_multiple_allocations=True,
)
HERE = 'device.attributes["gpu.example.com"]'

SELECTS = {
    "the driver": 'device.driver == "gpu.example.com"',
    "a string": f'{HERE}.model == "A100"',
    "an int": f"{HERE}.index == 0",
    "an int is not a bool": f"{HERE}.index != false",
    "a bool": f"{HERE}.healthy",
    "a version": 'device.attributes["driver.io"].version.isGreaterThan(semver("1.2.0"))',
    "a capacity": 'device.capacity["gpu.example.com"].memory.compareTo(quantity("10Gi")) >= 0',
    "a capacity of another domain": 'device.capacity["other.io"].slots.isInteger()',
    "a domain by name": '"numa.io" in device.attributes',
    "an absent domain is not there": '!("absent.io" in device.attributes)',
    "an absent domain reads as empty": 'device.attributes["absent.io"].size() == 0',
    "an absent domain has nothing": '!has(device.attributes["absent.io"].x)',
    "an absent domain of capacities": '!has(device.capacity["absent.io"].x)',
    "the number of domains": "device.attributes.size() == 3",
    "has": f"has({HERE}.model) && !has({HERE}.absent)",
    "in": f'"model" in {HERE} && !("absent" in {HERE})',
    "an optional that is there": f'{HERE}.?model.orValue("") == "A100"',
    "an optional that is absent": f"{HERE}.?absent.orValue(5) == 5",
    "an optional index": f'{HERE}[?"absent"].orValue("x") == "x"',
    "a binding": f'cel.bind(a, {HERE}, a.model == "A100" && a.healthy)',
    "a loop": f'{HERE}.exists(name, name == "index")',
    "a loop of two": f'{HERE}.exists(k, v, k == "model" && v == "A100")',
    "an error absorbed from the left": f"{HERE}.absent == 1 || true",
    "an error absorbed from the right": f"true || {HERE}.absent == 1",
    "several can use it": "device.allowMultipleAllocations",
    "a pattern": f'{HERE}.model.matches("^A[0-9]+$")',
}


@pytest.mark.parametrize("expression", SELECTS.values(), ids=SELECTS.keys())
def test_selects(expression: str) -> None:
    program = device_environment().compile(expression)

    assert selects(program, DEVICE) is True
    assert program.evaluate_counted(DEVICE, program.cost)[0] is True


FAILS = {
    "an absent attribute": (f"{HERE}.absent == 1", "no such key: absent"),
    "an absent attribute by index": (f'{HERE}["absent"] == 1', "no such key: absent"),
    "an absent attribute of an absent domain": (
        'device.attributes["absent.io"].x',
        "no such key: x",
    ),
    "an error not absorbed": (f"{HERE}.absent == 1 && true", "no such key: absent"),
    "a function of another type": (
        f'{HERE}.model.isGreaterThan(semver("1.0.0"))',
        "no such overload",
    ),
    "an order that does not exist": (f"{HERE}.model > 1", "no such overload"),
    "a string where a bool should be": (
        f"{HERE}.model",
        "CEL result of type string could not be converted to bool: unsupported type conversion"
        " from 'string' to bool",
    ),
    "a bad quantity": (
        'device.capacity["gpu.example.com"].memory == quantity(device.driver)',
        "quantities must match the regular expression"
        " '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
}


@pytest.mark.parametrize(("expression", "message"), FAILS.values(), ids=FAILS.keys())
def test_fails(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        selects(device_environment().compile(expression), DEVICE)

    assert str(caught.value) == message


def test_allow_multiple_allocations_needs_its_gate() -> None:
    with pytest.raises(CompileError, match="undefined field 'allowMultipleAllocations'"):
        device_environment(consumable_capacity=False).compile("device.allowMultipleAllocations")


def test_allow_multiple_allocations_is_false_by_default() -> None:
    program = device_environment().compile("!device.allowMultipleAllocations")

    assert selects(program, DeviceInput("d"))


LISTS = DeviceInput("d", {"many": {"strings": ["a", "b"]}, "one": {"string": "a"}})
WITH_LISTS = {
    "a list includes": 'device.attributes["d"].many.includes("b")',
    "a list does not include": '!device.attributes["d"].many.includes("c")',
    "a value includes itself": 'device.attributes["d"].one.includes("a")',
    "a loop over a list": 'device.attributes["d"].many.exists(x, x == "b")',
    "membership": '"a" in device.attributes["d"].many',
    "unknown results are allowed": 'dyn(device.attributes["d"].one == "a")',
}


@pytest.mark.parametrize("expression", WITH_LISTS.values(), ids=WITH_LISTS.keys())
def test_list_attributes(expression: str) -> None:
    assert selects(device_environment(list_attributes=True).compile(expression), LISTS)


def test_includes_needs_its_gate() -> None:
    with pytest.raises(CompileError, match="undeclared reference to 'includes'"):
        device_environment().compile('device.attributes["d"].one.includes("a")')


def test_a_bad_version_is_named() -> None:
    with pytest.raises(EvaluationError, match="attribute v: parse semantic version: No Major"):
        DeviceInput("d", {"v": {"version": "1"}})


def test_an_empty_attribute_is_refused() -> None:
    with pytest.raises(EvaluationError, match="attribute v: unsupported attribute value"):
        DeviceInput("d", {"v": {}})


@dataclass(frozen=True)
class Typed:
    int_value: int | None = None
    bool_value: bool | None = None
    string_value: str | None = None
    version_value: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Amount:
    value: str


TYPED = {
    "int": Typed(int_value=5),
    "bool": Typed(bool_value=False),
    "string": Typed(string_value="a"),
    "version": Typed(version_value="1.2.3"),
    "ints": Typed(ints=(1, 2)),
    "bools": Typed(bools=(True,)),
    "strings": Typed(strings=("a",)),
    "versions": Typed(versions=("1.0.0", "2.0.0")),
}
PLAIN: dict[str, Any] = {
    "int": {"int": 5},
    "bool": {"bool": False},
    "string": {"string": "a"},
    "version": {"version": "1.2.3"},
    "ints": {"ints": (1, 2)},
    "bools": {"bools": (True,)},
    "strings": {"strings": ("a",)},
    "versions": {"versions": ["1.0.0", "2.0.0"]},
}


def test_typed_objects_will_do() -> None:
    typed = DeviceInput("d", TYPED, {"c": Amount("1Ki")})

    assert typed == DeviceInput("d", PLAIN, {"c": {"value": "1024"}})
    assert typed == DeviceInput("d", PLAIN, {"c": "1024"})


DERIVED = {
    "device.driver": None,
    "1": None,
    'device.attributes["d"].x': None,
    'semver("1.0.0")': None,
    "1.5": "double",
    "[1]": "list(int)",
    "device": "kubernetes.DRADevice",
}


@pytest.mark.parametrize(("expression", "refused"), DERIVED.items())
def test_derived_attributes(expression: str, refused: str | None) -> None:
    env = device_environment(derived=True)

    if refused is None:
        assert env.compile(expression).cost < 10
        return
    with pytest.raises(CompileError) as caught:
        env.compile(expression)
    assert caught.value.detail == (
        f"must evaluate to a primitive scalar (string, integer, boolean, semver), not {refused}"
    )


def test_derived_lists_need_their_gate() -> None:
    env = device_environment(derived=True, list_attributes=True)

    assert str(env.compile("[device.driver]").type) == "list(string)"
    with pytest.raises(CompileError, match="or a list of these scalars, not double"):
        env.compile("1.5")
