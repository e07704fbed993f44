"""No quota is exceeded by two servers that share an etcd and decide at the same moment."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator

import pytest
from msgspec.structs import replace

from etcds import Etcd
from quotas import CONFIG_MAPS, PODS, QUOTAS, Plane
from sully.client.options import DeleteOptions
from sully.client.transport import Key
from sully.machinery.errors import AlreadyExists
from sully.store.etcd.store import EtcdStore

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def etcd() -> Iterator[Etcd]:
    with Etcd() as made:
        yield made


@pytest.fixture
async def planes(etcd: Etcd, request: pytest.FixtureRequest) -> AsyncIterator[list[Plane]]:
    address = replace(etcd.address, prefix=f"/{request.node.name}")
    async with await EtcdStore.open(address) as one, await EtcdStore.open(address) as two:
        both = [Plane(one), Plane(two)]
        await both[0].prepare()
        for plane in both:
            await plane.api.quotas.start()
        yield both


async def test_of_many_for_few_places_as_many_win(planes: list[Plane]) -> None:
    await planes[0].limit(hard={"configmaps": "7"}, used={"configmaps": "0"})
    around = itertools.cycle(planes)

    refusals = await asyncio.gather(*(next(around).map(f"m-{n}") for n in range(60)))

    assert refusals.count("") == 7
    assert len((await planes[1].access.list(CONFIG_MAPS, "a")).items) == 7
    assert await planes[1].used() == {"configmaps": "7"}


async def test_of_two_for_the_last_place_one_wins(planes: list[Plane]) -> None:
    await planes[0].limit(hard={"configmaps": "40"}, used={"configmaps": "0"})
    for taken in range(40):
        quota = await planes[0].access.get(QUOTAS, Key("a", "q"))
        await planes[0].count(quota, {"configmaps": "39"})
        pair = await asyncio.gather(*(p.map(f"m-{taken}-{n}") for n, p in enumerate(planes)))
        assert sorted(map(bool, pair)) == [False, True]
        assert await planes[1].used() == {"configmaps": "40"}


async def test_the_same_name_in_both_is_charged_once(planes: list[Plane]) -> None:
    await planes[0].limit(hard={"configmaps": "40"}, used={"configmaps": "0"})
    for number in range(20):
        both = [plane.map(f"m-{number}") for plane in planes]
        answers = await asyncio.gather(*both, return_exceptions=True)
        assert {type(answer) for answer in answers} == {str, AlreadyExists}

    assert await planes[0].used() == {"configmaps": "20"}


async def test_what_is_created_and_deleted_in_both_is_counted(planes: list[Plane]) -> None:
    await planes[0].limit(hard={"pods": "500"}, used={"pods": "0"})

    async def churn(plane: Plane, worker: int) -> None:
        for turn in range(10):
            await plane.pod(f"p-{worker}-{turn}")
            await plane.access.delete(
                PODS, Key("a", f"p-{worker}-{turn}"), DeleteOptions(grace_period_seconds=0)
            )
        await plane.pod(f"stays-{worker}")

    await asyncio.gather(*(churn(planes[worker % 2], worker) for worker in range(6)))

    assert await planes[0].used() == {"pods": "6"}
