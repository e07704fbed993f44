"""Slices, claims and nodes for tests of the allocator, with what a case is not about filled in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

import manifests
from manifests import request
from sully.api.resource.types import (
    CounterSet,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from sully.domain.allocation.allocator import allocate
from sully.domain.allocation.failures import Unresolved
from sully.domain.allocation.pools.node_pools import NodePools, gather_node, gather_pool
from sully.domain.allocation.pools.nodes import AllocatorNode
from sully.domain.allocation.requests import Demand, HonoredTaints, prepare
from sully.domain.allocation.usage.ledger import Ledger
from sully.domain.allocation.verdicts import Allocated, Failed, Unallocatable, Verdict
from sully.domain.devices.device import EffectiveDevice, Published
from sully.domain.devices.patches import overlay
from sully.domain.devices.pools import PoolId, pool_of
from sully.domain.devices.rules import names_match, sourced
from sully.domain.devices.taints import BLOCKING_EFFECTS
from sully.domain.scheduling.messages import allocation_failure
from sully.testing.builders import DRIVER, class_, slice_

NODE = AllocatorNode("node-1", {"zone": "a"})
GPU = class_("gpu", f'device.driver == "{DRIVER}"')
ANY = class_("any")
CLASSES = {"gpu": GPU, "any": ANY}


def pool_slice(
    *devices: Device,
    name: str = "",
    pool: str = "pool-1",
    driver: str = DRIVER,
    counters: tuple[CounterSet, ...] = (),
    generation: int = 1,
    count: int = 1,
    **place: Any,
) -> ResourceSlice:
    """Return a slice for NODE, unless it is placed otherwise."""
    spec: dict[str, Any] = {
        "shared_counters": counters,
        "all_nodes": None,
        **(place or {"node_name": NODE.name}),
    }
    known: dict[str, Any] = {"driver": driver, "generation": generation, "count": count}
    return slice_(name or f"{driver}-{pool}", *devices, pool=pool, node=None, **known | spec)


def merged(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule] = ()) -> list[EffectiveDevice]:
    """Return the devices of a slice with the taints of rules."""
    results = []
    for index in range(len(slice_.spec.devices)):
        plain = overlay(Published(slice_, index), ())
        added = [sourced(one) for one in rules if names_match(one.spec.device_selector, plain.id)]
        results.append(msgspec.structs.replace(plain, taints=(*plain.taints, *added)))
    return results


def offer(
    slices: Sequence[ResourceSlice],
    *,
    node: AllocatorNode = NODE,
    rules: Sequence[DeviceTaintRule] = (),
) -> NodePools:
    """Return what a node is offered by these slices."""
    pools: dict[PoolId, list[ResourceSlice]] = {}
    for part in slices:
        pools.setdefault(pool_of(part), []).append(part)
    made = (
        gather_pool(id_, known, lambda one: merged(one, rules), node)
        for id_, known in pools.items()
    )
    return gather_node(node, made)


def exactly(name: str = "r", class_name: str = "gpu", **more: Any) -> dict[str, Any]:
    return request(class_name, name, **_plain(more))


def first_of(name: str, *subrequests: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "firstAvailable": list(subrequests)}


def sub(name: str, class_name: str = "gpu", **more: Any) -> dict[str, Any]:
    return {"name": name, "deviceClassName": class_name, **_plain(more)}


def _plain(more: dict[str, Any]) -> dict[str, Any]:
    if "expressions" in more:
        texts = more.pop("expressions")
        more["selectors"] = [{"cel": {"expression": text}} for text in texts]
    return {name: msgspec.to_builtins(value) for name, value in more.items()}


def unallocated(
    *requests: dict[str, Any],
    name: str = "claim",
    constraints: Iterable[DeviceConstraint] = (),
    config: Iterable[dict[str, Any]] = (),
) -> ResourceClaim:
    """Return a claim that is not allocated."""
    devices = {
        "requests": list(requests or (exactly(),)),
        "constraints": [msgspec.to_builtins(constraint) for constraint in constraints],
        "config": list(config),
    }
    body = manifests.body("ResourceClaim", name, {"devices": devices}, namespace="default")
    return msgspec.convert(manifests.stored(body), ResourceClaim)


def read(
    *claims: ResourceClaim, classes: Iterable[DeviceClass] = (), **options: Any
) -> Demand | Unresolved | Failed:
    known = CLASSES | {class_.metadata.name: class_ for class_ in classes}
    return prepare(claims, known.get, HonoredTaints(**options))


def demand(*claims: ResourceClaim, classes: Iterable[DeviceClass] = (), **options: Any) -> Demand:
    result = read(*claims, classes=classes, **options)
    assert isinstance(result, Demand), result
    return result


def attempt(
    slices: Sequence[ResourceSlice] | NodePools,
    *claims: ResourceClaim,
    use: Ledger | None = None,
    classes: Iterable[DeviceClass] = (),
    taints: bool = True,
    advice: bool = False,
    **options: Any,
) -> Verdict:
    """Allocate claims from slices, or from an offer."""
    result = slices if isinstance(slices, NodePools) else offer(slices)
    blocking = BLOCKING_EFFECTS if taints else frozenset[str]()
    expected = demand(*claims, classes=classes, blocking=blocking, preference=advice)
    held = use if use is not None else Ledger()
    got = allocate(expected, result, held, **options)
    # Who asks many nodes goes another way, to the same end.
    brief = allocate(expected, result, held, **(options | {"explain": False}))
    assert brief == (replace(got, requests=()) if isinstance(got, Unallocatable) else got)
    return got


def names(verdict: Verdict) -> list[list[str]] | str:
    """Return the devices of each claim, or the text of a refusal or error."""
    if isinstance(verdict, Allocated):
        return [[result.device for result in one.devices.results] for one in verdict.allocations]
    if isinstance(verdict, Failed):
        return allocation_failure(verdict.failure)
    return verdict.reason


def results(verdict: Verdict) -> Iterator[tuple[str, str, tuple[DeviceToleration, ...]]]:
    assert isinstance(verdict, Allocated), verdict
    for one in verdict.allocations:
        for result in one.devices.results:
            yield result.request, result.device, result.tolerations
