"""What is known of one device: place, taints with their end, holders and what they tolerate."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from sully.api.resource.types import (
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    NodeSelector,
    ResourceClaim,
)
from sully.client.transport import Key, Kind
from sully.domain.allocation.usage.conflicts import DeviceConflict
from sully.domain.devices.pools import DeviceId
from sully.testing.builders import (
    DRIVER,
    GPU,
    claim,
    class_,
    device,
    exists,
    node,
    partition,
    patch,
    pod,
    rule,
    select,
    slice_,
    taint,
    text,
)
from sully.testing.clock import NOON
from sully.views.devices.device_views import ClaimView, DeviceView, DeviceViews, TaintView, natural
from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS, PATCHES, RULES, SLICES
from sully.views.snapshot.kinds import NODES
from sully.views.snapshot.snapshot import Objects, Snapshot

LATER = NOON + timedelta(minutes=10)
END = NOON + timedelta(hours=1)
ENDS: dict[str, Any] = {"annotations": {"sully.dev/expires-at": "2030-01-01T13:00:00Z"}}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
PAUSED: dict[str, Any] = {"annotations": {"sully.dev/paused": "wait"}}


def device_views(**objects: list[Any]) -> DeviceViews:
    kinds: dict[str, Kind[Any]] = {
        "slices": SLICES,
        "classes": CLASSES,
        "rules": RULES,
        "patches": PATCHES,
        "claims": CLAIMS,
        "pods": CONSUMER_PODS,
        "nodes": NODES,
    }
    snapshot = Snapshot([Objects(kinds[obj], objects[obj]) for obj in objects], taken=LATER)
    return DeviceViews(
        snapshot.inventory,
        snapshot.usage,
        snapshot.of(PATCHES),
        plane=snapshot.control_plane,
        nodes=snapshot.of(NODES),
    )


def look(**objects: list[Any]) -> DeviceView:
    """Return the one device there is."""
    objects.setdefault("slices", [slice_("s", device())])
    (only,) = device_views(**objects).all(LATER)
    return only


def _text(mark: TaintView) -> str:
    ends = " ends" if mark.expiry == END else ""
    paused = " paused" if mark.paused == "wait" else ""
    return f"{mark.sourced.origin}{ends}{paused}"


def holder(**more: Any) -> ClaimView:
    more.setdefault("pods", (Key("default", "pod"),))
    return ClaimView(Key("default", "claim"), request="r", **more)


@dataclass(frozen=True)
class Case:
    objects: dict[str, list[Any]] = field(default_factory=dict)
    marks: tuple[str, ...] = ()
    holders: tuple[ClaimView, ...] = ()
    free: bool = False


HELD: dict[str, list[Any]] = {"claims": [claim("claim", GPU)], "pods": [pod("pod", "claim")]}
RULED: dict[str, list[Any]] = {"rules": [rule("r", select())]}
CASES = {
    "nothing": Case(free=True),
    "in use": Case(HELD, holders=(holder(),)),
    "a claim without a pod": Case(
        {"claims": [claim("claim", GPU, pods=())]}, holders=(holder(pods=()),)
    ),
    "a rule evicts it": Case(
        {**HELD, **RULED}, ("DeviceTaintRule/r",), (holder(eviction_time=NOON),)
    ),
    "later, because it is tolerated for a time": Case(
        {**HELD, **RULED, "claims": [claim("claim", (GPU, (exists(seconds=900),)))]},
        ("DeviceTaintRule/r",),
        (holder(tolerations=(exists(seconds=900),), eviction_time=NOON + timedelta(minutes=15)),),
    ),
    "never, because it is tolerated": Case(
        {**HELD, **RULED, "claims": [claim("claim", (GPU, (exists(), exists(key="other"))))]},
        ("DeviceTaintRule/r",),
        (holder(tolerations=(exists(),)),),
    ),
    "not while the rule is paused": Case(
        {**HELD, "rules": [rule("r", select(), **PAUSED)]},
        ("DeviceTaintRule/r paused",),
        (holder(),),
    ),
    "not when the pod is finished": Case(
        {**HELD, **RULED, "pods": [pod("pod", "claim", status={"phase": "Succeeded"})]},
        ("DeviceTaintRule/r",),
        (holder(),),
    ),
    "a rule that ends": Case(
        {"rules": [rule("r", select(), **ENDS)]}, ("DeviceTaintRule/r ends",)
    ),
    "a rule that prevents nothing": Case(
        {"rules": [rule("r", select(), taint("None"))]}, ("DeviceTaintRule/r",), free=True
    ),
    "a node that takes pods, reserved for some": Case(
        {"nodes": [node("node-1", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})]},
        free=True,
    ),
    "a node that does not exist": Case({"nodes": [node("other")]}),
    "a cordoned node": Case({"nodes": [node("node-1", spec={"unschedulable": True})]}),
    "a node that is not ready": Case(
        {"nodes": [node("node-1", spec={"taints": [NOT_READY]})]},
    ),
    "the driver first, then patches, then rules": Case(
        {
            "slices": [slice_("s", device("gpu-0", taint("NoSchedule", key="a")))],
            "patches": [patch("p", taints=(taint("NoSchedule", key="b"),))],
            **RULED,
        },
        ("ResourceSlice/s", "ResourceSlicePatch/p", "DeviceTaintRule/r"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_sight(case: Case) -> None:
    result = look(**case.objects)

    assert tuple(_text(taint) for taint in result.taints) == case.marks
    assert result.claims == case.holders
    assert result.free is case.free


def test_a_device_that_is_gone_is_shown_while_it_is_held() -> None:
    result = look(slices=[], **HELD, rules=[rule("r", select(pool="pool-1"))])

    assert (result.id, result.device, result.node, result.free) == (GPU, None, "", False)
    assert [taint.sourced.origin.name for taint in result.taints] == ["r"]
    assert result.claims[0].eviction_time == NOON


def test_who_only_looks_does_not_use_it() -> None:
    result = look(claims=[holding("claim", admin_access=True)])

    assert result.free
    assert result.claims[0].admin


def holding(name: str, device: DeviceId = GPU, **more: Any) -> ResourceClaim:
    """Return a claim that has a device in a special way."""
    known = claim(name, device)
    allocation = known.status.allocation
    assert allocation is not None
    (result,) = allocation.devices.results
    changed = msgspec.structs.replace(result, **more)
    devices = msgspec.structs.replace(allocation.devices, results=(changed,))
    allocated = msgspec.structs.replace(allocation, devices=devices)
    status = msgspec.structs.replace(known.status, allocation=allocated)
    return msgspec.structs.replace(known, status=status)


NIC = msgspec.structs.replace(
    device("gpu-0"),
    allow_multiple_allocations=True,
    capacity={"bandwidth": DeviceCapacity(value="10G")},
)


def share(name: str, amount: str) -> ResourceClaim:
    return holding(name, share_id=f"share-{name}", consumed_capacity={"bandwidth": amount})


ROOM = {
    "nobody has a share": ([], "10G", True),
    "some have": ([share("a", "4G"), share("b", "3G")], "3G", True),
    "it is shared out": ([share("a", "4G"), share("b", "6G")], "0", False),
    "who only looks takes nothing": (
        [holding("a", admin_access=True, share_id="x", consumed_capacity={"bandwidth": "10G"})],
        "10G",
        True,
    ),
    "a user has all of it": ([claim("a", GPU)], "10G", False),
}


@pytest.mark.parametrize(("claims", "left", "free"), ROOM.values(), ids=ROOM)
def test_a_device_that_can_be_shared(claims: list[ResourceClaim], left: str, free: bool) -> None:
    result = look(slices=[slice_("s", NIC)], claims=claims)

    assert {name: str(amount) for name, amount in result.left.items()} == {"bandwidth": left}
    assert result.free is free
    assert [claim.consumed for claim in result.claims] == [_consumed(claim) for claim in claims]


CONFLICTS: dict[str, tuple[Device, list[ResourceClaim], DeviceConflict | None]] = {
    "one claim": (device(), [claim("a", GPU)], None),
    "two claims": (
        device(),
        [claim("a", GPU), claim("b", GPU, namespace="other")],
        DeviceConflict("AllocatedTwice", ("default/a", "other/b")),
    ),
    "admin access": (device(), [claim("a", GPU), holding("b", admin_access=True)], None),
    "shares": (NIC, [share("a", "4G"), share("b", "6G")], None),
    "too large shares": (
        NIC,
        [share("a", "4G"), share("b", "6G"), share("c", "1")],
        DeviceConflict("CapacityExceeded", ("default/a", "default/b", "default/c"), ("bandwidth",)),
    ),
    "a share and all of it": (
        NIC,
        [share("a", "4G"), claim("b", GPU)],
        DeviceConflict("AllocatedTwice", ("default/a", "default/b")),
    ),
    "a device without capacity": (
        Device(name="gpu-0", allow_multiple_allocations=True),
        [holding("a", share_id="x"), holding("b", share_id="y")],
        None,
    ),
}


@pytest.mark.parametrize(("published", "claims", "want"), CONFLICTS.values(), ids=CONFLICTS)
def test_conflict(
    published: Device, claims: list[ResourceClaim], want: DeviceConflict | None
) -> None:
    assert look(slices=[slice_("s", published)], claims=claims).conflict == want


def test_conflict_of_a_device_that_is_no_longer_published() -> None:
    view = look(slices=[], claims=[claim("a", GPU), claim("b", GPU)])

    assert view.conflict == DeviceConflict("AllocatedTwice", ("default/a", "default/b"))


def _consumed(claim: ResourceClaim) -> dict[str, str]:
    assert claim.status.allocation is not None
    return claim.status.allocation.devices.results[0].consumed_capacity


def test_partitions_keep_each_other_busy() -> None:

    card = CounterSet(name="card", counters={"memory": Counter(value="40Gi")})
    counters = slice_("counters", count=2)
    shown = device_views(
        slices=[
            slice_(
                "s",
                partition("half", {"memory": "20Gi"}),
                partition("whole", {"memory": "40Gi"}),
                partition("other", {"memory": "20Gi"}),
                count=2,
            ),
            msgspec.structs.replace(
                counters, spec=msgspec.structs.replace(counters.spec, shared_counters=(card,))
            ),
        ],
        claims=[holding("c", DeviceId(DRIVER, "pool-1", "half"))],
    )

    results = {item.id.device: item for item in shown.all(LATER)}

    assert {name: entry.free for name, entry in results.items()} == {
        "half": False,
        "other": True,
        "whole": False,
    }
    assert results["whole"].obstacle is not None
    assert results["half"].obstacle is None


def test_a_pool_that_is_not_whole_gives_nothing_away() -> None:
    result = look(slices=[slice_("s", device(), count=2)])

    assert not result.free
    assert result.obstacle is not None


PLACES = {
    "a node": (slice_("s", device()), "node-1"),
    "all nodes": (slice_("s", device(), node=None), "*"),
    "a selector": (
        msgspec.structs.replace(
            slice_("s", device()),
            spec=msgspec.structs.replace(
                slice_("s", device()).spec, node_name=None, node_selector=NodeSelector()
            ),
        ),
        "(selector)",
    ),
    "each device its own": (
        msgspec.structs.replace(
            slice_("s", device()),
            spec=msgspec.structs.replace(
                slice_("s", device()).spec,
                node_name=None,
                per_device_node_selection=True,
                devices=(msgspec.structs.replace(device(), node_name="node-9"),),
            ),
        ),
        "node-9",
    ),
}


@pytest.mark.parametrize(("slice_", "want"), PLACES.values(), ids=PLACES)
def test_node(slice_: Any, want: str) -> None:
    assert look(slices=[slice_]).node == want


def test_order_and_class() -> None:
    names = ("gpu-10", "gpu-2", "gpu-1", "gpu-001", "gpu-01")
    shown = device_views(
        slices=[
            slice_("s", *(device(name, model=text(name)) for name in names)),
            slice_("t", device("x"), pool="pool-10"),
            slice_("u", device("x"), pool="pool-9"),
            slice_("v", device("x"), pool="pool-09"),
        ],
        classes=[
            class_("two", f'device.attributes["{DRIVER}"].model == "gpu-2"'),
            class_("all", "true"),
        ],
    )

    result = list(shown.all(LATER))

    assert [str(item.id).removeprefix(f"{DRIVER}/") for item in result] == [
        "pool-1/gpu-001",
        "pool-1/gpu-01",
        "pool-1/gpu-1",
        "pool-1/gpu-2",
        "pool-1/gpu-10",
        "pool-09/x",
        "pool-9/x",
        "pool-10/x",
    ]
    devices = [item.device for item in result if item.device is not None]
    assert [device.id.device for device in devices if shown.in_class(device, "two")] == ["gpu-2"]
    assert len(devices) == len(result)
    assert all(shown.in_class(device, "all") for device in devices)


def test_natural() -> None:
    assert sorted(["a10", "a9b", "a9", "b", "10", "9", ""], key=natural) == [
        "", "9", "10", "a9", "a9b", "a10", "b",
    ]  # fmt: skip
