"""No device is allocated twice by two servers that share an etcd and look at the same moment."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest
from msgspec.structs import replace

from allocating import Plane
from etcds import Etcd
from sully.domain.allocation.usage.exclusion import IN_USE
from sully.machinery.errors import Conflict
from sully.server.admission.devices import LOCKS
from sully.store.etcd.store import EtcdStore

pytestmark = pytest.mark.slow
ROUNDS = 100


@pytest.fixture(scope="module")
def etcd() -> Iterator[Etcd]:
    with Etcd() as made:
        yield made


@pytest.fixture
async def stores(etcd: Etcd, request: pytest.FixtureRequest) -> AsyncIterator[list[EtcdStore]]:
    address = replace(etcd.address, prefix=f"/{request.node.name}")
    async with await EtcdStore.open(address) as one, await EtcdStore.open(address) as two:
        yield [one, two]


async def replicas(stores: list[EtcdStore], *, strict: bool = False) -> list[Plane]:
    planes = [Plane(store, strict=strict) for store in stores]
    for plane in planes:
        await plane.api.devices.start()
    return planes


async def attempt(plane: Plane, claim: str, *devices: str) -> str:
    """Allocate; return how that ended."""
    try:
        await plane.allocate(claim, *devices)
    except Conflict as refused:
        return str((refused.details or {})["causes"][0]["reason"])
    return "won"


async def test_of_two_that_want_one_device_one_gets_it(stores: list[EtcdStore]) -> None:
    planes = await replicas(stores)
    await planes[0].prepare(*(f"{side}-{n}" for side in "ab" for n in range(ROUNDS)))
    outcomes = [
        await asyncio.gather(
            attempt(planes[0], f"a-{n}", f"gpu-{n}"), attempt(planes[1], f"b-{n}", f"gpu-{n}")
        )
        for n in range(ROUNDS)
    ]

    assert {tuple(sorted(outcome)) for outcome in outcomes} == {(IN_USE, "won")}
    assert await planes[1].held() == sorted(f"gpu-{n}" for n in range(ROUNDS))


async def test_hundreds_together(stores: list[EtcdStore]) -> None:
    planes = await replicas(stores)
    claims = [f"c-{n:03}" for n in range(8 * 30)]
    await planes[0].prepare(*claims)
    # Eight want each device, four here and four there, most of them a second one, too.
    wants = {
        claim: [f"gpu-{n % 30:02}"] + [f"gpu-{(n + 1) % 30:02}"] * (n % 3 > 0)
        for n, claim in enumerate(claims)
    }
    around = itertools.cycle(planes)
    outcomes = await asyncio.gather(
        *(attempt(next(around), claim, *wants[claim]) for claim in claims)
    )

    held = await planes[0].held()
    won = [claim for claim, outcome in zip(claims, outcomes, strict=True) if outcome == "won"]
    assert held == await planes[1].held()
    assert [device for device, times in Counter(held).items() if times > 1] == []
    assert held == sorted(device for claim in won for device in wants[claim])
    # Whoever was refused was refused by a device that a user has.
    lost = set(claims) - set(won)
    assert all(set(wants[claim]) & set(held) for claim in lost)


async def test_only_allocations_take_turns(stores: list[EtcdStore]) -> None:
    planes = await replicas(stores)
    await planes[0].prepare("first", "second")
    assert LOCKS not in stores[0].resources()
    await planes[0].allocate("first", "gpu-0", "gpu-1")
    before = (await stores[0].list(LOCKS)).records
    await planes[1].allocate("first", "gpu-0", "gpu-1")
    await planes[1].release("first")
    await planes[1].allocate("second", "gpu-0", adminAccess=True)

    # One of them for two devices of a pool, and none for what allocates nothing.
    assert len(before) == 1
    assert [record.revision for record in (await stores[0].list(LOCKS)).records] == [
        before[0].revision
    ]


async def test_kubernetes_lets_both(stores: list[EtcdStore]) -> None:
    planes = await replicas(stores, strict=True)
    await planes[0].prepare("first", "second")
    outcomes = await asyncio.gather(
        attempt(planes[0], "first", "gpu-0"), attempt(planes[1], "second", "gpu-0")
    )

    assert list(outcomes) == ["won", "won"]
    assert LOCKS not in stores[0].resources()
