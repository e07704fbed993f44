"""No device is allocated twice, whoever writes, in whatever order and however often we restart."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sully.api import build_scheme
from sully.client.direct import DirectTransport
from sully.client.transport import Key, Kind
from sully.domain.allocation.exclusion import IN_USE
from sully.machinery.errors import Conflict, Invalid
from sully.runtime.ids import Ids
from sully.server.api import Api, Chance
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock
from sully.views import kinds

Obj = dict[str, Any]
NAMESPACES: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
SCHEME = build_scheme()
SPEC: Obj = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
SHARE = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


class Plane:
    """A server on a store that outlives it."""

    def __init__(self, store: MemoryStore, *, strict: bool = False) -> None:
        chance = random.Random(1)
        self.api = Api(
            scheme=SCHEME,
            store=store,
            chance=Chance(FakeClock(), Ids(chance), chance),
            strict_compat=strict,
        )
        self.access = DirectTransport(InProcess(self.api, User("x", ("system:masters",))))

    async def prepare(self, *claims: str) -> None:
        label = {"resource.kubernetes.io/admin-access": "true"}
        await self.access.create(NAMESPACES, {"metadata": {"name": "a", "labels": label}})
        for name in claims:
            metadata = {"name": name, "namespace": "a"}
            await self.access.create(CLAIMS, {"metadata": metadata, "spec": SPEC})

    async def allocate(self, claim: str, *devices: str, **more: Any) -> None:
        results = [
            {"request": "r", "driver": "d.example.com", "pool": "p", "device": each, **more}
            for each in devices
        ]
        status = {"allocation": {"devices": {"results": results}}}
        await self.access.patch(CLAIMS, Key("a", claim), {"status": status}, subresource="status")

    async def release(self, claim: str) -> None:
        status = {"allocation": None}
        await self.access.patch(CLAIMS, Key("a", claim), {"status": status}, subresource="status")

    async def held(self) -> list[str]:
        """Return all devices that claims hold."""
        page = await self.access.list(CLAIMS, "a")
        return sorted(
            result["device"]
            for claim in page.items
            for result in ((claim.get("status") or {}).get("allocation") or {"devices": {}})[
                "devices"
            ].get("results", ())
        )


async def test_the_second_is_told_who_has_the_device() -> None:
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


async def test_a_write_that_is_refused_for_something_else_takes_nothing() -> None:
    plane = Plane(MemoryStore())
    await plane.prepare("first", "second")
    with pytest.raises(Invalid, match="request"):
        await plane.allocate("first", "gpu-0", request="nobody")
    await plane.allocate("second", "gpu-0")

    assert await plane.held() == ["gpu-0"]


async def test_the_reference_does_not_ask() -> None:
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
@settings(deadline=None)
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
            for each in moves:
                tasks.create_task(move(plane, *each))
        return await plane.held()

    held = asyncio.run(play())
    assert len(held) == len(set(held))
