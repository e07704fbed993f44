"""Writes that are committed together, where the server is in this process.

    writes = Writes()
    await writes.patch(...)
    await writes.delete(...)
    await transport.commit(writes.calls)

`Writes` has the methods of a `Transport` and only collects the calls. A server in this process runs
them in order, each with the checks that it would have alone, and commits them at one revision: all
of them or none, and watchers see of each object only the last state. There is no such request in
the protocol of Kubernetes, so over HTTP callers send the same writes one by one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, TypeVar, cast, runtime_checkable

from sully.client.calls import Call, Calls
from sully.client.transport import Kind, Page, WatchEvent

T = TypeVar("T")


@runtime_checkable
class Transactional(Protocol):
    """A transport that can commit writes together."""

    async def commit(self, calls: Sequence[Call]) -> None:
        """Run all calls, or none. Raises the error of the first that is rejected."""
        ...


class Writes(Calls):
    """Collects writes; nothing is returned by them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def _object(self, kind: Kind[T], call: Call) -> T:  # noqa: ARG002 - nothing is returned
        self.calls.append(call)
        return cast("T", None)

    async def _done(self, call: Call) -> None:
        self.calls.append(call)

    async def _page(self, kind: Kind[T], call: Call) -> Page[T]:
        raise TypeError(f"a transaction has no reads: {call.verb} {kind.plural}")

    def _events(self, kind: Kind[T], call: Call) -> AsyncGenerator[WatchEvent[T], None]:
        raise TypeError(f"a transaction has no reads: {call.verb} {kind.plural}")


def transactional(transport: object) -> Transactional | None:
    """Return a transport as one that commits writes together, or None if it cannot."""
    return transport if isinstance(transport, Transactional) else None
