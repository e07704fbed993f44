"""Several who share the connections of one transport: each with its name and its right to write."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from client.foreign import KEY, A, Foreign, connected
from client.scripted import THINGS
from sully import __version__
from sully.client.transport import UnreachableError


class NotNowError(UnreachableError):
    """No write may begin."""


def refuse() -> float:
    raise NotNowError("not now")


async def test_each_gives_its_own_name() -> None:
    foreign = Foreign([A])
    async with connected(foreign) as http:
        await http.get(THINGS, KEY)
        await http.named("eviction").get(THINGS, KEY)

    agents = [request.headers["user-agent"] for request in foreign.requests]
    assert agents == [[f"sully/{__version__}"], [f"eviction/{__version__}"]]


WRITES: dict[str, Any] = {
    "create": lambda t: t.create(THINGS, A),
    "update": lambda t: t.update(THINGS, A),
    "patch": lambda t: t.patch(THINGS, KEY, {}),
    "delete": lambda t: t.delete(THINGS, KEY),
    "delete collection": lambda t: t.delete_collection(THINGS, "default"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_guard_is_asked_before_every_write(write: Any) -> None:
    foreign = Foreign([A])
    async with connected(foreign) as http:
        with pytest.raises(NotNowError):
            await write(http.named("x", refuse))

    assert foreign.requests == []


async def test_a_guard_lets_readers_read() -> None:
    foreign = Foreign([A])
    async with connected(foreign) as http:
        thing = await http.named("x", refuse).get(THINGS, KEY)

    assert thing.metadata.name == "a"


async def test_a_write_ends_when_the_guard_reports() -> None:
    async def stalled(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with connected(stalled) as http:
        with pytest.raises(UnreachableError, match="timed out"):
            await http.named("x", lambda: 0.05).update(THINGS, A)


async def test_closing_one_closes_all() -> None:
    async with connected(Foreign([A])) as http:
        other = http.named("x")
        await http.close()
        with pytest.raises(UnreachableError, match="closed"):
            await other.get(THINGS, KEY)
