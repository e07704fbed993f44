"""No device is allocated twice, whoever writes, in whatever order and however often we restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocating import CLAIMS, Plane
from sully.client.transport import Key
from sully.domain.allocation.usage.exclusion import IN_USE
from sully.machinery.errors import Conflict, Invalid, ServiceUnavailable
from sully.server.admission.devices import LOCKS
from sully.server.storage.informer import PULL_SECONDS
from sully.store.base import RecordPage
from sully.store.errors import UnavailableError
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

SHARE = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


async def test_the_second_is_shown_who_has_the_device() -> None:
    plane = Plane(MemoryStore())
    await plane.prepare("first", "second")
    await plane.allocate("first", "gpu-0")
    with pytest.raises(Conflict) as refused:
        await plane.allocate("second", "gpu-1", "gpu-0")

    text = "device d.example.com/p/gpu-0 is allocated to claim a/first"
    assert str(refused.value) == (
        f'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "second": {text}'
    )
    assert (refused.value.details or {})["causes"][0]["reason"] == IN_USE
    assert await plane.held() == ["gpu-0"]


async def test_what_is_given_back_can_be_had() -> None:
    plane = Plane(MemoryStore())
    await plane.prepare("first", "second", "third")
    await plane.allocate("first", "gpu-0")
    await plane.release("first")
    await plane.allocate("second", "gpu-0")
    await plane.access.delete(CLAIMS, Key("a", "second"))
    await plane.allocate("third", "gpu-0")

    assert await plane.held() == ["gpu-0"]


async def test_shares_and_admin_access_go_beside_each_other() -> None:
    plane = Plane(MemoryStore())
    await plane.prepare("first", "second", "third")
    await plane.allocate("first", "gpu-0", shareID=SHARE)
    await plane.allocate("second", "gpu-0", shareID=SHARE.replace("6", "7", 1))
    await plane.allocate("third", "gpu-0", adminAccess=True)

    assert await plane.held() == ["gpu-0"] * 3


async def test_a_restart_forgets_nothing() -> None:
    store = MemoryStore()
    before = Plane(store)
    await before.prepare("first", "second")
    await before.allocate("first", "gpu-0")
    after = Plane(store)
    await after.api.devices.start()
    with pytest.raises(Conflict):
        await after.allocate("second", "gpu-0")


async def test_another_process_on_the_same_store() -> None:
    store = MemoryStore()
    one, other = Plane(store), Plane(store)
    await one.prepare("first", "second")
    await other.api.devices.start()
    await one.allocate("first", "gpu-0")
    with pytest.raises(Conflict):
        await other.allocate("second", "gpu-0")
    await one.release("first")
    await other.allocate("second", "gpu-0")
    assert await one.held() == ["gpu-0"]


class AwayStore(MemoryStore):
    """A store that can be out of reach."""

    away = False

    async def list(self, *where: Any, **how: Any) -> RecordPage:
        if self.away:
            raise UnavailableError("no member answers")
        return await super().list(*where, **how)


async def test_nothing_is_allocated_while_it_is_not_known_who_holds_what() -> None:
    store, clock = AwayStore(), FakeClock()
    one, other = Plane(store), Plane(store)
    await one.prepare("first", "second")
    await other.api.devices.start()
    await one.allocate("first", "gpu-0")
    # The other has not looked yet, and what happened is no longer reported.
    await store.compact(store.revision)
    store.away = True
    keeping = asyncio.ensure_future(other.api.devices.run(clock))
    await clock.sleepers()
    with pytest.raises(ServiceUnavailable, match="try again"):
        await other.allocate("second", "gpu-0")
    store.away = False
    clock.advance(PULL_SECONDS)
    await clock.sleepers()

    with pytest.raises(Conflict):
        await other.allocate("second", "gpu-0")
    await other.allocate("second", "gpu-1")
    assert await one.held() == ["gpu-0", "gpu-1"]
    keeping.cancel()


async def test_a_store_of_one_process_has_no_turns() -> None:
    store = MemoryStore()
    plane = Plane(store)
    await plane.prepare("first")
    await plane.allocate("first", "gpu-0")

    assert LOCKS not in store.resources()


async def test_a_write_that_is_refused_for_something_else_takes_nothing() -> None:
    plane = Plane(MemoryStore())
    await plane.prepare("first", "second")
    with pytest.raises(Invalid, match="request"):
        await plane.allocate("first", "gpu-0", request="nobody")
    await plane.allocate("second", "gpu-0")

    assert await plane.held() == ["gpu-0"]


async def test_kubernetes_does_not_ask() -> None:
    plane = Plane(MemoryStore(), strict=True)
    await plane.prepare("first", "second")
    await plane.allocate("first", "gpu-0")
    await plane.allocate("second", "gpu-0")

    assert await plane.held() == ["gpu-0", "gpu-0"]


CLAIM_NAMES, DEVICE_NAMES = ("c0", "c1", "c2"), ("gpu-0", "gpu-1")
MOVES = st.lists(
    st.tuples(
        st.sampled_from(CLAIM_NAMES),
        st.lists(st.sampled_from(DEVICE_NAMES), max_size=2, unique=True),
        st.integers(0, 3),
    ),
    max_size=12,
)


@given(MOVES)
def test_writers_at_the_same_time(moves: list[tuple[str, list[str], int]]) -> None:
    async def move(plane: Plane, claim: str, devices: list[str], turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        try:
            await (plane.allocate(claim, *devices) if devices else plane.release(claim))
        except (Conflict, Invalid):
            # Invalid: an allocation cannot be changed, only given back.
            return

    async def play() -> list[str]:
        plane = Plane(MemoryStore())
        await plane.prepare(*CLAIM_NAMES)
        async with asyncio.TaskGroup() as tasks:
            for item in moves:
                tasks.create_task(move(plane, *item))
        return await plane.held()

    held = asyncio.run(play())
    assert len(held) == len(set(held))
