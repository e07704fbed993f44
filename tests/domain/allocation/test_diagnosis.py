"""Why a node could not serve a pod, device by device."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from domain.allocation.fixtures import (
    attempt,
    exactly,
    first_of,
    offer,
    pool_slice,
    sub,
    unallocated,
)
from domain.allocation.test_allocator import held
from sully.api.resource.types import (
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceConstraint,
)
from sully.domain.allocation.verdicts import RejectionReason, RequestDiagnosis, Unallocatable
from sully.domain.devices.taints import Origin
from sully.domain.tolerations import taint_text
from sully.testing.builders import class_, device, exists, partition, rule, select, taint, text

H100 = 'device.attributes["gpu.example.com"].model == "h100"'
BROKEN = taint("NoExecute", value="ecc")


def refused(slices: Any, *claims: Any, **options: Any) -> Unallocatable:
    got = attempt(slices, *claims, **options)
    assert isinstance(got, Unallocatable), got
    return got


def only(slices: Any, *claims: Any, **options: Any) -> RequestDiagnosis:
    accounts = refused(slices, *claims, **options).requests
    assert len(accounts) == 1
    return accounts[0]


def sized(name: str, value: str) -> Device:
    return msgspec.structs.replace(device(name), capacity={"memory": DeviceCapacity(value=value)})


def drawing(name: str, amount: str) -> Device:
    return partition(name, {"x": amount}, of="c")


COUNTERS = CounterSet(name="c", counters={"x": Counter(value="2")})
SAME = DeviceConstraint(match_attribute="gpu.example.com/model")
CASES: dict[str, tuple[Any, Any, dict[RejectionReason, int]]] = {
    "another class": (
        [pool_slice(device("a"), driver="nic.example.com")],
        unallocated(),
        {RejectionReason.CLASS_SELECTOR: 1},
    ),
    "the request's selector": (
        [pool_slice(device("a", model=text("l40")), device("b", model=text("a100")))],
        unallocated(exactly(expressions=[H100])),
        {RejectionReason.REQUEST_SELECTOR: 2},
    ),
    "devices of other nodes": (
        [
            pool_slice(
                Device(name="a", node_name="node-2"),
                Device(name="b", node_name="node-1", taints=(BROKEN,)),
                per_device_node_selection=True,
            )
        ],
        unallocated(),
        {RejectionReason.NODE: 1, RejectionReason.TAINT: 1},
    ),
    "too small": (
        [pool_slice(sized("a", "1"), sized("b", "2"))],
        unallocated(exactly(capacity={"requests": {"memory": "4"}})),
        {RejectionReason.CAPACITY: 2},
    ),
    "too little on the counters": (
        [
            pool_slice(drawing("a", "3"), name="a", count=2),
            pool_slice(name="b", count=2, counters=(COUNTERS,)),
        ],
        unallocated(),
        {RejectionReason.COUNTERS: 1},
    ),
    "a constraint": (
        [pool_slice(device("a", model=text("l40")), device("b", model=text("a100")), device("c"))],
        unallocated(exactly(count=2), constraints=[SAME]),
        # The first of them would do; none goes with it.
        {RejectionReason.CONSTRAINT: 2},
    ),
}


@pytest.mark.parametrize(("slices", "claim", "want"), CASES.values(), ids=CASES.keys())
def test_reasons(slices: Any, claim: Any, want: dict[RejectionReason, int]) -> None:
    assert only(slices, claim).refused == want


def test_devices_in_use_and_too_few_left() -> None:
    slices = [
        pool_slice(*(device(f"gpu-{index}") for index in range(3))),
        pool_slice(device("nic"), driver="nic.example.com"),
    ]
    got = only(slices, unallocated(exactly(count=3)), use=held("gpu-0"))

    assert (got.wanted, got.available) == (3, 2)
    assert got.refused == {RejectionReason.IN_USE: 1, RejectionReason.CLASS_SELECTOR: 1}


def test_taints_are_counted_by_what_they_report_and_where_they_come_from() -> None:
    slices = [
        pool_slice(device("a", BROKEN), device("b", taint("None"), BROKEN), device("c"), name="s")
    ]
    marks = rule("maintenance", select(), taint("NoSchedule", key="example.com/service"))
    got = only(offer(slices, rules=[marks]), unallocated())

    assert got.refused == {RejectionReason.TAINT: 3}
    assert [
        (taint_text(taint.taint.taint), str(taint.taint.origin), taint.devices)
        for taint in got.taints
    ] == [
        ("example.com/broken=ecc:NoExecute", "ResourceSlice/s", 2),
        ("example.com/service:NoSchedule", "DeviceTaintRule/maintenance", 3),
    ]
    assert got.taints[1].taint.origin == Origin("DeviceTaintRule", "maintenance", "uid-maintenance")
    assert (got.claim, got.request, got.wanted, got.available) == ("default/claim", "r", 1, 0)


def test_every_alternative_has_its_account() -> None:
    slices = [pool_slice(device("a", BROKEN))]
    tolerant = sub("t", tolerations=[exists()], count=2)
    got = refused(slices, unallocated(first_of("r", sub("s"), tolerant)))

    assert [(request.request, request.available) for request in got.requests] == [
        ("r/s", 0),
        ("r/t", 1),
    ]


def test_a_tainted_device_in_use_is_in_use() -> None:
    slices = [pool_slice(device("gpu-0", BROKEN))]

    assert only(slices, unallocated(), use=held("gpu-0")).refused == {RejectionReason.IN_USE: 1}


def test_pools_that_were_left_out_are_named() -> None:
    slices = [
        pool_slice(device("a"), pool="half", count=2),
        pool_slice(device("b"), device("b"), pool="twice"),
    ]
    got = refused(slices, unallocated(), classes=[class_("gpu")])

    assert [str(item) for item in got.incomplete] == ["gpu.example.com/half"]
    assert {str(pool): why for pool, why in got.invalid.items()} == {
        "gpu.example.com/twice": "duplicate device name b"
    }


def test_whoever_asks_many_nodes_may_do_without() -> None:
    assert refused([pool_slice(device("a", BROKEN))], unallocated(), explain=False).requests == ()
