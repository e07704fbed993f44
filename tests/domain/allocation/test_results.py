"""How an allocation is written down."""

from __future__ import annotations

from typing import Any

import pytest

from domain.allocation.fixtures import (
    NODE,
    attempt,
    exactly,
    first_of,
    pool_slice,
    sub,
    unallocated,
)
from sully.api.resource.types import (
    AllocationResult,
    Device,
    DeviceCapacity,
    DeviceClass,
    DeviceClassConfiguration,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    OpaqueDeviceConfiguration,
    ResourceSlice,
)
from sully.domain.allocation.pools.nodes import is_usable_on
from sully.domain.allocation.results import with_share_ids
from sully.domain.allocation.verdicts import Allocated
from sully.testing.builders import class_, device

DEVICES = pool_slice(*(device(f"gpu-{index}") for index in range(4)))


def configured(name: str, *settings: str) -> DeviceClass:
    config = tuple(DeviceClassConfiguration(opaque=opaque(text)) for text in settings)
    return class_(name, config=config)


def opaque(text: str) -> OpaqueDeviceConfiguration:
    return OpaqueDeviceConfiguration(driver="gpu.example.com", parameters={"is": text})


def config(text: str, *requests: str) -> dict[str, Any]:
    settings = {"driver": "gpu.example.com", "parameters": {"is": text}}
    return {"requests": list(requests), "opaque": settings}


def allocation(slices: list[ResourceSlice], claim: Any) -> AllocationResult:
    classes = [configured("red", "red-1", "red-2"), configured("blue", "blue")]
    got = attempt(slices, claim, classes=classes)
    assert isinstance(got, Allocated), got
    return got.allocations[0]


R, S = exactly("r", "red"), exactly("s", "red")
LIST = first_of("r", sub("x", "red", count=9), sub("y", "blue"))
CONFIGS = {
    "every setting of a class": (unallocated(R), [("red-1", ()), ("red-2", ())]),
    "a class is written once for all its requests": (
        unallocated(R, S, exactly("t", "any")),
        [("red-1", ("r", "s")), ("red-2", ("r", "s"))],
    ),
    "no names when it is all of them": (unallocated(R, S), [("red-1", ()), ("red-2", ())]),
    "classes in the order of requests": (
        unallocated(exactly("r", "blue"), S),
        [("blue", ("r",)), ("red-1", ("s",)), ("red-2", ("s",))],
    ),
    "the class of the chosen alternative": (
        unallocated(LIST, exactly("s", "any")),
        [("blue", ("r/y",))],
    ),
    "the claim's after the class's": (
        unallocated(exactly("r", "blue"), config=[config("mine")]),
        [("blue", ()), ("mine", ())],
    ),
    "for some requests": (
        unallocated(exactly("r", "any"), exactly("s", "any"), config=[config("mine", "s")]),
        [("mine", ("s",))],
    ),
    "for all requests, by name, once": (
        unallocated(exactly("r", "any"), exactly("s", "any"), config=[config("mine", "s", "r")]),
        [("mine", ())],
    ),
    "for the alternative that was not chosen": (
        unallocated(LIST, exactly("s", "any"), config=[config("mine", "r/x")]),
        [("blue", ("r/y",))],
    ),
    "for the alternative that was": (
        unallocated(LIST, exactly("s", "any"), config=[config("mine", "r/y", "r/x")]),
        [("blue", ("r/y",)), ("mine", ("r/y", "r/x"))],
    ),
}


@pytest.mark.parametrize(("claim", "want"), CONFIGS.values(), ids=CONFIGS.keys())
def test_configuration(claim: Any, want: list[tuple[str, tuple[str, ...]]]) -> None:
    written = allocation([DEVICES], claim).devices.config
    got = [(item.opaque.parameters["is"], item.requests) for item in written if item.opaque]

    assert got == want
    sources = ["FromClaim" if name == "mine" else "FromClass" for name, _ in want]
    assert [item.source for item in written] == sources


def requires(key: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator="In", values=values)


def selector(*expected: NodeSelectorRequirement) -> NodeSelector:
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=expected),))


ONLY_HERE = NodeSelector(
    node_selector_terms=(NodeSelectorTerm(match_fields=(requires("metadata.name", NODE.name),)),)
)
ZONE, ZONES = requires("zone", "a"), requires("zone", "a", "b")
A, B = device("a"), device("b")
SELECTORS: dict[str, tuple[list[ResourceSlice], NodeSelector | None]] = {
    "everywhere": ([pool_slice(A, B, all_nodes=True)], None),
    "the devices of a node": ([pool_slice(A, B)], ONLY_HERE),
    "one device of a node": ([pool_slice(A), pool_slice(B, pool="z", all_nodes=True)], ONLY_HERE),
    "a zone": ([pool_slice(A, B, node_selector=selector(ZONE))], selector(ZONE)),
    "all that two slices require, once": (
        [
            pool_slice(A, node_selector=selector(ZONE, ZONES)),
            pool_slice(B, pool="z", node_selector=selector(requires("zone", "b", "a"), ZONE)),
        ],
        selector(ZONE, ZONES),
    ),
    "a device that binds to its node": (
        [pool_slice(A, Device(name="b", binds_to_node=True), all_nodes=True)],
        ONLY_HERE,
    ),
    "devices placed one by one": (
        [
            pool_slice(
                Device(name="a", all_nodes=True),
                Device(name="b", node_selector=selector(ZONE)),
                per_device_node_selection=True,
            )
        ],
        selector(ZONE),
    ),
}


@pytest.mark.parametrize(("slices", "want"), SELECTORS.values(), ids=SELECTORS.keys())
def test_node_selector(slices: list[ResourceSlice], want: NodeSelector | None) -> None:
    got = allocation(slices, unallocated(exactly(count=2)))

    assert got.node_selector == want
    assert is_usable_on(got, NODE)


def test_binding_conditions_and_skipped_operations_are_copied() -> None:
    waits = Device(
        name="a", binding_conditions=("ready",), binding_failure_conditions=("broken", "lost")
    )
    slices = [pool_slice(waits, node_name=NODE.name, skip_node_operations=("*",))]
    result = allocation(slices, unallocated()).devices.results[0]

    assert result.binding_conditions == ("ready",)
    assert result.binding_failure_conditions == ("broken", "lost")
    assert result.skip_node_operations == ("*",)


def test_every_share_gets_an_id_of_its_own() -> None:
    shared = Device(
        name="nic",
        allow_multiple_allocations=True,
        capacity={"bandwidth": DeviceCapacity(value="10")},
    )
    half: dict[str, Any] = {"capacity": {"requests": {"bandwidth": "5"}}}
    claims = (
        unallocated(
            exactly("r", **half),
            exactly("s", "any", expressions=["!device.allowMultipleAllocations"]),
        ),
        unallocated(exactly("r", **half), name="other"),
    )
    got = attempt([pool_slice(device("a"), shared)], *claims)
    assert isinstance(got, Allocated)
    done = with_share_ids(got, ("id-1", "id-2"))

    written = [
        [(result.device, result.share_id) for result in one.devices.results]
        for one in done.allocations
    ]
    assert written == [[("nic", "id-1"), ("a", None)], [("nic", "id-2")]]
    assert done.shares == ()
