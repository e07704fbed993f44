"""Handlers of the informer in the server learn the newest state of each object."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from embedded import SCHEME
from sully.server.storage.informer import StoreInformer
from sully.server.storage.objects import Objects
from sully.store.base import Delete, Op, Put, StoreKey
from sully.store.memory import MemoryStore

RESOURCE = "configmaps"


@dataclass
class Calls:
    """Records its events."""

    made: list[str] = field(default_factory=list)

    def put(self, obj: dict[str, Any]) -> None:
        self.made.append(f"put {obj['name']} {obj['state']}")

    def drop(self, namespace: str, name: str) -> None:
        self.made.append(f"drop {name}")


def put(name: str, state: int) -> Op:
    return Put(StoreKey(RESOURCE, "a", name), b'{"name":"%s","state":%d}' % (name.encode(), state))


def delete(name: str) -> Op:
    return Delete(StoreKey(RESOURCE, "a", name))


CASES: dict[str, tuple[list[Op], list[str]]] = {
    "only the newest state": ([put("x", 1), put("y", 1), put("x", 2)], ["put x 2", "put y 1"]),
    "what is deleted is not added first": ([put("x", 1), delete("x")], ["drop x"]),
    "a recreated object is another one": (
        [put("x", 1), delete("x"), put("x", 2), put("x", 3)],
        ["drop x", "put x 3"],
    ),
}


@pytest.mark.parametrize(("writes", "calls"), CASES.values(), ids=CASES)
async def test_events_between_two_reads(writes: list[Op], calls: list[str]) -> None:
    store, handler = MemoryStore(), Calls()
    informer = StoreInformer(store, Objects(SCHEME), {RESOURCE: handler})
    await informer.open()
    for write in writes:
        await store.commit([write])

    informer.pull()

    assert handler.made == calls
