"""What a ResourcePoolStatusRequest reports about pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from manifests import DRIVER, body, result, slice_
from sully.api.resource.types import (
    ResourceClaim,
    ResourcePoolStatusRequestSpec,
    ResourceSlice,
)
from sully.domain.allocation.pools.pool_status import (
    PoolAllocations,
    PoolContent,
    pool_uses,
    report,
    summary,
)
from sully.domain.devices.device import EffectiveDevice, Published, driver_taints
from sully.domain.devices.pools import PoolId

Obj = dict[str, Any]
POOL = f"pool {DRIVER}/n"
KIND = f"{DRIVER}/kind"
BAD = {"key": "example.com/bad", "effect": "NoSchedule"}


def content(bodies: Sequence[Obj], claims: Sequence[ResourceClaim] = ()) -> PoolContent:
    slices = [msgspec.convert(body, ResourceSlice) for body in bodies]
    published = (Published(one, index) for one in slices for index in range(len(one.spec.devices)))
    devices = {one.device.name: EffectiveDevice(one, driver_taints(one)) for one in published}
    id_ = PoolId(DRIVER, slices[0].spec.pool.name)
    return PoolContent(id_, slices, devices, pool_uses(claims).get(id_, PoolAllocations()))


def claim(*devices: str, admin: bool = False, **consumed: str) -> ResourceClaim:
    more: Obj = {"consumedCapacity": consumed} if consumed else {}
    results = [result(name, "n", adminAccess=admin, **more) for name in devices]
    status = {"allocation": {"devices": {"results": results}}}
    return msgspec.convert(body("ResourceClaim", "c", {"devices": {}}, status), ResourceClaim)


def gpu(name: str, *taints: Obj, **more: Any) -> Obj:
    return {"name": name, "taints": list(taints), **more}


def part(name: str, kind: str | None = "half", memory: str = "20Gi") -> Obj:
    consumed = [{"counterSet": "card", "counters": {"memory": {"value": memory}}}]
    attributes = {} if kind is None else {"kind": {"string": kind}}
    return {"name": name, "consumesCounters": consumed, "attributes": attributes}


def card(memory: str = "40Gi", **spec: Any) -> Obj:
    counters = [{"name": "card", "counters": {"memory": {"value": memory}}}]
    body = slice_("counters", "n", count=2, sharedCounters=counters, **spec)
    return body | {"spec": body["spec"] | {"devices": []}}


def parts(*devices: Obj, attribute: str | None = KIND) -> list[Obj]:
    spec: Obj = {} if attribute is None else {"partitionTypeAttribute": attribute}
    return [card(), slice_("parts", "n", *devices, count=2, **spec)]


def shared(name: str, **capacity: str) -> Obj:
    amounts = {key: {"value": value} for key, value in capacity.items()}
    return {"name": name, "allowMultipleAllocations": True, "capacity": amounts}


def counts(total: int, allocated: int, available: int, unavailable: int, slices: int = 1) -> Obj:
    return {
        "resourceSliceCount": slices,
        "totalDevices": total,
        "allocatedDevices": allocated,
        "availableDevices": available,
        "unavailableDevices": unavailable,
    }


def partitions(*rows: tuple[str, int, int]) -> Obj:
    return {
        "partitionSummary": [
            {"attribute": KIND, "type": name, "total": total, "allocatable": allocatable}
            for name, total, allocatable in rows
        ]
    }


@dataclass(frozen=True)
class Case:
    slices: list[Obj]
    want: Obj
    claims: tuple[ResourceClaim, ...] = ()
    spec: Obj = field(default_factory=dict)
    node: str | None = "n"
    counts_once: bool = True


CASES = {
    "all available": Case([slice_("s", "n", gpu("a"), gpu("b"))], counts(2, 0, 2, 0)),
    "allocated, shared and with admin access": Case(
        [slice_("s", "n", gpu("a"), gpu("b"), gpu("c"))],
        counts(3, 1, 2, 0),
        claims=(claim("a"), claim("a"), claim("b", admin=True)),
    ),
    "tainted": Case(
        [slice_("s", "n", gpu("a", BAD), gpu("b", BAD | {"effect": "None"}))], counts(2, 0, 1, 1)
    ),
    "tainted and allocated": Case(
        [slice_("s", "n", gpu("a", BAD), gpu("b"))], counts(2, 1, 1, 0), claims=(claim("a"),)
    ),
    "tainted and allocated, as in Kubernetes": Case(
        [slice_("s", "n", gpu("a", BAD), gpu("b"))],
        counts(2, 1, 0, 1),
        claims=(claim("a"),),
        counts_once=False,
    ),
    "several nodes": Case(
        [
            slice_("s", "n", gpu("a"), count=2),
            slice_("t", "n", gpu("b"), count=2, nodeName="other"),
        ],
        counts(2, 0, 2, 0, slices=2),
        node=None,
    ),
    "incomplete": Case(
        [slice_("s", "n", gpu("a"), count=3, generation=7)],
        {
            "generation": 7,
            "validationError": f"PoolIncomplete: {POOL} is incomplete: observed 1/3 slices at"
            " generation 7",
        },
    ),
    "partitions": Case(
        parts(part("a"), part("b"), part("c"), part("d", "whole", "40Gi")),
        counts(4, 0, 4, 0, slices=2) | partitions(("half", 3, 2), ("whole", 1, 1)),
    ),
    "partitions in use": Case(
        parts(part("a"), part("b"), part("d", "whole", "40Gi")),
        counts(3, 1, 2, 0, slices=2) | partitions(("half", 2, 1), ("whole", 1, 0)),
        claims=(claim("a"),),
    ),
    "the attribute of the request": Case(
        parts(part("a"), attribute=None),
        counts(1, 0, 1, 0, slices=2) | partitions(("half", 1, 1)),
        spec={"defaultPartitionTypeAttribute": KIND},
    ),
    "no attribute": Case(parts(part("a"), attribute=None), counts(1, 0, 1, 0, slices=2)),
    "a partition without a type": Case(
        parts(part("a"), part("b", None)),
        counts(2, 0, 2, 0, slices=2)
        | {
            "validationError": f'PartitionTypeMissing: device "b" in {POOL} does not carry'
            f' partition type attribute "{KIND}"'
        },
    ),
    "one type with two costs": Case(
        parts(part("a"), part("b", memory="10Gi")),
        counts(2, 0, 2, 0, slices=2)
        | {
            "validationError": f'PartitionCostMismatch: devices of partition type "half" in {POOL}'
            " consume different counters"
        },
    ),
    "an attribute without counters": Case(
        [slice_("s", "n", gpu("a"), partitionTypeAttribute=KIND)],
        counts(1, 0, 1, 0)
        | {
            "validationError": f"PartitionTypeMissing: {POOL} declares partitionTypeAttribute but"
            " publishes no sharedCounters"
        },
    ),
    "a partition of counters that the pool has not": Case(
        parts(part("a") | {"consumesCounters": [{"counterSet": "x", "counters": {}}]}),
        counts(1, 0, 1, 0, slices=2) | partitions(("half", 1, 0)),
    ),
    "shared devices": Case(
        [slice_("s", "n", shared("a", memory="40Gi"), shared("b", memory="40Gi", slots="2"))],
        counts(2, 1, 1, 0)
        | {
            "shareableSummary": {
                "fullyAvailableDevices": 1,
                "partiallyAvailableDevices": 1,
                "capacity": [
                    {"name": "memory", "total": "80Gi", "consumed": "15Gi", "available": "65Gi"},
                    {"name": "slots", "total": "2", "consumed": "0", "available": "2"},
                ],
            }
        },
        claims=(claim("a", memory="10Gi"), claim("a", memory="5Gi")),
    ),
    "more consumed than there is": Case(
        [slice_("s", "n", shared("a", memory="1Gi"))],
        counts(1, 1, 0, 0)
        | {
            "shareableSummary": {
                "fullyAvailableDevices": 0,
                "partiallyAvailableDevices": 1,
                "capacity": [
                    {"name": "memory", "total": "1Gi", "consumed": "2Gi", "available": "0"}
                ],
            }
        },
        claims=(claim("a", memory="2Gi"),),
    ),
    "33 types": Case(
        parts(*(part(f"d{i}", f"k{i}", "1Gi") for i in range(33))),
        counts(33, 0, 33, 0, slices=2)
        | {
            "validationError": f"PartitionSummaryOverCap: {POOL} has 33 partition types, exceeding"
            " the maximum of 32"
        },
    ),
    "33 capacities": Case(
        [slice_("s", "n", shared("a", **{f"c{i}": "1" for i in range(33)}))],
        counts(1, 0, 1, 0)
        | {
            "validationError": f"ShareableSummaryOverCap: {POOL} has 33 shareable capacity keys,"
            " exceeding the maximum of 32"
        },
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_pool(case: Case) -> None:
    spec = msgspec.convert({"driver": DRIVER, "limit": 100, **case.spec}, type=SPEC)
    pool = content(case.slices, case.claims)

    status = report([pool], spec, counts_once=case.counts_once)

    node = {} if case.node is None else {"nodeName": case.node}
    usual = {"driver": DRIVER, "poolName": "n", "generation": 1, **node}
    assert msgspec.json.decode(msgspec.json.encode(status.pools[0])) == usual | case.want


SPEC = ResourcePoolStatusRequestSpec


def test_pools_are_sorted_and_limited() -> None:
    pools = [content([slice_(name, name, gpu("a"))]) for name in ("c", "a", "b")]

    status = report(pools, SPEC(driver=DRIVER, limit=2))

    assert [pool.pool_name for pool in status.pools] == ["a", "b"]
    assert status.pool_count == 3
    assert summary(status) == "Calculated status for 2 pools"


def test_invalid_pools_are_counted() -> None:
    bodies = [slice_("s", "n", gpu("a"), partitionTypeAttribute=KIND)]

    status = report([content(bodies)], SPEC(driver=DRIVER, limit=1))

    assert summary(status) == "Calculated status for 1 pools (1 incomplete)"


def test_a_long_error_is_shortened() -> None:
    long = f"{DRIVER}/{'a' * 250}"
    bodies = [
        card(),
        slice_("p", "n", part("a"), count=2, partitionTypeAttribute=long),
    ]

    status = report([content(bodies)], SPEC(driver=DRIVER, limit=1))

    assert len(status.pools[0].validation_error or "") == 256


def test_an_effect_whose_gate_is_off_does_not_count() -> None:
    effect = "NoExecuteWithPodDisruptionBudget"
    pool = content([slice_("s", "n", gpu("a", BAD | {"effect": effect}))])

    off = report([pool], SPEC(driver=DRIVER, limit=1), effects=frozenset(("NoSchedule",)))
    on = report([pool], SPEC(driver=DRIVER, limit=1))

    assert (off.pools[0].unavailable_devices, on.pools[0].unavailable_devices) == (0, 1)
