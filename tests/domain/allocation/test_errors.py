"""Where an attempt ends: limits, requests in error, searches that continue for too long."""

from __future__ import annotations

from typing import Any

import pytest

from domain.allocation.fixtures import (
    attempt,
    exactly,
    first_of,
    names,
    pool_slice,
    sub,
    unallocated,
)
from domain.allocation.test_allocator import A100, NOTHING, held, match, models
from sully.api.resource.types import DeviceConstraint, ResourceClaim, ResourceSlice
from sully.domain.allocation.failures import TimedOut
from sully.domain.allocation.verdicts import Allocated, Failed
from sully.testing.builders import class_, device


def many(count: int) -> ResourceSlice:
    return pool_slice(*(device(f"gpu-{index:02}") for index in range(count)))


TOO_MANY = "claim default/claim: number of requested devices 33 exceeds the claim limit of 32"
LIMIT_CASES = {
    "a claim may have 32": (unallocated(exactly(count=32)), 32),
    "33 are an error, even if there are so many": (unallocated(exactly(count=33)), TOO_MANY),
    "33 in two requests": (unallocated(exactly("r", count=20), exactly("s", count=13)), TOO_MANY),
    "one of them in vain": (
        unallocated(exactly("r", count=20, expressions=["false"]), exactly("s", count=13)),
        TOO_MANY,
    ),
    "more than there are": (unallocated(exactly(count=41)), TOO_MANY.replace("33", "41")),
    "All of 40": (unallocated(exactly(allocationMode="All")), TOO_MANY.replace("33", "40")),
    "the smallest alternative counts": (
        unallocated(first_of("r", sub("s", count=33), sub("t", count=2))),
        2,
    ),
    "an alternative gives way to the limit": (
        unallocated(first_of("r", sub("s", count=20), sub("t", count=3)), exactly("u", count=20)),
        23,
    ),
}


@pytest.mark.parametrize(("claim", "want"), LIMIT_CASES.values(), ids=LIMIT_CASES.keys())
def test_limit_of_results(claim: ResourceClaim, want: int | str) -> None:
    got = names(attempt([many(40)], claim))

    assert (got if isinstance(got, str) else len(got[0])) == want


MISSING = (
    "CEL runtime error: no such key: model. consider using CEL optional chaining (.? followed by"
    " orValue()) or guarding the check with has() for optional fields"
)
WHERE = "selector #0 on device gpu.example.com/pool-1/gpu-1"
ERROR_CASES = {
    "a request's selector fails": (
        unallocated(exactly(count=2, expressions=[A100])),
        f"claim default/claim: {WHERE}: {MISSING}",
    ),
    "where there are too few devices in any case": (
        unallocated(exactly(count=9, expressions=[A100])),
        f"claim default/claim: {WHERE}: {MISSING}",
    ),
    "a class's selector fails": (
        unallocated(exactly(class_name="a100", count=2)),
        f"class a100: {WHERE}: {MISSING}",
    ),
    "a device that nobody comes to may fail": (
        unallocated(exactly(expressions=[A100])),
        [["gpu-0"]],
    ),
    "All comes to every device": (
        unallocated(exactly(allocationMode="All", expressions=[A100])),
        f"claim default/claim: {WHERE}: {MISSING}",
    ),
    "a selector after one that does not match is not asked": (
        unallocated(exactly(expressions=["false", A100])),
        NOTHING,
    ),
    "a request that finds nothing lets an earlier one come to the device": (
        unallocated(exactly("r", expressions=[A100]), exactly("s", expressions=["false"])),
        f"claim default/claim: {WHERE}: {MISSING}",
    ),
    "All and a constraint that cannot hold": (
        unallocated(exactly(allocationMode="All"), constraints=[match()]),
        "claim default/claim, request r: cannot add device gpu.example.com/pool-1/gpu-1"
        " because a claim constraint would not be satisfied",
    ),
    "an alternative is named by its own name": (
        unallocated(first_of("r", sub("s", allocationMode="All")), constraints=[match()]),
        "claim default/claim, request s: cannot add device gpu.example.com/pool-1/gpu-1"
        " because a claim constraint would not be satisfied",
    ),
}


@pytest.mark.parametrize(("claim", "want"), ERROR_CASES.values(), ids=ERROR_CASES.keys())
def test_errors(claim: ResourceClaim, want: list[list[str]] | str) -> None:
    slices = [pool_slice(*models("a100", ""))]

    assert names(attempt(slices, claim, classes=[class_("a100", A100)])) == want


def test_a_failing_selector_on_a_device_in_use_is_not_asked() -> None:
    slices = [pool_slice(*models("", "a100"))]
    claim = unallocated(exactly(expressions=[A100]))

    assert isinstance(attempt(slices, claim), Failed)
    assert names(attempt(slices, claim, use=held("gpu-0"))) == [["gpu-1"]]


def test_an_expression_that_does_not_compile() -> None:
    got = names(attempt([many(1)], unallocated(exactly(expressions=["device.nope"]))))

    assert isinstance(got, str)
    assert got.startswith("claim default/claim: selector #0: CEL compile error: ")


def test_alike_devices_are_not_tried_again_and_again() -> None:
    """Sixteen alike and no partner for the last request: all subsets would take indefinitely."""
    slices = [pool_slice(*models(*["a100"] * 16, "h100"))]
    claim = unallocated(
        exactly("r", count=8),
        exactly("s", count=8),
        exactly("t", expressions=[A100.replace("a100", "h100")]),
        constraints=[match()],
    )

    assert names(attempt(slices, claim, most_steps=1000)) == NOTHING


@pytest.mark.parametrize("last", [exactly("t", allocationMode="All"), exactly("t", count=2)])
def test_a_request_that_can_never_be_served_ends_the_search(last: dict[str, Any]) -> None:
    """All subsets of the first twenty devices would have to be tried, as no two are alike."""
    twenty = models(*(f"m{index}" for index in range(20)))
    slices = [pool_slice(*twenty, pool="z", driver="z"), pool_slice(device("gpu-0"))]
    claim = unallocated(
        exactly("r", "any", count=10, expressions=['device.driver == "z"']),
        last,
        constraints=[DeviceConstraint(requests=("r",), distinct_attribute="z/model")],
    )

    assert names(attempt(slices, claim, use=held("gpu-0"), most_steps=100)) == NOTHING


def test_a_search_has_an_end() -> None:
    devices = models(*(f"m{index}" for index in range(20)))
    claim = unallocated(exactly("r", count=10), exactly("s", count=10), exactly("t"))
    unlike = [pool_slice(*devices), pool_slice(device("x"), pool="z", driver="other")]
    got = attempt(unlike, claim, most_steps=15)

    assert got == Failed(TimedOut("node-1"))
    assert names(got) == "node node-1: timed out trying to allocate devices"


def test_a_pod_may_ask_for_more_than_python_nests() -> None:
    claims = [unallocated(exactly(count=32), name=f"c{index}") for index in range(40)]
    slices = [
        pool_slice(*(device(f"gpu-{index}") for index in range(64)), pool=f"p{number:02}")
        for number in range(20)
    ]

    assert isinstance(attempt(slices, *claims), Allocated)
