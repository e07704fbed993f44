"""What always holds, for devices and claims that nobody thought of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.allocation.fixtures import (
    attempt,
    exactly,
    first_of,
    names,
    pool_slice,
    sub,
    unallocated,
)
from sully.api.resource.types import (
    Counter,
    CounterSet,
    Device,
    DeviceConstraint,
    DeviceCounterConsumption,
    ResourceClaim,
    ResourceSlice,
)
from sully.domain.allocation.usage.ledger import Ledger
from sully.domain.allocation.verdicts import (
    Allocated,
    Failed,
    RejectionReason,
    Unallocatable,
    UnallocatableReason,
)
from sully.testing.builders import device, exists, taint, text

MODELS = ("a100", "h100")
ATTRIBUTE = "gpu.example.com/model"
MEMORY = 4


@dataclass(frozen=True)
class Toy:
    """A device, reduced to what decides."""

    model: str
    is_tainted: bool
    memory: int
    is_used: bool


@dataclass(frozen=True)
class Wanted:
    """One alternative of a request."""

    count: int
    model: str
    tolerates: bool


Asked = tuple[tuple[tuple[Wanted, ...], ...], str]
"""The requests of a claim with their alternatives, and its constraint."""

TOYS = st.builds(
    Toy,
    st.sampled_from(MODELS),
    st.booleans(),
    st.integers(0, 3),
    st.integers(0, 4).map(lambda n: n == 0),
)
WANTED = st.builds(Wanted, st.integers(1, 2), st.sampled_from(("", *MODELS)), st.booleans())
REQUESTS = st.lists(st.lists(WANTED, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2)
ASKED = st.tuples(REQUESTS.map(tuple), st.sampled_from(("", "match", "distinct")))
WORLDS = st.tuples(st.lists(TOYS, min_size=1, max_size=5), st.lists(ASKED, min_size=1, max_size=2))


def published(toys: list[Toy]) -> list[ResourceSlice]:
    devices = []
    for index, toy in enumerate(toys):
        draw = DeviceCounterConsumption(
            counter_set="card", counters={"memory": Counter(value=str(toy.memory))}
        )
        devices.append(
            Device(
                name=f"gpu-{index}",
                attributes={"model": text(toy.model)},
                taints=(taint("NoSchedule"),) if toy.is_tainted else (),
                consumes_counters=(draw,) if toy.memory else (),
            )
        )
    counters = CounterSet(name="card", counters={"memory": Counter(value=str(MEMORY))})
    return [
        pool_slice(*devices, name="devices", count=2),
        pool_slice(name="counters", count=2, counters=(counters,)),
    ]


def claims_of(asked: list[Asked]) -> list[ResourceClaim]:
    return [
        unallocated(
            *(written(f"r{place}", choices) for place, choices in enumerate(requests)),
            name=f"claim-{index}",
            constraints=bound(constraint),
        )
        for index, (requests, constraint) in enumerate(asked)
    ]


def written(name: str, choices: tuple[Wanted, ...]) -> dict[str, Any]:
    alternatives: list[dict[str, Any]] = [
        {
            "count": choice.count,
            "expressions": [f'device.attributes["gpu.example.com"].model == "{choice.model}"']
            if choice.model
            else [],
            "tolerations": [exists(effect="NoSchedule")] if choice.tolerates else [],
        }
        for choice in choices
    ]
    if len(alternatives) == 1:
        return exactly(name, **alternatives[0])
    return first_of(name, *(sub(f"s{index}", **entry) for index, entry in enumerate(alternatives)))


def bound(constraint: str) -> list[DeviceConstraint]:
    match constraint:
        case "match":
            return [DeviceConstraint(match_attribute=ATTRIBUTE)]
        case "distinct":
            return [DeviceConstraint(distinct_attribute=ATTRIBUTE)]
        case _:
            return []


def used(toys: list[Toy]) -> Ledger:
    ledger = Ledger()
    for index, toy in enumerate(toys):
        if toy.is_used:
            got = attempt([pool_slice(device(f"gpu-{index}"))], unallocated())
            assert isinstance(got, Allocated)
            ledger.take(got.allocations[0])
    return ledger


def solutions(toys: list[Toy], asked: list[Asked]) -> Iterator[list[list[int]]]:
    """Yield every way to serve the claims, in the order in which they should be preferred."""
    requests = [
        (claim, choices)
        for claim, (alternatives, _) in enumerate(asked)
        for choices in alternatives
    ]

    def extend(at: int, taken: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
        if at == len(requests):
            yield taken
            return
        claim, choices = requests[at]
        for choice in choices:
            fits = [place for place, toy in enumerate(toys) if suits(toy, choice)]
            for chosen in combinations(fits, choice.count):
                more = [*taken, *((claim, place) for place in chosen)]
                if is_sound(toys, asked, more):
                    yield from extend(at + 1, more)

    for taken in extend(0, []):
        yield [[place for owner, place in taken if owner == claim] for claim in range(len(asked))]


def suits(toy: Toy, expected: Wanted) -> bool:
    return (
        not toy.is_used
        and expected.model in ("", toy.model)
        and (expected.tolerates or not toy.is_tainted)
    )


def is_sound(toys: list[Toy], asked: list[Asked], taken: list[tuple[int, int]]) -> bool:
    places = [place for _, place in taken]
    load = sum(toys[place].memory for place in places)
    load += sum(toy.memory for toy in toys if toy.is_used)
    # What others took may exceed the counters; devices that draw nothing do not mind.
    drawing = any(toys[place].memory for place in places)
    if len(set(places)) < len(places) or (drawing and load > MEMORY):
        return False
    for claim, (_, constraint) in enumerate(asked):
        models = [toys[place].model for owner, place in taken if owner == claim]
        if constraint == "match" and len(set(models)) > 1:
            return False
        if constraint == "distinct" and len(set(models)) < len(models):
            return False
    return True


@given(WORLDS)
def test_the_first_solution_is_found_whenever_there_is_one(
    world: tuple[list[Toy], list[Asked]],
) -> None:
    toys, asked = world
    got = names(attempt(published(toys), *claims_of(asked), use=used(toys)))
    first = next(solutions(toys, asked), None)
    want = [[f"gpu-{place}" for place in item] for item in first] if first is not None else None

    assert got == (want if want is not None else UnallocatableReason.CANNOT_ALLOCATE)


@given(WORLDS)
def test_no_device_twice_none_in_use_none_untolerated(
    world: tuple[list[Toy], list[Asked]],
) -> None:
    toys, asked = world
    ledger = used(toys)
    slices, given_out = published(toys), [f"gpu-{i}" for i, toy in enumerate(toys) if toy.is_used]
    for index, one in enumerate(asked * 2):
        claim = claims_of([one])[0]
        got = attempt(slices, claim, use=ledger)
        assert not isinstance(got, Failed)
        if not isinstance(got, Allocated):
            continue
        for result in got.allocations[0].devices.results:
            toy = toys[int(result.device.removeprefix("gpu-"))]
            assert not toy.is_tainted or result.tolerations, index
            given_out.append(result.device)
        ledger.take(got.allocations[0])

    assert len(given_out) == len(set(given_out))


@given(WORLDS, st.permutations(range(5)))
def test_devices_that_do_not_matter_change_nothing(
    world: tuple[list[Toy], list[Asked]], order: list[int]
) -> None:
    toys, asked = world
    claims, ledger = claims_of(asked), used(toys)
    want = names(attempt(published(toys), *claims, use=ledger))
    broken = (device(model, taint("NoExecute"), model=text(model)) for model in MODELS)
    taken = pool_slice(device("busy", model=text("a100")), pool="a-first")
    busy = attempt([taken], unallocated())
    assert isinstance(busy, Allocated)
    ledger.take(busy.allocations[0])
    others = [
        *published(toys),
        pool_slice(device("gpu-0"), driver="a.example.com"),
        pool_slice(*broken, pool="b-second"),
        taken,
    ]

    assert names(attempt([others[place] for place in order], *claims, use=ledger)) == want


@given(WORLDS)
def test_tolerating_more_never_serves_less(world: tuple[list[Toy], list[Asked]]) -> None:
    toys, asked = world
    kinder: list[Asked] = [
        (
            tuple(
                tuple(Wanted(one.count, one.model, tolerates=True) for one in choices)
                for choices in requests
            ),
            constraint,
        )
        for requests, constraint in asked
    ]
    before = attempt(published(toys), *claims_of(asked), use=used(toys))
    after = attempt(published(toys), *claims_of(kinder), use=used(toys))

    assert isinstance(after, Allocated) or not isinstance(before, Allocated)


@given(WORLDS)
def test_an_account_counts_every_device_once(world: tuple[list[Toy], list[Asked]]) -> None:
    toys, asked = world
    got = attempt(published(toys), *claims_of(asked), use=used(toys))
    if not isinstance(got, Unallocatable):
        return
    for request in got.requests:
        assert request.available + sum(request.refused.values()) == len(toys)
        assert sum(one.devices for one in request.taints) == request.refused.get(
            RejectionReason.TAINT, 0
        )
        assert sum(one.devices for one in request.selectors) == request.refused.get(
            RejectionReason.REQUEST_SELECTOR, 0
        )
