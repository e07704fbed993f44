"""The account of a pod that got no devices: what it counts, what it leaves out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from domain.allocation.fixtures import (
    NODE,
    attempt,
    demand,
    exactly,
    offer,
    pool_slice,
    unallocated,
)
from sully.api.resource.types import Device, ResourceSlice
from sully.domain.allocation.pools.nodes import AllocatorNode
from sully.domain.allocation.rejections.survey import Survey, diagnose
from sully.domain.allocation.usage.ledger import Ledger
from sully.domain.allocation.verdicts import Allocated
from sully.domain.scheduling.diagnosis import (
    MOST_BYTES,
    Blocked,
    Diagnosis,
    decode,
    diagnosis_of,
    encode,
    for_claims,
)
from sully.testing.builders import class_, device, exists, rule, select, taint, text

H100 = 'device.attributes["gpu.example.com"].model == "h100"'
SECOND = AllocatorNode("node-2")


def taken(slices: list[ResourceSlice], *names: str) -> Ledger:
    """Return a ledger in which claims of these names hold one device each."""
    ledger = Ledger()
    for name in names:
        got = attempt(slices, unallocated(name=name), use=ledger)
        assert isinstance(got, Allocated)
        ledger.take(got.allocations[0], f"default/{name}")
    return ledger


def diagnosis(survey: Survey, claim: Any = None, use: Ledger | None = None) -> Diagnosis:
    refused = diagnose(demand(claim or unallocated()), survey, use or Ledger())
    return diagnosis_of(refused, nodes=2, reached=len(survey.reached), counted=len(survey))


def on_first(*devices: Device) -> list[ResourceSlice]:
    return [pool_slice(*devices)]


def on_second(*devices: Device) -> list[ResourceSlice]:
    return [pool_slice(*devices, pool="pool-2", node_name="node-2")]


def test_devices_of_all_nodes_are_counted_together() -> None:
    first = on_first(device("a", taint("NoSchedule", value="x")), device("b"))
    second = on_second(device("c", taint("NoSchedule", value="x")), device("d"))
    marks = [rule("broken", select(pool="pool-2", device="d"), taint("NoSchedule"))]
    survey = Survey([offer(first), offer(second, node=SECOND, rules=marks)])

    got = diagnosis(survey, use=taken([pool_slice(device("b"))], "holder"))

    assert json.loads(encode(got)) == {
        "nodes": 2,
        "reached": 2,
        "counted": 2,
        "requests": [
            {
                "claim": "default/claim",
                "request": "r",
                "wanted": 1,
                "refused": {"inUse": 1, "taint": 3},
                "taints": [
                    {
                        "key": "example.com/broken",
                        "effect": "NoSchedule",
                        "origin": "DeviceTaintRule/broken",
                        "devices": 1,
                    },
                    {
                        "key": "example.com/broken",
                        "value": "x",
                        "effect": "NoSchedule",
                        "origin": "ResourceSlice/gpu.example.com-pool-1",
                        "devices": 1,
                    },
                    {
                        "key": "example.com/broken",
                        "value": "x",
                        "effect": "NoSchedule",
                        "origin": "ResourceSlice/gpu.example.com-pool-2",
                        "devices": 1,
                    },
                ],
                "holders": [{"claim": "default/holder", "devices": 1}],
            }
        ],
    }
    assert got.reason == "DevicesTainted"


def test_a_device_that_several_nodes_see_is_counted_once() -> None:
    shared = [pool_slice(device("a", taint("NoExecute")), all_nodes=True)]
    got = diagnosis(Survey([offer(shared), offer(shared, node=SECOND)]))

    assert got.requests[0].refused == {"taint": 1}


def test_a_device_for_one_of_the_nodes_counts_as_that_one_sees_it() -> None:
    apart = [
        pool_slice(
            Device(name="a", node_name="node-1", taints=(taint("NoSchedule"),)),
            Device(name="b", node_name="node-3"),
            per_device_node_selection=True,
        )
    ]
    second = [
        pool_slice(
            Device(name="a", node_name="node-1", taints=(taint("NoSchedule"),)),
            Device(name="c", node_name="node-2"),
            per_device_node_selection=True,
        )
    ]
    got = diagnosis(Survey([offer(apart), offer(second, node=SECOND)]))

    assert got.requests[0].refused["taint"] == 1
    assert got.requests[0].available == 1


def test_devices_on_nodes_that_do_not_take_the_pod_are_out_of_reach() -> None:
    survey = Survey([offer(on_first())], [offer(on_second(device("a"), device("b")), node=SECOND)])
    got = diagnosis(survey)

    assert got.requests[0].refused == {"node": 2}
    assert (got.reached, got.counted, got.reason) == (1, 2, "DevicesElsewhere")


def test_selectors_are_named_by_class_and_place() -> None:
    devices = on_first(device("a", model=text("a100")), device("b", model=text("h100")))
    choosy = class_("choosy", 'device.driver == "gpu.example.com"', H100)
    claim = unallocated(exactly(class_name="choosy", expressions=["true", "false"]))
    expected = demand(claim, classes=[choosy])
    refused = diagnose(expected, Survey([offer(devices)]), Ledger())
    got = diagnosis_of(refused, nodes=1, reached=1, counted=1)

    assert [msgspec.to_builtins(selector) for selector in got.requests[0].selectors] == [
        {"index": 1, "devices": 1},
        {"deviceClass": "choosy", "index": 1, "devices": 1},
    ]
    assert got.reason == "SelectorsExclude"


def test_pools_that_cannot_be_used_are_named() -> None:
    half = [pool_slice(device("a"), count=2)]
    twice = [pool_slice(device("a"), device("a"), pool="pool-2")]
    got = diagnosis(Survey([offer([*half, *twice])]))

    assert got.incomplete_pools == ("gpu.example.com/pool-1",)
    assert got.invalid_pools == {"gpu.example.com/pool-2": "duplicate device name a"}
    assert got.reason == "PoolsUnusable"


REASONS: dict[str, tuple[Diagnosis, str]] = {
    "nothing at all": (diagnosis(Survey([offer(on_first())])), "NoDevices"),
    "enough, but not together": (
        diagnosis(Survey([offer(on_first(device("a")))])),
        "NotTogether",
    ),
    "a claim that is elsewhere": (
        Diagnosis(nodes=2, blocked=(Blocked(claim="a/c", nodes=1),)),
        "ClaimElsewhere",
    ),
}


@pytest.mark.parametrize(("account", "want"), REASONS.values(), ids=REASONS.keys())
def test_the_reason_in_a_word(account: Diagnosis, want: str) -> None:
    assert account.reason == want


def test_what_is_written_can_be_read() -> None:
    survey = Survey([offer(on_first(device("a", taint("NoSchedule"))))])
    got = diagnosis(survey, unallocated(exactly(tolerations=[exists(effect="NoExecute")])))

    assert decode(encode(got)) == got
    assert decode("no account") is None
    assert decode('{"nodes": "many"}') is None


def test_other_names_for_the_same() -> None:
    got = for_claims(diagnosis(Survey([offer(on_first())])), lambda _: "b/other")

    assert [request.claim for request in got.requests] == ["b/other"]


def test_a_large_cluster_makes_no_large_account() -> None:
    long = "x" * 200
    slices = [
        pool_slice(
            device("a", taint("NoSchedule", value=f"v{place}")),
            pool=f"{long}-{place}",
            name=f"{long}-{place}",
        )
        for place in range(100)
    ]
    got = diagnosis(
        Survey([offer(slices)]), unallocated(*(exactly(f"r{place}") for place in range(32)))
    )
    written = encode(got)
    back = decode(written)

    assert len(written) <= MOST_BYTES
    assert back is not None
    assert len(back.requests) + back.more_requests == 32
    assert all(
        request.refused == {"taint": 100} and len(request.taints) + request.more_taints == 100
        for request in back.requests
    )


def test_counts_follow_the_ledger() -> None:
    slices = on_first(device("a"), device("b"))
    seen, ledger = Survey([offer(slices, node=NODE)]), Ledger()
    before = diagnosis(seen, use=ledger).requests[0]
    got = attempt(seen.reached[0], unallocated(name="x"), use=ledger)
    assert isinstance(got, Allocated)
    ledger.take(got.allocations[0], "default/x")
    during = diagnosis(seen, use=ledger).requests[0]
    ledger.release(got.allocations[0], "default/x")
    after = diagnosis(seen, use=ledger).requests[0]

    assert (before.available, during.available, after.available) == (2, 1, 2)
    assert [holder.claim for holder in during.holders] == ["default/x"]
