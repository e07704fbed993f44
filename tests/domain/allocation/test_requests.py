"""What is reported of claims that cannot be allocated anywhere."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from domain.allocation.fixtures import CLASSES, demand, exactly, first_of, read, sub, unallocated
from sully.api.resource.types import DeviceConstraint, ResourceClaim
from sully.domain.allocation.failures import (
    EmptyConstraint,
    EmptySelector,
    Unresolved,
    UnsupportedMode,
)
from sully.domain.allocation.requests import HONORED_TAINTS, ClaimReader, Demand
from sully.domain.allocation.verdicts import Failed
from sully.machinery.cel import CostBudget

CASES: dict[str, tuple[ResourceClaim, Unresolved | Failed]] = {
    "unknown class": (
        unallocated(exactly("r0", "nope")),
        Unresolved("r0", "nope"),
    ),
    "unknown class of an alternative": (
        unallocated(first_of("r0", sub("s0"), sub("s1", "nope"))),
        Unresolved("r0/s1", "nope"),
    ),
    "a mode from later": (
        unallocated(exactly(allocationMode="Half")),
        Failed(UnsupportedMode("default/claim", "r", "Half")),
    ),
    "a selector from later": (
        unallocated(exactly(selectors=[{}])),
        Failed(EmptySelector("default/claim", "r", 0)),
    ),
    "a constraint from later": (
        unallocated(constraints=[DeviceConstraint()]),
        Failed(EmptyConstraint("default/claim", 0)),
    ),
}


@pytest.mark.parametrize(("claim", "want"), CASES.values(), ids=CASES.keys())
def test_requests_that_no_node_can_serve(claim: ResourceClaim, want: Unresolved | Failed) -> None:
    assert read(claim) == want


def test_equal_requirements_are_judged_once() -> None:
    first, second = (
        demand(unallocated(exactly(name, count=count), name=name))
        .claims[0]
        .requests[0]
        .alternatives[0]
        for name, count in (("x", 1), ("y", 2))
    )

    assert first.requirements is second.requirements


def test_claims_with_one_spec_are_read_once() -> None:
    first, budget = unallocated(), CostBudget()
    second = replace(unallocated(name="other"), spec=first.spec)
    reader = ClaimReader(CLASSES.get, HONORED_TAINTS)

    both = reader.prepare([first, second], None, budget)

    assert isinstance(both, Demand)
    assert [claim.key for claim in both.claims] == ["default/claim", "default/other"]
    assert [claim.claim for claim in both.claims] == [first, second]
    assert both.claims[0].requests is both.claims[1].requests


def test_claims_are_read_again_when_something_changed() -> None:
    classes, claim, budget = dict(CLASSES), unallocated(), CostBudget()
    reader = ClaimReader(classes.get, HONORED_TAINTS)
    reader.invalidate_if_changed(1)
    assert isinstance(reader.prepare([claim], None, budget), Demand)

    classes.clear()
    reader.invalidate_if_changed(2)

    assert isinstance(reader.prepare([claim], None, budget), Unresolved)
