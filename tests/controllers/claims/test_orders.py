"""In whatever order things happen, and whenever the controller starts, the end is the same."""

from __future__ import annotations

import pytest

from controllers.claims.using import (
    CLAIMS,
    allocate,
    bind,
    claim,
    claims,
    controller,
    delete,
    pod,
    prepare,
    prepare_template,
    recorded,
    set_status,
    state,
    template,
    used_by,
)
from controllers.world import PODS, Step, World, orders, play
from sully.client.transport import Key
from sully.machinery.errors import NotFound

EVERY_WAY = [
    pytest.param(start, pauses, id=f"start-{start}{'-pauses' if pauses else ''}")
    for start in range(4)
    for pauses in (False, True)
]


async def make_template(world: World) -> None:
    await template(world)


async def make_pod(world: World) -> None:
    await pod(world, g="t")


async def make_another(world: World) -> None:
    await pod(world, "q", g="t", h="t")


@pytest.mark.parametrize(("start", "pauses"), EVERY_WAY)
@pytest.mark.parametrize("steps", orders(make_template, make_pod, make_another))
async def test_every_pod_gets_its_claims(
    world: World, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    await prepare(world)
    await play(world, steps, controller(), start=start, pauses=pauses)

    names = [*(await recorded(world)).values(), *(await recorded(world, "q")).values()]
    assert len(names) == 3
    assert sorted(names) == sorted(await claims(world))


async def finish_first(world: World) -> None:
    await set_status(world, "p1", phase="Succeeded")


async def delete_second(world: World) -> None:
    await delete(world, PODS, "p2")


async def replace_third(world: World) -> None:
    await delete(world, PODS, "p3")
    await pod(world, "p3", named="c")


async def delete_claim(world: World) -> None:
    await delete(world, CLAIMS, "c")


async def shared(world: World) -> None:
    await prepare(world)
    await claim(world)
    users = [await pod(world, name, "node-1", "c") for name in ("p1", "p2", "p3")]
    await allocate(world, "c", *map(used_by, users))


@pytest.mark.parametrize(("start", "pauses"), EVERY_WAY)
@pytest.mark.parametrize("steps", orders(finish_first, delete_second, replace_third))
async def test_a_shared_claim_is_given_back(
    world: World, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    await shared(world)
    await play(world, steps, controller(), start=start, pauses=pauses)

    assert await state(world) == "free"


@pytest.mark.parametrize(("start", "pauses"), [(0, False), (0, True), (2, True), (4, False)])
@pytest.mark.parametrize("steps", orders(finish_first, delete_second, replace_third, delete_claim))
async def test_a_shared_claim_that_is_deleted_is_released_last(
    world: World, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    await shared(world)
    await play(world, steps, controller(), start=start, pauses=pauses)

    assert await state(world) == "gone"


async def bind_pod(world: World) -> None:
    await bind(world)


async def allocate_claim(world: World) -> None:
    await allocate(world)


async def run_pod(world: World) -> None:
    await set_status(world, phase="Running")


@pytest.mark.parametrize(("start", "pauses"), EVERY_WAY)
@pytest.mark.parametrize("steps", orders(bind_pod, allocate_claim, run_pod))
async def test_a_pod_that_is_bound_by_hand_reserves(
    world: World, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    await prepare(world)
    await claim(world)
    await pod(world, named="c")
    await play(world, steps, controller(), start=start, pauses=pauses)

    assert await state(world) == "allocated p protected"


async def finish_pod(world: World) -> None:
    try:
        await set_status(world, phase="Failed")
    except NotFound:
        return


async def end_pod(world: World) -> None:
    await delete(world, PODS, "p")


async def delete_made(world: World) -> None:
    for name in await claims(world):
        await delete(world, CLAIMS, name)


@pytest.mark.parametrize(("start", "pauses"), [(0, False), (0, True), (1, True), (2, False)])
@pytest.mark.parametrize("steps", orders(finish_pod, end_pod, delete_made))
async def test_a_made_claim_ends_with_its_pod(
    world: World, steps: tuple[Step, ...], start: int, pauses: bool
) -> None:
    await prepare_template(world)
    user = await pod(world, node="node-1", g="t")
    async with world.controlled(controller()):
        await world.settle()
    ((name, _),) = (await claims(world)).items()
    await allocate(world, name, used_by(user))
    await play(world, steps, controller(), start=start, pauses=pauses)

    assert await claims(world) == {}
    with pytest.raises(NotFound):
        await world.admin.get(PODS, Key("a", "p"))
