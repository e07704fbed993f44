"""What is kept between attempts: the ledger of devices in use, and the offers of nodes."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from domain.allocation.fixtures import (
    NODE,
    attempt,
    demand,
    exactly,
    merged,
    names,
    offer,
    pool_slice,
    unallocated,
)
from sully.api.resource.types import AllocationResult, Device, ResourceSlice
from sully.domain.allocation.allocator import allocate
from sully.domain.allocation.candidates import Slot
from sully.domain.allocation.pools.node_pools import NodePoolsCache
from sully.domain.allocation.pools.nodes import AllocatorNode
from sully.domain.allocation.usage.ledger import Ledger, PoolUse
from sully.domain.allocation.verdicts import Allocated
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId, pool_of
from sully.domain.devices.taints import Origin, SourcedTaint
from sully.testing.builders import device, taint


def allocated(slices: list[ResourceSlice], **request: Any) -> AllocationResult:
    got = attempt(slices, unallocated(exactly(**request)))
    assert isinstance(got, Allocated), got
    return got.allocations[0]


def test_what_is_released_is_free() -> None:
    slices, ledger = [pool_slice(device("a"), device("b"))], Ledger()
    first = allocated(slices)
    ledger.take(first)
    ledger.take(first)
    assert names(attempt(slices, unallocated(), use=ledger)) == [["b"]]

    ledger.release(first)
    assert names(attempt(slices, unallocated(), use=ledger)) == [["b"]]
    ledger.release(first)
    assert names(attempt(slices, unallocated(), use=ledger)) == [["a"]]
    assert ledger.get(pool_of(slices[0])) is None


class Counting(Ledger):
    """Counts the questions it is asked."""

    asked = 0

    def get(self, pool: PoolId, /) -> PoolUse | None:
        self.asked += 1
        return super().get(pool)


def test_the_cost_does_not_grow_with_pools_that_do_not_matter() -> None:
    pools = [
        pool_slice(*(device(f"gpu-{index}") for index in range(8)), pool=f"p{number:04}")
        for number in range(300)
    ]
    result, expected, ledger = offer(pools), demand(unallocated()), Counting()
    for _ in range(250 * 8):
        got = allocate(expected, result, ledger)
        assert isinstance(got, Allocated)
        ledger.take(got.allocations[0])
    ledger.asked = 0
    allocate(expected, result, ledger)

    assert ledger.asked < 10


def test_a_release_is_seen_in_a_pool_that_was_full() -> None:
    pools = [pool_slice(device("a"), pool=f"p{number}") for number in range(3)]
    result, expected, ledger = offer(pools), demand(unallocated()), Ledger()
    taken = []
    for _ in range(3):
        got = allocate(expected, result, ledger)
        assert isinstance(got, Allocated)
        taken.append(got.allocations[0])
        ledger.take(taken[-1])
    assert not isinstance(allocate(expected, result, ledger), Allocated)
    ledger.release(taken[1])
    got = allocate(expected, result, ledger)

    assert isinstance(got, Allocated)
    assert got.allocations == (taken[1],)


class Shelf:
    """Slices that a test changes."""

    def __init__(self, *slices: ResourceSlice) -> None:
        self.known = {slice_.metadata.name: slice_ for slice_ in slices}
        self.marks: dict[str, SourcedTaint] = {}

    def pools_for(self, node: str) -> Sequence[PoolId]:
        return sorted({pool_of(item) for item in self.known.values()})

    def slices(self, pool: PoolId) -> Sequence[ResourceSlice]:
        return [item for item in self.known.values() if pool_of(item) == pool]

    def devices(self, slice_: ResourceSlice) -> Iterable[EffectiveDevice]:
        for item in merged(slice_):
            mark = self.marks.get(item.published.device.name)
            yield replace(item, taints=(mark,)) if mark is not None else item


OTHER = AllocatorNode("node-2", {})


def test_an_offer_lasts_until_a_pool_of_it_is_touched() -> None:
    here, there = pool_slice(device("a")), pool_slice(device("b"), pool="z", node_name="node-2")
    node_pools = NodePoolsCache(Shelf(here, there))
    before = node_pools.get(NODE), node_pools.get(OTHER)
    assert (node_pools.get(NODE), node_pools.get(OTHER)) == before

    node_pools.invalidate([pool_of(there)])
    assert node_pools.get(OTHER) is not before[1]


def test_a_pool_for_all_nodes_is_one_offer() -> None:
    everywhere = pool_slice(device("a"), all_nodes=True)
    node_pools = NodePoolsCache(Shelf(everywhere))

    assert node_pools.get(NODE).pools[0] is node_pools.get(OTHER).pools[0]


def test_devices_placed_one_by_one_are_offered_one_by_one() -> None:
    placed = pool_slice(
        Device(name="a", node_name="node-2"),
        Device(name="b", node_name="node-1"),
        per_device_node_selection=True,
    )
    node_pools = NodePoolsCache(Shelf(placed))

    assert names(attempt(node_pools.get(NODE), unallocated())) == [["b"]]
    assert names(attempt(node_pools.get(OTHER), unallocated())) == [["a"]]


def test_a_new_pool_a_new_taint_and_new_labels_are_seen() -> None:
    shelf = Shelf(pool_slice(device("b"), pool="m", name="m"))
    node_pools = NodePoolsCache(shelf)
    assert names(attempt(node_pools.get(NODE), unallocated())) == [["b"]]

    shelf.known["a"] = pool_slice(device("a"), pool="a", name="a", all_nodes=True)
    node_pools.invalidate([pool_of(shelf.known["a"])])
    assert names(attempt(node_pools.get(NODE), unallocated())) == [["a"]]

    shelf.marks["a"] = SourcedTaint(taint("NoSchedule"), Origin("DeviceTaintRule", "r"))
    node_pools.invalidate([pool_of(shelf.known["a"])])
    assert names(attempt(node_pools.get(NODE), unallocated())) == [["b"]]

    del shelf.known["m"]
    node_pools.invalidate([pool_of(pool_slice(pool="m"))])
    assert not isinstance(attempt(node_pools.get(NODE), unallocated()), Allocated)

    relabelled = AllocatorNode(NODE.name, {"zone": "b"})
    assert node_pools.get(relabelled).node == relabelled
    node_pools.remove_node(NODE.name)
    assert node_pools.get(NODE).node == NODE


def test_what_a_pool_keeps_does_not_refer_to_it() -> None:
    """Pools are replaced whenever a slice changes: a cycle would be garbage each time."""
    gc.collect()
    gc.disable()
    try:
        before = _slots()
        offered = offer([pool_slice(device("a"), device("b"))])
        assert names(allocate(demand(unallocated()), offered, Ledger())) == [["a"]]
        assert _slots() > before
        del offered
        assert _slots() == before
    finally:
        gc.enable()


def _slots() -> int:
    return sum(type(obj) is Slot for obj in gc.get_objects())
