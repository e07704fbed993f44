"""What claims that cannot be served anywhere are told."""

from __future__ import annotations

import pytest

from domain.allocation.fixtures import demand, exactly, first_of, read, sub, wish
from sully.api.resource.types import DeviceConstraint, ResourceClaim
from sully.domain.allocation.verdicts import Failed, Unresolved

CASES: dict[str, tuple[ResourceClaim, Unresolved | Failed]] = {
    "unknown class": (
        wish(exactly("r0", "nope")),
        Unresolved("request r0: device class nope does not exist"),
    ),
    "unknown class of an alternative": (
        wish(first_of("r0", sub("s0"), sub("s1", "nope"))),
        Unresolved("request r0/s1: device class nope does not exist"),
    ),
    "a mode from later": (
        wish(exactly(allocationMode="Half")),
        Failed("claim default/claim, request r: unsupported count mode Half"),
    ),
    "a selector from later": (
        wish(exactly(selectors=[{}])),
        Failed(
            "claim default/claim, request r: selector #0:"
            " CEL expression empty (unsupported selector type?)"
        ),
    ),
    "a constraint from later": (
        wish(constraints=[DeviceConstraint()]),
        Failed(
            "claim default/claim, constraint #0: empty constraint (unsupported constraint type?)"
        ),
    ),
}


@pytest.mark.parametrize(("claim", "want"), CASES.values(), ids=CASES.keys())
def test_requests_that_no_node_can_serve(claim: ResourceClaim, want: Unresolved | Failed) -> None:
    assert read(claim) == want


def test_requests_of_one_shape_are_judged_once() -> None:
    first, second = (
        demand(wish(exactly(name, count=count), name=name)).claims[0].requests[0].alternatives[0]
        for name, count in (("x", 1), ("y", 2))
    )

    assert first.shape is second.shape
