"""Attributes that requests work out, for constraints to compare."""

from __future__ import annotations

from typing import Any

import pytest

from domain.allocation.fixtures import attempt, exactly, names, pool_slice, unallocated
from sully.api.resource.types import DeviceAttribute, DeviceConstraint
from sully.domain.allocation.derived import attribute_of
from sully.domain.allocation.verdicts import UnallocatableReason
from sully.machinery.cel import EvaluationError
from sully.machinery.formats.semver import parse_semver
from sully.testing.builders import device, text

RACK = "example.com/rack"
OF_RACK = {"name": RACK, "expression": 'device.attributes["gpu.example.com"].slot.split("-")[0]'}
SAME = DeviceConstraint(match_attribute=RACK)
APART = DeviceConstraint(distinct_attribute=RACK)
DEVICES = [
    pool_slice(
        device("a", slot=text("r1-1")),
        device("b", slot=text("r2-1")),
        device("c", slot=text("r1-2")),
    )
]
CASES: dict[str, tuple[Any, Any]] = {
    "two in one rack": (
        unallocated(exactly(count=2, derivedAttributes=[OF_RACK]), constraints=[SAME]),
        [["a", "c"]],
    ),
    "two in different racks": (
        unallocated(exactly(count=2, derivedAttributes=[OF_RACK]), constraints=[APART]),
        [["a", "b"]],
    ),
    "three in one rack": (
        unallocated(exactly(count=3, derivedAttributes=[OF_RACK]), constraints=[SAME]),
        UnallocatableReason.CANNOT_ALLOCATE,
    ),
    "without it nothing has the attribute": (
        unallocated(exactly(count=2), constraints=[SAME]),
        UnallocatableReason.CANNOT_ALLOCATE,
    ),
    "each request has its own": (
        unallocated(
            exactly("r", derivedAttributes=[OF_RACK]),
            exactly("s", derivedAttributes=[{"name": RACK, "expression": '"r2"'}]),
            constraints=[SAME],
        ),
        [["b", "a"]],
    ),
    "an expression that fails": (
        unallocated(
            exactly(derivedAttributes=[{"name": RACK, "expression": 'device.attributes["x"].y'}])
        ),
        "claim default/claim: derived attribute example.com/rack on device"
        " gpu.example.com/pool-1/a: CEL runtime error: no such key: y. consider using CEL optional"
        " chaining (.? followed by orValue()) or guarding the check with has() for optional fields",
    ),
    "an expression that does not compile": (
        unallocated(exactly(derivedAttributes=[{"name": RACK, "expression": "device.nonsense"}])),
        "claim default/claim: derived attribute example.com/rack: CEL compile error:",
    ),
}


@pytest.mark.parametrize(("claim", "want"), CASES.values(), ids=CASES.keys())
def test_derived_attributes(claim: Any, want: Any) -> None:
    got = names(attempt(DEVICES, claim))
    assert got == want or (isinstance(want, str) and str(got).startswith(want))


def test_results_have_the_types_of_attributes() -> None:
    assert attribute_of(True) == DeviceAttribute(bool_value=True)
    assert attribute_of(3) == DeviceAttribute(int_value=3)
    assert attribute_of("x") == DeviceAttribute(string_value="x")
    assert attribute_of(parse_semver("1.2.3")) == DeviceAttribute(version_value="1.2.3")
    assert attribute_of([1, 2]) == DeviceAttribute(ints=(1, 2))
    assert attribute_of([True]) == DeviceAttribute(bools=(True,))


@pytest.mark.parametrize("value", [None, [], {}, 1.5, [1, "x"], [1, True]])
def test_results_that_are_not_attributes(value: Any) -> None:
    with pytest.raises(EvaluationError):
        attribute_of(value)
