"""Which pools a node sees, in which order, and which of them may be used."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from domain.allocation.fixtures import NODE, attempt, exactly, names, offer, pool_slice, unallocated
from sully.api.resource.types import (
    Counter,
    CounterSet,
    Device,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourceSlice,
)
from sully.domain.allocation.pools.nodes import AllocatorNode, selects_node
from sully.domain.allocation.verdicts import Unallocatable, UnallocatableReason
from sully.testing.builders import device, partition

ALL = unallocated(exactly(allocationMode="All"))
BUSY = "claim default/claim, request r: asks for all devices, but resource pool {} is currently {}"


def zone(value: str) -> NodeSelector:
    return where("zone", "In", value)


def where(key: str, operator: str, *values: str, fields: bool = False) -> NodeSelector:
    expected = (NodeSelectorRequirement(key=key, operator=operator, values=values),)
    term = (
        NodeSelectorTerm(match_fields=expected)
        if fields
        else NodeSelectorTerm(match_expressions=expected)
    )
    return NodeSelector(node_selector_terms=(term,))


@dataclass(frozen=True)
class Case:
    slices: list[ResourceSlice]
    one: list[list[str]] | str
    all: list[list[str]] | str


def waiting(name: str) -> Device:
    return msgspec.structs.replace(
        device(name), binding_conditions=("ready",), binding_failure_conditions=("broken",)
    )


def drawing(name: str, counter_set: str = "mem", counter: str = "bytes") -> Device:
    return partition(name, {counter: "1Gi"}, of=counter_set)


MEMORY = CounterSet(name="mem", counters={"bytes": Counter(value="4Gi")})

CASES = {
    "nothing at all": Case(
        [], UnallocatableReason.CANNOT_ALLOCATE, UnallocatableReason.CANNOT_ALLOCATE
    ),
    "counters beside their devices, as in Kubernetes 1.34": Case(
        [pool_slice(drawing("a"), counters=(MEMORY,))], [["a"]], [["a"]]
    ),
    "the same for another node": Case(
        [pool_slice(drawing("a"), counters=(MEMORY,), node_name="node-2")],
        UnallocatableReason.CANNOT_ALLOCATE,
        UnallocatableReason.CANNOT_ALLOCATE,
    ),
    "another node's slice": Case(
        [pool_slice(device("a"), node_name="node-2")],
        UnallocatableReason.CANNOT_ALLOCATE,
        UnallocatableReason.CANNOT_ALLOCATE,
    ),
    "all nodes": Case([pool_slice(device("a"), all_nodes=True)], [["a"]], [["a"]]),
    "a selector that holds": Case(
        [pool_slice(device("a"), node_selector=zone("a"))], [["a"]], [["a"]]
    ),
    "a selector that does not": Case(
        [pool_slice(device("a"), node_selector=zone("b"))],
        UnallocatableReason.CANNOT_ALLOCATE,
        UnallocatableReason.CANNOT_ALLOCATE,
    ),
    "pools by driver, then by name; slices by name": Case(
        [
            pool_slice(device("d"), pool="z"),
            pool_slice(device("c"), name="s-2", pool="y", count=2),
            pool_slice(device("b"), name="s-1", pool="y", count=2),
        ],
        [["b"]],
        [["b", "c", "d"]],
    ),
    "a pool whose devices need waiting comes last": Case(
        [pool_slice(waiting("a"), pool="a"), pool_slice(device("b"), pool="b")],
        [["b"]],
        [["b", "a"]],
    ),
    "an incomplete pool": Case(
        [pool_slice(device("a"), pool="a", count=2), pool_slice(device("b"), pool="b")],
        [["b"]],
        BUSY.format("gpu.example.com/a", "being updated"),
    ),
    "too many slices": Case(
        [pool_slice(device("a"), name="s-1"), pool_slice(device("b"), name="s-2")],
        UnallocatableReason.CANNOT_ALLOCATE,
        BUSY.format("gpu.example.com/pool-1", "being updated"),
    ),
    "the rest of the pool is for other nodes": Case(
        [
            pool_slice(device("a"), name="s-1", count=2),
            pool_slice(device("b"), name="s-2", count=2, node_name="node-2"),
        ],
        [["a"]],
        [["a"]],
    ),
    "an older generation": Case(
        [
            pool_slice(device("a"), name="s-1"),
            pool_slice(device("b"), name="s-2", generation=2),
        ],
        [["b"]],
        [["b"]],
    ),
    "being replaced by a generation for other nodes": Case(
        [
            pool_slice(device("a"), name="s-1", count=2),
            pool_slice(device("b"), name="s-2", generation=2, node_name="node-2"),
        ],
        UnallocatableReason.CANNOT_ALLOCATE,
        UnallocatableReason.CANNOT_ALLOCATE,
    ),
    "a name twice": Case(
        [
            pool_slice(device("a"), name="s-1", count=2),
            pool_slice(device("a"), name="s-2", count=2),
        ],
        UnallocatableReason.INVALID_POOLS,
        BUSY.format("gpu.example.com/pool-1", "invalid"),
    ),
    "a name twice, elsewhere": Case(
        [
            pool_slice(device("a"), name="s-1", count=2),
            pool_slice(device("a"), name="s-2", count=2, node_name="node-2"),
        ],
        [["a"]],
        [["a"]],
    ),
    "an invalid pool beside a good one": Case(
        [pool_slice(device("b"), pool="y"), pool_slice(drawing("a"), pool="z")],
        [["b"]],
        BUSY.format("gpu.example.com/z", "invalid"),
    ),
    "counters come from any slice": Case(
        [
            pool_slice(drawing("a"), name="s-1", count=2),
            pool_slice(name="s-2", count=2, counters=(MEMORY,), node_name="node-2"),
        ],
        [["a"]],
        [["a"]],
    ),
    "counters alone are not a pool for a node": Case(
        [pool_slice(name="s-2", count=2, counters=(MEMORY,), all_nodes=True)],
        UnallocatableReason.CANNOT_ALLOCATE,
        UnallocatableReason.CANNOT_ALLOCATE,
    ),
    "devices placed one by one": Case(
        [
            pool_slice(
                Device(name="a", node_name="node-2"),
                Device(name="b", node_name="node-1"),
                Device(name="c", node_selector=zone("b")),
                Device(name="d", all_nodes=True),
                per_device_node_selection=True,
            )
        ],
        [["b"]],
        [["b", "d"]],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pools(case: Case) -> None:
    for slices in (case.slices, case.slices[::-1]):
        assert names(attempt(slices, unallocated())) == case.one
        assert names(attempt(slices, ALL)) == case.all


PROBLEMS = {
    "no such counter set": ([drawing("a", "other")], "counter set other not found"),
    "no such counter": (
        [drawing("a", counter="bits")],
        "counter bits not found in counter set mem",
    ),
    "a device twice": ([device("a"), device("a")], "duplicate device name a"),
}


@pytest.mark.parametrize(("devices", "want"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_what_is_wrong_with_a_pool(devices: list[Device], want: str) -> None:
    counters = pool_slice(name="counters", count=2, counters=(MEMORY,), all_nodes=True)
    got = attempt([pool_slice(*devices, name="devices", count=2), counters], unallocated())

    assert isinstance(got, Unallocatable)
    assert list(got.invalid.values()) == [want]


def test_a_counter_set_twice() -> None:
    slices = [pool_slice(device("a"), name="s-0", count=3)] + [
        pool_slice(name=f"s-{index}", count=3, counters=(MEMORY,)) for index in (1, 2)
    ]

    assert list(offer(slices).invalid.values()) == ["duplicate counter set name mem"]


SELECTORS = {
    "In": (where("zone", "In", "b", "a"), True),
    "NotIn": (where("zone", "NotIn", "a"), False),
    "NotIn without the label": (where("tier", "NotIn", "a"), True),
    "Exists": (where("zone", "Exists"), True),
    "DoesNotExist": (where("zone", "DoesNotExist"), False),
    "Gt": (where("cores", "Gt", "4"), True),
    "Lt": (where("cores", "Lt", "4"), False),
    "Gt without value": (where("cores", "Gt"), False),
    "an operator from later": (where("zone", "Near", "a"), False),
    "by name": (where("metadata.name", "In", NODE.name, fields=True), True),
    "by another name": (where("metadata.name", "In", "node-2", fields=True), False),
    "no term": (NodeSelector(node_selector_terms=()), False),
    "a term without requirements": (NodeSelector(node_selector_terms=(NodeSelectorTerm(),)), False),
    "one of two terms": (
        NodeSelector(
            node_selector_terms=(
                *(zone("b").node_selector_terms or ()),
                *(zone("a").node_selector_terms or ()),
            )
        ),
        True,
    ),
}


@pytest.mark.parametrize(("selector", "want"), SELECTORS.values(), ids=SELECTORS.keys())
def test_node_selectors(selector: NodeSelector, want: bool) -> None:
    assert selects_node(selector, AllocatorNode(NODE.name, {"zone": "a", "cores": "8"})) is want
