"""The texts of the reasons for which a node is rejected, or an attempt to allocate fails."""

from __future__ import annotations

from itertools import chain

import pytest

from sully.domain.allocation.failures import (
    AllocationFailure,
    ConstraintUnmet,
    DerivedFailure,
    EmptyConstraint,
    EmptySelector,
    ExpressionFailed,
    PoolNotUsable,
    SelectorFailure,
    TimedOut,
    TooManyDevices,
    Unresolved,
    UnsupportedMode,
)
from sully.domain.allocation.verdicts import UnallocatableReason
from sully.domain.devices.pools import DeviceId, PoolId
from sully.domain.scheduling.filters import InsufficientResource, NodeReason
from sully.domain.scheduling.messages import allocation_failure, filter_reason

REASONS = (*NodeReason, *UnallocatableReason, InsufficientResource("cpu"))


def test_every_reason_has_its_own_text() -> None:
    texts = [filter_reason(reason) for reason in REASONS]

    assert len(set(texts)) == len(REASONS)


def test_no_reason_of_a_node_equals_one_of_devices() -> None:
    names = [reason.value for reason in chain(NodeReason, UnallocatableReason)]

    assert len(set(names)) == len(names)


DEVICE, POOL = DeviceId("d", "p", "x"), PoolId("d", "p")
MISSING = (
    "CEL runtime error: no such key: a. consider using CEL optional chaining (.? followed by"
    " orValue()) or guarding the check with has() for optional fields"
)
ALL_OF = "claim n/c, request r: asks for all devices, but resource pool d/p is currently"
FAILURES: dict[str, AllocationFailure] = {
    "request r/s: device class k does not exist": Unresolved("r/s", "k"),
    "claim n/c, request r: unsupported count mode Half": UnsupportedMode("n/c", "r", "Half"),
    "claim n/c, request r: selector #1: CEL expression empty (unsupported selector type?)": (
        EmptySelector("n/c", "r", 1)
    ),
    "claim n/c, constraint #1: empty constraint (unsupported constraint type?)": (
        EmptyConstraint("n/c", 1)
    ),
    "claim n/c: number of requested devices 33 exceeds the claim limit of 32": (
        TooManyDevices("n/c", 33, 32)
    ),
    f"{ALL_OF} being updated": PoolNotUsable("n/c", "r", POOL, is_incomplete=True),
    f"{ALL_OF} invalid": PoolNotUsable("n/c", "r", POOL, is_incomplete=False),
    "claim n/c, request r: cannot add device d/p/x because a claim constraint would not be"
    " satisfied": ConstraintUnmet("n/c", "r", DEVICE),
    "claim n/c: selector #1: CEL compile error: oh": ExpressionFailed(
        "n/c", SelectorFailure(None, 1, DEVICE, "compile", "oh", reads_missing_key=False)
    ),
    f"class k: selector #1 on device d/p/x: {MISSING}": ExpressionFailed(
        "n/c", SelectorFailure("k", 1, DEVICE, "runtime", "no such key: a", reads_missing_key=True)
    ),
    "class k: selector #1 on device d/p/x: CEL runtime error: oh": ExpressionFailed(
        "n/c", SelectorFailure("k", 1, DEVICE, "runtime", "oh", reads_missing_key=False)
    ),
    "claim n/c: derived attribute a: CEL compile error: oh": ExpressionFailed(
        "n/c", DerivedFailure("a", DEVICE, "compile", "oh", reads_missing_key=False)
    ),
    f"claim n/c: derived attribute a on device d/p/x: {MISSING}": ExpressionFailed(
        "n/c", DerivedFailure("a", DEVICE, "runtime", "no such key: a", reads_missing_key=True)
    ),
    "node n: timed out trying to allocate devices": TimedOut("n"),
    "node n: timed out trying to allocate devices: evaluating the selectors exceeds the budget of"
    " 10 cost units": TimedOut("n", 10),
}


@pytest.mark.parametrize(("want", "failure"), FAILURES.items(), ids=FAILURES)
def test_failures_of_an_allocation(want: str, failure: AllocationFailure) -> None:
    assert allocation_failure(failure) == want
