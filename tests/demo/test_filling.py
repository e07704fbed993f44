"""The demo comes in by itself, leaves alone what is there, and keeps its failures for later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain

import pytest

from controllers.world import NAMESPACES, SCHEME, Obj, World
from sully.client.discovery.resources import APIResource, of_scheme
from sully.client.objects import key_of
from sully.client.transport import Key, Kind
from sully.demo.filling import DEPLOYMENTS, PENDING_DEPLOYMENTS, STAGES, Filler, objects
from sully.views import kinds

SERVED = of_scheme(SCHEME)
RULES: Kind[Obj] = kinds.RULES.read_as(dict)
PATCHES: Kind[Obj] = kinds.PATCHES.read_as(dict)
TROUBLES = ["worker-0003-closed", "worker-0003-maintenance"]


@pytest.fixture
def world() -> World:
    return World()


@asynccontextmanager
async def filling(
    world: World, served: tuple[APIResource, ...] = SERVED
) -> AsyncIterator[asyncio.Task[None]]:
    """Let the demo come in; at the end of the block it may still be waiting."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(Filler(world.admin, served).fill())
        await world.settle()
        yield task
        task.cancel()


async def all_work(world: World) -> None:
    """Make the pods of all deployments available, except for those that never are."""
    for deployment in (await world.admin.list(DEPLOYMENTS)).items:
        number = 0 if key_of(deployment) in PENDING_DEPLOYMENTS else deployment.spec.replicas
        status = {"replicas": number, "readyReplicas": number, "availableReplicas": number}
        await world.admin.patch(
            DEPLOYMENTS, key_of(deployment), {"status": status}, subresource="status"
        )
    await world.settle()


async def all_work_at_last(world: World) -> None:
    """Do so for those of each stage."""
    for _ in STAGES:
        await all_work(world)


async def test_who_trains_comes_once_the_others_have_their_places(world: World) -> None:
    training = "team-chat/chat-training"
    async with filling(world):
        early = await world.names(DEPLOYMENTS)
        await all_work(world)
        late = await world.names(DEPLOYMENTS)

    assert sorted((*early, training)) == late
    assert training not in early


async def test_failures_come_once_everybody_works(world: World) -> None:
    async with filling(world) as task:
        assert await world.names(RULES) == ["a100-firmware"]
        await all_work_at_last(world)
        assert task.done()

    assert await world.names(RULES) == ["a100-firmware", *TROUBLES]


async def test_everything_is_accepted(world: World) -> None:
    async with filling(world):
        await all_work_at_last(world)
    by_kind = {item.kind: item for item in SERVED}

    for obj in objects(*chain(*STAGES)):
        served = by_kind[obj["kind"]]
        version = obj["apiVersion"].rpartition("/")[2]
        kind: Kind[Obj] = Kind(
            served.group, version, served.plural, served.kind, dict, namespaced=served.namespaced
        )
        assert await world.admin.get(kind, key_of(obj))


async def test_another_start_changes_nothing(world: World) -> None:
    async with filling(world):
        await all_work_at_last(world)
    before = world.store.revision

    async with filling(world) as task:
        assert task.done()
    assert world.store.revision == before


async def test_what_people_changed_stays_and_what_they_removed_comes_back(world: World) -> None:
    async with filling(world):
        await all_work_at_last(world)
    where = Key("team-chat", "chat")
    await world.admin.patch(DEPLOYMENTS, where, {"spec": {"replicas": 1}})
    await world.admin.delete(RULES, Key("", TROUBLES[1]))

    async with filling(world):
        pass

    assert (await world.admin.get(DEPLOYMENTS, where)).spec.replicas == 1
    assert await world.names(RULES) == ["a100-firmware", *TROUBLES]


async def test_a_kind_that_is_not_served_is_left_out(world: World) -> None:
    served = tuple(item for item in SERVED if item.kind != "ResourceSlicePatch")

    async with filling(world, served):
        await all_work_at_last(world)

    assert await world.names(PATCHES) == []
    assert len(await world.names(RULES)) == 3


async def test_what_is_refused_does_not_stop_the_rest(world: World) -> None:
    await world.namespace("team-chat")
    await world.admin.delete(NAMESPACES, Key("", "team-chat"))

    async with filling(world):
        names = await world.names(DEPLOYMENTS)

    # Nothing comes into a namespace that is on its way out.
    assert names == [
        "team-lab/big-model",
        "team-speech/transcriber",
        "team-vision/detector",
        "team-vision/thumbnails",
    ]
