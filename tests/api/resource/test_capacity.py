"""Policies by which shares of a capacity are requested."""

from dataclasses import dataclass
from typing import Any

import pytest

from api.resource.bodies import device, slice_body
from api.resource.writing import Writer, gates

AT = "spec.devices[0].capacity[memory].requestPolicy"


@dataclass(frozen=True)
class Case:
    policy: dict[str, Any]
    want: tuple[str, ...] = ()
    shared: bool = True
    fractions: bool = True


def values(default: str | None, *valid: str) -> dict[str, Any]:
    policy_fields: dict[str, Any] = {"validValues": list(valid)}
    return policy_fields if default is None else {"default": default, **policy_fields}


def span(default: str | None, **valid: str) -> dict[str, Any]:
    policy_fields: dict[str, Any] = {"validRange": valid}
    return policy_fields if default is None else {"default": default, **policy_fields}


CASES = {
    "values": Case(values("2Gi", "1Gi", "2Gi", "10Gi")),
    "not a shared device": Case(
        values("1Gi", "1Gi"),
        (f"{AT}: Forbidden: allowMultipleAllocations must be true",),
        shared=False,
    ),
    "both policies": Case(
        values("1Gi", "1Gi") | {"validRange": {"min": "1Gi"}},
        (
            f'{AT}: Forbidden: exactly one policy can be specified, cannot specify "validValues"'
            ' and "validRange" at the same time',
        ),
    ),
    "only a default": Case({"default": "1Gi"}),
    "values without default": Case(
        values(None, "1Gi"),
        (f"{AT}.default: Required value: required when validValues is defined",),
    ),
    "default is not among the choices": Case(
        values("3Gi", "1Gi"),
        (
            f'{AT}.validValues: Invalid value: "3Gi": default value is not valid according to the'
            " requestPolicy",
        ),
    ),
    "values out of order": Case(
        values("1Gi", "2Gi", "1Gi"),
        (f'{AT}.validValues[1]: Invalid value: "1Gi": values must be sorted in ascending order',),
    ),
    "value beyond the capacity": Case(
        values("1Gi", "1Gi", "11Gi"),
        (
            f'{AT}.validValues[1]: Invalid value: "11Gi": option is larger than capacity value:'
            " 10Gi",
        ),
    ),
    "same value twice": Case(
        values("1Gi", "1Gi", "1024Mi"), (f'{AT}.validValues[1]: Duplicate value: "1073741824"',)
    ),
    "eleven values": Case(
        values("1", *(str(i) for i in range(1, 12))),
        (
            f"{AT}.validValues: Too many: 11: must have at most 10 items",
            f'{AT}.validValues: Invalid value: "1": default value is not valid according to the'
            " requestPolicy",
        ),
    ),
    "fractions differ": Case(values("1", "500m", "1")),
    "fractions fall together without the gate": Case(
        values("1", "500m", "1"), (f'{AT}.validValues[1]: Duplicate value: "1"',), fractions=False
    ),
    "range": Case(span("1Gi", min="1Gi", max="9Gi", step="2Gi")),
    "range without default": Case(
        span(None, min="1Gi"),
        (f"{AT}.default: Required value: required when validRange is defined",),
    ),
    "range without minimum": Case(
        span("1Gi", max="2Gi"),
        (f"{AT}.validRange.min: Required value: required when validRange is defined",),
    ),
    "range outside the capacity": Case(
        span("11Gi", min="11Gi", max="12Gi"),
        (
            f'{AT}.validRange.min: Invalid value: "11Gi": min is larger than capacity value: 10Gi',
            f'{AT}.validRange.max: Invalid value: "12Gi": max is larger than capacity value: 10Gi',
        ),
    ),
    "default outside the range": Case(
        span("1Gi", min="2Gi", max="3Gi"),
        (f'{AT}.validRange.default: Invalid value: "1Gi": default is less than min: 2Gi',),
    ),
    "default above the range": Case(
        span("4Gi", min="2Gi", max="3Gi"),
        (f'{AT}.validRange.default: Invalid value: "4Gi": default is more than max: 3Gi',),
    ),
    "step of nothing": Case(
        span("1Gi", min="1Gi", step="0"),
        (f'{AT}.validRange.step: Invalid value: "0": must be greater than zero',),
    ),
    "step too large": Case(
        span("1Gi", min="1Gi", step="10Gi"),
        (
            f'{AT}.validRange.step: Invalid value: "10Gi": one step 11Gi is larger than capacity'
            " value: 10Gi",
        ),
    ),
    "off the steps": Case(
        span("2Gi", min="1Gi", max="4Gi", step="2Gi"),
        tuple(
            f'{AT}.validRange.step: Invalid value: "{end}": value is not a multiple of a given step'
            " (2Gi) from (1Gi)"
            for end in ("2Gi", "4Gi")
        ),
    ),
    "fractional steps": Case(span("1500m", min="500m", step="500m")),
    "too fine": Case(
        span("1", min="1u"),
        (
            f'{AT}.validRange.min: Invalid value: "1u": value cannot be represented as a milli'
            " value",
        ),
    ),
    "negative bound": Case(
        span("1", min="-1", step="1"),
        (f'{AT}.validRange.min: Invalid value: "-1": must be greater than or equal to 0',),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_request_policy(case: Case) -> None:
    shared = device(
        allowMultipleAllocations=case.shared,
        capacity={"memory": {"value": "10Gi", "requestPolicy": case.policy}},
    )

    writer = Writer(gates=gates(DRAFractionalCapacityRange=case.fractions))

    assert writer.create(slice_body(shared)).texts == list(case.want)


def test_unchanged_capacity_is_not_checked_again() -> None:
    bad = device(capacity={"memory": {"value": "1", "requestPolicy": {"default": "1"}}})
    old = Writer().read(slice_body(bad))

    assert Writer().update(slice_body(bad | {"attributes": {"a": {"int": 1}}}), old).texts == []
