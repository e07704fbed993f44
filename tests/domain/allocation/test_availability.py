"""What prevents the allocation of a device: pool, counters, capacity; as the allocator has it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.allocation.fixtures import attempt, exactly, pool_slice, unallocated
from sully.api.resource.types import (
    AllocationResult,
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAllocationResult,
    DeviceCapacity,
    DeviceRequestAllocationResult,
    ResourceSlice,
)
from sully.domain.allocation.rejections.availability import Availability, used_up
from sully.domain.allocation.usage.capacity import left_of, taken_of
from sully.domain.allocation.usage.ledger import Ledger
from sully.domain.allocation.verdicts import Allocated
from sully.domain.devices.selectors import Content
from sully.testing.builders import DRIVER, device, partition, text


def part(name: str, memory: str, card: str = "card", groups: tuple[str, ...] = ()) -> Device:
    return partition(name, {"memory": memory}, of=card, groups=groups)


def card(memory: str = "40Gi", *, count: int = 2, name: str = "card") -> ResourceSlice:
    counters = CounterSet(name=name, counters={"memory": Counter(value=memory)})
    return pool_slice(name=f"counters-{name}", count=count, counters=(counters,))


def parts(*devices: Device, count: int = 2) -> list[ResourceSlice]:
    return [pool_slice(*devices, name="devices", count=count), card(count=count)]


HALVES = (part("half-0", "20Gi"), part("half-1", "20Gi"), part("whole", "40Gi"))
FIVE = tuple(part(f"p-{index}", "8Gi") for index in range(5))


@dataclass(frozen=True)
class Case:
    slices: list[ResourceSlice]
    asked: str
    used: frozenset[str] = frozenset()
    want: str | None = None
    """The cause and the text of the obstacle; None: there is none."""


CASES = {
    "a plain device": Case([pool_slice(device("a"))], "a"),
    "one that is used is another matter": Case([pool_slice(device("a"))], "a", frozenset("a")),
    "a slice is missing": Case(
        [pool_slice(device("a"), count=2)],
        "a",
        want="PoolIncomplete pool incomplete: 1 of 2 slices",
    ),
    "there is a slice too many": Case(
        [pool_slice(device("a"), name="1"), pool_slice(device("b"), name="2")],
        "a",
        want="PoolIncomplete pool incomplete: 2 of 1 slices",
    ),
    "a new generation has only begun": Case(
        [
            pool_slice(device("a"), name="old"),
            pool_slice(device("a"), name="new", generation=2, count=2),
        ],
        "a",
        want="PoolIncomplete pool incomplete: 1 of 2 slices",
    ),
    "a name stands in two slices": Case(
        [
            pool_slice(device("a"), device("b"), name="1", count=2),
            pool_slice(device("b"), name="2", count=2),
        ],
        "a",
        want="PoolInvalid pool invalid: duplicate device name b",
    ),
    "the same name for another node": Case(
        [
            pool_slice(device("a"), name="1", count=2),
            pool_slice(device("a"), name="2", count=2, node_name="node-2"),
        ],
        "a",
    ),
    "counters that nobody has": Case(
        [pool_slice(part("a", "1"))],
        "a",
        want="PoolInvalid pool invalid: counter set card not found",
    ),
    "counters that nobody uses": Case(parts(*HALVES), "whole"),
    "counters in use": Case(
        parts(*HALVES),
        "whole",
        frozenset(["half-0"]),
        "CountersUsed takes 40Gi memory of card, of which 20Gi is left by half-0",
    ),
    "counters beside their devices, as in Kubernetes 1.34": Case(
        [pool_slice(*HALVES, counters=card().spec.shared_counters)],
        "whole",
        frozenset(["half-1"]),
        "CountersUsed takes 40Gi memory of card, of which 20Gi is left by half-1",
    ),
    "counters that still suffice": Case(parts(*HALVES), "half-1", frozenset(["half-0"])),
    "its own use does not count": Case(parts(*HALVES), "whole", frozenset(["whole"])),
    "counters that many use": Case(
        parts(*FIVE, part("whole", "40Gi")),
        "whole",
        frozenset(item.name for item in FIVE),
        "CountersUsed takes 40Gi memory of card, of which 0 is left by p-0, p-1, p-2 and 2 more",
    ),
    "groups that do not go together": Case(
        parts(part("a", "1Gi", groups=("x",)), part("b", "1Gi", groups=("y",))),
        "b",
        frozenset("a"),
        "CountersUsed does not go together with a on card",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_obstacles(case: Case) -> None:
    slice_, result = next(
        (slice_, device)
        for slice_ in sorted(case.slices, key=lambda item: -item.spec.pool.generation)
        for device in slice_.spec.devices
        if device.name == case.asked
    )

    obstacle = Availability(case.slices, case.used).obstacle(slice_, result)

    reported = f"{obstacle.cause} {obstacle.text}" if obstacle is not None else None
    assert reported == case.want


RANGE = CapacityRequestPolicy(default="2G", valid_range=CapacityRequestPolicyRange(minimum="1G"))
VALUES = CapacityRequestPolicy(default="4G", valid_values=("2G", "4G"))
SHARES = {
    "nothing is taken": (None, [], "10G", None),
    "some is left": (None, ["4G", "3G"], "3G", None),
    "nothing is left": (None, ["4G", "6G"], "0", "no bandwidth left"),
    "as much as the smallest share": (RANGE, ["9G"], "1G", None),
    "less than the smallest share": (RANGE, ["9500M"], "500M", "no bandwidth left"),
    "as much as the smallest value": (VALUES, ["4G", "4G"], "2G", None),
    "less than the smallest value": (VALUES, ["4G", "4G", "1G"], "1G", "no bandwidth left"),
}


@pytest.mark.parametrize(("policy", "taken", "left", "reported"), SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("name", ["bandwidth", "nic.example.com/bandwidth"])
def test_shares(
    policy: CapacityRequestPolicy | None,
    taken: list[str],
    left: str,
    reported: str | None,
    name: str,
) -> None:
    capacity = {"bandwidth": DeviceCapacity(value="10G", request_policy=policy)}
    content = Content("nic.example.com", {}, capacity)

    result = left_of(content, taken_of([{name: item} for item in taken], content.driver))
    obstacle = used_up(content, result)

    assert {entry: str(amount) for entry, amount in result.items()} == {"bandwidth": left}
    assert (obstacle.text if obstacle is not None else None) == reported


@pytest.mark.parametrize(("taken", "reported"), [({}, None), ({"d/spare": 1}, "no spare left")])
def test_of_a_capacity_of_nothing_nothing_is_used(
    taken: dict[str, int], reported: str | None
) -> None:
    content = Content("d", {}, {"spare": DeviceCapacity(value="0")})

    obstacle = used_up(content, left_of(content, taken))

    assert (obstacle.text if obstacle is not None else None) == reported


# -- as the allocator decides ---------------------------------------------------------------------

PARTS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(("", "x", "y")), st.booleans()),
    min_size=1,
    max_size=5,
)


@given(PARTS, st.integers(1, 3))
def test_it_agrees_with_the_allocator(toys: list[tuple[int, str, bool]], count: int) -> None:
    devices = [_toy(at, memory, group) for at, (memory, group, _) in enumerate(toys)]
    slices = [pool_slice(*devices, name="devices", count=count), card("4Gi", count=count)]
    used = frozenset(f"d-{at}" for at, (*_, in_use) in enumerate(toys) if in_use)
    ledger = Ledger()
    for name in used:
        ledger.take(_allocated(name))
    availability = Availability(slices, used)

    for toy in devices:
        free = toy.name not in used and availability.obstacle(slices[0], toy) is None
        this = f"device.attributes['{DRIVER}'].id == '{toy.name}'"
        verdict = attempt(slices, unallocated(exactly(expressions=[this])), use=ledger)
        assert isinstance(verdict, Allocated) is free, toy.name


def _toy(at: int, memory: int, group: str) -> Device:
    name = f"d-{at}"
    made = device(name, id=text(name))
    if not memory:
        return made
    draws = part(name, f"{memory}Gi", groups=(group,) if group else ()).consumes_counters
    return msgspec.structs.replace(made, consumes_counters=draws)


def _allocated(name: str) -> AllocationResult:
    result = DeviceRequestAllocationResult(request="r", driver=DRIVER, pool="pool-1", device=name)
    return AllocationResult(devices=DeviceAllocationResult(results=(result,)))
