"""Devices that are shared: by capacity, and by counters that partitions draw on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from domain.allocation.fixtures import attempt, exactly, names, pool_slice, unallocated
from sully.api.resource.types import (
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceConstraint,
    DeviceCounterConsumption,
    ResourceClaim,
    ResourceSlice,
)
from sully.domain.allocation.results import with_share_ids
from sully.domain.allocation.usage.capacity import consumption, need_of
from sully.domain.allocation.usage.ledger import Ledger
from sully.domain.allocation.verdicts import Allocated, UnallocatableReason
from sully.domain.devices.selectors import Content
from sully.machinery.compat import Compat
from sully.machinery.formats.quantity import parse_quantity
from sully.testing.builders import device, exists, partition, taint, text

NOTHING = UnallocatableReason.CANNOT_ALLOCATE


def policy(**fields: Any) -> CapacityRequestPolicy:
    return CapacityRequestPolicy(**fields)


def between(minimum: str, maximum: str | None = None, step: str | None = None) -> Any:
    return CapacityRequestPolicyRange(minimum=minimum, maximum=maximum, step=step)


VALUES = policy(default="2", valid_values=("1", "2", "4"))
STEPS = policy(default="1Gi", valid_range=between("1Gi", "8Gi", "512Mi"))
ROUNDING = {
    "no policy, asked": (None, "3", "3"),
    "no policy, not asked: all of it": (None, None, "16Gi"),
    "the default": (VALUES, None, "2"),
    "an allowed value": (VALUES, "2", "2"),
    "up to the next value": (VALUES, "3", "4"),
    "beyond the last value": (VALUES, "5", "5"),
    "below the range": (STEPS, "1", "1Gi"),
    "on a step": (STEPS, "1536Mi", "1536Mi"),
    "up to the next step": (STEPS, "1537Mi", "2Gi"),
    "a range without steps": (policy(default="1", valid_range=between("1")), "2500m", "2500m"),
    "a fractional step": (
        policy(default="500m", valid_range=between("500m", step="250m")),
        "800m",
        "1",
    ),
}


@pytest.mark.parametrize(("rules", "asked", "want"), ROUNDING.values(), ids=ROUNDING.keys())
def test_rounding(rules: CapacityRequestPolicy | None, asked: str | None, want: str) -> None:
    capacity = DeviceCapacity(value="16Gi", request_policy=rules)
    requested = parse_quantity(asked) if asked is not None else None

    assert str(consumption(requested, capacity)) == want


@dataclass(frozen=True)
class Need:
    asked: dict[str, str]
    capacity: DeviceCapacity
    want: dict[str, str] | None
    name: str = "memory"


NEEDS = {
    "too much": Need({"memory": "17Gi"}, DeviceCapacity(value="16Gi"), None),
    "just enough": Need({"memory": "16Gi"}, DeviceCapacity(value="16Gi"), {"memory": "16Gi"}),
    "a name that the device lacks": Need({"cores": "1"}, DeviceCapacity(value="1"), None),
    "the full name of a short one": Need(
        {"gpu.example.com/memory": "1"}, DeviceCapacity(value="2"), {"memory": "1"}
    ),
    "the short name of a full one": Need(
        {"memory": "1"},
        DeviceCapacity(value="2"),
        {"gpu.example.com/memory": "1"},
        "gpu.example.com/memory",
    ),
    "another domain": Need({"x.example.com/memory": "1"}, DeviceCapacity(value="2"), None),
    "both names immediately": Need(
        {"memory": "1", "gpu.example.com/memory": "1"}, DeviceCapacity(value="2"), None
    ),
    "beyond the values of the policy": Need(
        {"memory": "5"}, DeviceCapacity(value="8", request_policy=VALUES), None
    ),
    "beyond the maximum": Need(
        {"memory": "9Gi"}, DeviceCapacity(value="16Gi", request_policy=STEPS), None
    ),
    "a default outside the range is allowed": Need(
        {},
        DeviceCapacity(
            value="8", request_policy=policy(default="7", valid_range=between("1", "4", "1"))
        ),
        {"memory": "7"},
    ),
    "less than nothing": Need({"memory": "-1"}, DeviceCapacity(value="8"), None),
}


@pytest.mark.parametrize("case", NEEDS.values(), ids=NEEDS.keys())
def test_need(case: Need) -> None:
    got = need_of(case.asked, Content("gpu.example.com", {}, {case.name: case.capacity}))

    assert (dict(got.texts) if got is not None else None) == case.want


def shared(name: str = "nic", value: str = "10", *taints: Any) -> Device:
    return msgspec.structs.replace(
        device(name, *taints, id=text(name)),
        allow_multiple_allocations=True,
        capacity={"bandwidth": DeviceCapacity(value=value)},
    )


def part(amount: str, name: str = "r", **more: Any) -> dict[str, Any]:
    return exactly(name, capacity={"requests": {"bandwidth": amount}}, **more)


DIFFERENT = DeviceConstraint(distinct_attribute="gpu.example.com/id")
SHARES: dict[str, tuple[tuple[ResourceClaim, ...], list[list[str]] | str]] = {
    "two requests share a device": ((unallocated(part("4"), part("6", "s")),), [["nic", "nic"]]),
    "the second is too much": ((unallocated(part("4"), part("7", "s")),), [["nic", "nic-2"]]),
    "two claims share a device": (
        (unallocated(part("4"), name="x"), unallocated(part("6"), name="y")),
        [["nic"], ["nic"]],
    ),
    "two devices of one request are two devices": (
        (unallocated(part("1", count=2)),),
        [["nic", "nic-2"]],
    ),
    "a distinct attribute keeps requests apart": (
        (unallocated(part("1"), part("1", "s"), constraints=[DIFFERENT]),),
        [["nic", "nic-2"]],
    ),
    "without an amount all of it is taken": (
        (unallocated(exactly(), part("1", "s")),),
        [["nic", "nic-2"]],
    ),
    "more than any has": ((unallocated(part("11")),), NOTHING),
    "All takes a share of each": (
        (unallocated(part("1", allocationMode="All")),),
        [["nic", "nic-2"]],
    ),
    "backtracking gives shares back": (
        (unallocated(part("8"), part("10", "s"), part("2", "t")),),
        [["nic", "nic-2", "nic"]],
    ),
}


@pytest.mark.parametrize(("claims", "want"), SHARES.values(), ids=SHARES.keys())
def test_shares(claims: tuple[ResourceClaim, ...], want: list[list[str]] | str) -> None:
    assert names(attempt([pool_slice(shared(), shared("nic-2"))], *claims)) == want


def take(ledger: Ledger, slices: list[ResourceSlice], claim: ResourceClaim) -> AllocationResult:
    got = attempt(slices, claim, use=ledger)
    assert isinstance(got, Allocated), got
    allocation = with_share_ids(got, ("id-1", "id-2")).allocations[0]
    ledger.take(allocation)
    return allocation


def test_shares_are_counted_until_they_are_released() -> None:
    slices, ledger = [pool_slice(shared())], Ledger()
    first = take(ledger, slices, unallocated(part("6")))

    assert first.devices.results[0].consumed_capacity == {"bandwidth": "6"}
    assert first.devices.results[0].share_id == "id-1"
    assert names(attempt(slices, unallocated(part("5")), use=ledger)) == NOTHING
    take(ledger, slices, unallocated(part("4")))
    ledger.release(first)
    assert names(attempt(slices, unallocated(part("6")), use=ledger)) == [["nic"]]
    assert names(attempt(slices, unallocated(part("7")), use=ledger)) == NOTHING


def test_a_device_that_is_no_longer_shared_stays_with_those_who_share_it() -> None:
    ledger = Ledger()
    take(ledger, [pool_slice(shared())], unallocated(part("1")))
    alone = [Device(name=name, capacity=shared().capacity) for name in ("nic", "nic-2")]

    assert names(attempt([pool_slice(*alone)], unallocated(part("1")), use=ledger)) == [["nic-2"]]
    assert names(attempt([pool_slice(alone[0])], unallocated(), use=ledger)) == NOTHING
    # Kubernetes gives it away twice.
    assert names(
        attempt([pool_slice(*alone)], unallocated(), use=ledger, compat=Compat.KUBERNETES)
    ) == [["nic"]]


def test_all_leaves_out_what_has_too_little_left() -> None:
    slices, ledger = [pool_slice(shared(), shared("nic-2"))], Ledger()
    take(ledger, slices, unallocated(part("9")))
    everything = unallocated(part("2", allocationMode="All"))

    assert names(attempt(slices, everything, use=ledger)) == [["nic-2"]]


def test_admin_access_to_a_device_that_is_used_up() -> None:
    slices, ledger = [pool_slice(shared())], Ledger()
    take(ledger, slices, unallocated(part("10")))
    look = unallocated(part("1", adminAccess=True))

    assert names(attempt(slices, look, use=ledger)) == [["nic"]]
    assert names(attempt(slices, look, use=ledger, compat=Compat.KUBERNETES)) == NOTHING


def test_a_device_for_one_must_be_large_enough() -> None:
    small, large = (
        Device(name=name, capacity={"bandwidth": DeviceCapacity(value=value)})
        for name, value in (("small", "1"), ("large", "5"))
    )
    got = attempt([pool_slice(small, large)], unallocated(part("2")))

    assert names(got) == [["large"]]
    assert isinstance(got, Allocated)
    result = got.allocations[0].devices.results[0]
    assert (result.consumed_capacity, result.share_id, got.shares) == ({}, None, ())


def card(*devices: Device, memory: str = "40Gi", **more: Any) -> list[ResourceSlice]:
    counters = CounterSet(name="card", counters={"memory": Counter(value=memory)})
    return [
        pool_slice(*devices, name="devices", count=2, **more),
        pool_slice(name="counters", count=2, counters=(counters,), all_nodes=True),
    ]


WHOLE, HALF, QUARTER = (
    partition("whole", {"memory": "40Gi"}),
    partition("half", {"memory": "20Gi"}),
    partition("quarter", {"memory": "10Gi"}),
)
TAINTED = partition("tainted", {"memory": "40Gi"}, taint("NoSchedule"))
COUNTED = {
    "the first that fits": ([HALF, WHOLE], 1, [["half"]]),
    "both parts": ([HALF, QUARTER], 2, [["half", "quarter"]]),
    "the whole does not go with a part": ([HALF, WHOLE], 2, NOTHING),
    "backtracking finds the parts": ([WHOLE, HALF, QUARTER], 2, [["half", "quarter"]]),
    "a tainted device takes nothing": ([TAINTED, HALF], 1, [["half"]]),
    "devices without counters do not mind": ([WHOLE, device("plain")], 2, [["whole", "plain"]]),
    "groups in common": (
        [
            partition("a", {"memory": "1"}, groups=("x", "y")),
            partition("b", {"memory": "1"}, groups=("y",)),
        ],
        2,
        [["a", "b"]],
    ),
    "a group that is given back is forgotten": (
        [
            partition("a", {"memory": "1"}, groups=("x",)),
            partition("b", {"memory": "1"}, groups=("y",)),
            partition("c", {"memory": "1"}, groups=("y",)),
        ],
        2,
        [["b", "c"]],
    ),
    "a tainted device joins no group": (
        [
            partition("a", {"memory": "1"}, taint("NoSchedule"), groups=("x",)),
            partition("b", {"memory": "1"}, groups=("y",)),
        ],
        1,
        [["b"]],
    ),
    "no group in common": (
        [
            partition("a", {"memory": "1"}, groups=("x",)),
            partition("b", {"memory": "1"}, groups=("y",)),
        ],
        2,
        NOTHING,
    ),
    "no group in common with all": (
        [
            partition("a", {"memory": "1"}, groups=("x", "y")),
            partition("b", {"memory": "1"}, groups=("x", "z")),
            partition("c", {"memory": "1"}, groups=("y", "z")),
        ],
        3,
        NOTHING,
    ),
    "a group does not go with none": (
        [partition("a", {"memory": "1"}, groups=("x",)), partition("b", {"memory": "1"})],
        2,
        NOTHING,
    ),
}


@pytest.mark.parametrize(("devices", "count", "want"), COUNTED.values(), ids=COUNTED.keys())
def test_counters(devices: list[Device], count: int, want: list[list[str]] | str) -> None:
    assert names(attempt(card(*devices), unallocated(exactly(count=count)))) == want


def test_a_device_refused_for_its_taint_releases_counters() -> None:
    claim = unallocated(
        exactly("r"),
        exactly("s", tolerations=[exists(effect="NoSchedule")]),
    )
    half = partition("half-2", {"memory": "20Gi"}, taint("NoSchedule"))

    assert names(attempt(card(half, HALF), claim)) == [["half", "half-2"]]


def test_a_device_refused_for_a_constraint_releases_counters() -> None:
    devices = [
        msgspec.structs.replace(
            partition(name, {"memory": amount}),
            attributes={"model": DeviceAttribute(string_value=model)},
        )
        for name, amount, model in (("a", "10", "x"), ("b", "30", "y"), ("c", "30", "x"))
    ]
    same = DeviceConstraint(match_attribute="gpu.example.com/model")
    got = attempt(card(*devices, memory="40"), unallocated(exactly(count=2), constraints=[same]))

    assert names(got) == [["a", "c"]]


def test_counters_in_use_are_those_of_all_nodes() -> None:
    ledger = Ledger()
    whole = card(WHOLE)
    take(ledger, whole, unallocated())
    here = [
        pool_slice(HALF, name="here", count=3),
        pool_slice(WHOLE, name="elsewhere", count=3, node_name="node-2"),
        pool_slice(
            name="counters",
            count=3,
            counters=(CounterSet(name="card", counters={"memory": Counter(value="40Gi")}),),
            all_nodes=True,
        ),
    ]

    assert names(attempt(here, unallocated())) == [["half"]]
    assert names(attempt(here, unallocated(), use=ledger)) == NOTHING


def test_admin_access_to_a_partition_in_use() -> None:
    ledger = Ledger()
    take(ledger, card(WHOLE), unallocated())
    look = unallocated(exactly(adminAccess=True))

    assert names(attempt(card(WHOLE), look, use=ledger)) == [["whole"]]
    assert names(attempt(card(WHOLE), look, use=ledger, compat=Compat.KUBERNETES)) == NOTHING


def test_only_the_first_share_draws_on_counters() -> None:
    draw = DeviceCounterConsumption(counter_set="card", counters={"memory": Counter(value="40Gi")})
    both = Device(
        name="nic",
        allow_multiple_allocations=True,
        capacity={"bandwidth": DeviceCapacity(value="10")},
        consumes_counters=(draw,),
    )
    ledger = Ledger()
    assert names(attempt(card(both), unallocated(part("4"), part("6", "s")))) == [["nic", "nic"]]
    take(ledger, card(both), unallocated(part("4")))

    assert names(attempt(card(both, HALF), unallocated(part("4")), use=ledger)) == [["nic"]]
    assert names(attempt(card(HALF, both), unallocated(), use=ledger)) == NOTHING
