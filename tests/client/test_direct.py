"""The in-process transport: what it shares, and what it lets go of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pytest

from client.scripted import THINGS, Thing, thing
from sully.client.calls import Call
from sully.client.direct import DirectTransport, Reply
from sully.client.transactions import Writes
from sully.client.transport import Key, ResourceRef, UnreachableError, UnreadableError, WatchEvent
from sully.machinery.meta import ObjectMeta, Wire
from sully.machinery.serialization.codec import to_json
from sully.runtime.deadlines import seconds_left

KEY = Key("default", "a")


@dataclass
class Stored:
    """An object as a server holds it."""

    obj: Mapping[str, Any]
    memo: dict[Hashable, Any] = field(default_factory=dict)
    items: Sequence[Reply] = ()
    document: bytes | None = None


def stored(version: int = 7, *, decoded: bool = True) -> Stored:
    metadata = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
    obj = {"kind": "Thing", "apiVersion": "example.dev/v1", "metadata": metadata}
    return Stored(obj, document=None if decoded else to_json(obj))


either = pytest.mark.parametrize("decoded", [True, False], ids=["decoded", "not decoded"])


class OneObject:
    """The smallest server: one object, for every call."""

    def __init__(self, reply: Stored) -> None:
        self.reply = reply
        self.watchers = 0
        self.calls: list[tuple[str, ResourceRef]] = []
        self.left: list[float] = []

    async def call(
        self,
        verb: str,
        ref: ResourceRef,
        *,
        body: Any = None,
        options: Mapping[str, str] = {},
        patch_type: str = "",
    ) -> Reply:
        self.calls.append((verb, ref))
        self.left.append(seconds_left())
        if verb == "list":
            return Stored({"metadata": {"resourceVersion": "9"}}, items=[self.reply])
        return self.reply

    async def commit(self, writes: Sequence[Call]) -> None:
        self.calls += [(write.verb, write.ref) for write in writes]
        self.left.append(seconds_left())

    async def watch(
        self,
        ref: ResourceRef,
        *,
        options: Mapping[str, str] = {},
    ) -> AsyncIterator[Sequence[tuple[str, Reply]]]:
        self.watchers += 1
        try:
            mark = Stored({"kind": "Thing", "metadata": {"resourceVersion": "8"}})
            yield [("ADDED", self.reply), ("BOOKMARK", mark)]
            yield [("DELETED", self.reply)]
        finally:
            self.watchers -= 1


@either
async def test_one_conversion_per_revision(decoded: bool) -> None:
    server = OneObject(stored(decoded=decoded))
    transport = DirectTransport(server)
    result = await transport.get(THINGS, KEY)
    page = await transport.list(THINGS)
    async with aclosing(transport.watch(THINGS)) as events:
        event = await anext(events)

    assert result == thing("a", 7, uid="u")
    assert page.items[0] is result
    assert event.object is result

    server.reply = stored(8, decoded=decoded)
    assert await transport.get(THINGS, KEY) == thing("a", 8, uid="u")


async def test_types_do_not_meet() -> None:
    class Names(Wire, frozen=True, kw_only=True):
        metadata: ObjectMeta

    server = OneObject(stored())
    transport = DirectTransport(server)
    beta = type(THINGS)("example.dev", "v1beta1", "things", "Thing", Thing)

    first = await transport.get(THINGS, KEY)
    assert type(await transport.get(THINGS.read_as(Names), KEY)) is Names
    # Another version of the same revision looks different.
    assert await transport.get(beta, KEY) is not first


@either
async def test_batches_come_one_by_one(decoded: bool) -> None:
    server = OneObject(stored(decoded=decoded))
    async with aclosing(DirectTransport(server).watch(THINGS)) as events:
        seen = [event async for event in events]

    assert [(event.type, event.resource_version) for event in seen] == [
        ("ADDED", "7"),
        ("BOOKMARK", "8"),
        ("DELETED", "7"),
    ]
    assert seen[1] == WatchEvent("BOOKMARK", None, "8")


async def test_server_knows_when_nobody_listens() -> None:
    server = OneObject(stored())
    events = DirectTransport(server).watch(THINGS)
    await anext(events)
    assert server.watchers == 1

    await events.aclose()
    assert server.watchers == 0


@either
async def test_object_that_does_not_fit(decoded: bool) -> None:
    class Sized(Thing, frozen=True, kw_only=True):
        size: int

    transport = DirectTransport(OneObject(stored(decoded=decoded)))
    with pytest.raises(UnreadableError, match=r"things default/a \(example.dev/v1\).*`size`"):
        await transport.get(THINGS.read_as(Sized), KEY)


async def test_closed() -> None:
    async with DirectTransport(OneObject(stored())) as transport:
        pass
    with pytest.raises(UnreachableError):
        await transport.get(THINGS, KEY)


async def test_a_write_must_be_over_when_the_guard_reports_and_a_read_need_not() -> None:
    server = OneObject(stored())
    transport = DirectTransport(server, guard=lambda: 5.0)
    await transport.delete(THINGS, KEY)
    await transport.get(THINGS, KEY)

    assert 4 < server.left[0] <= 5
    assert server.left[1] == inf


async def test_a_guard_that_refuses_keeps_a_write_from_the_server() -> None:
    def refuse() -> float:
        raise UnreachableError("not leading")

    server = OneObject(stored())
    with pytest.raises(UnreachableError):
        await DirectTransport(server, guard=refuse).delete(THINGS, KEY)

    assert server.calls == []


async def test_a_transaction_is_one_call_within_the_deadline() -> None:
    server = OneObject(stored())
    writes = Writes()
    await writes.update(THINGS, thing("a", 7))
    await writes.delete(THINGS, KEY)
    await DirectTransport(server, guard=lambda: 5.0).commit(writes.calls)
    await DirectTransport(server).commit(writes.calls)

    assert [verb for verb, _ in server.calls] == ["update", "delete"] * 2
    assert 0 < server.left[0] <= 5.0
    assert server.left[1] == inf


async def test_a_transaction_has_no_reads() -> None:
    with pytest.raises(TypeError):
        await Writes().list(THINGS)
    with pytest.raises(TypeError):
        Writes().watch(THINGS)
