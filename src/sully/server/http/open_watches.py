"""Watches of clients that are open, and end when the right to them does.

A request is checked when it begins; a watch lasts for an hour. When roles, bindings or what tokens
are bound to change, each open watch is checked again as if it began now, and one that would be
refused ends. Its client then begins a new one, and gets the refusal. Watches of controllers in
process are not among them.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from sully.runtime.clock import Clock
from sully.server.authorization.attributes import Attributes
from sully.server.authorization.index import BINDINGS, ROLES
from sully.server.http.exchange import Exchange
from sully.server.storage.watching import MAX_TIMEOUT_SECONDS
from sully.store.base import Event, Store, Subscription
from sully.store.errors import ClosedError, CompactedError

LOOK_SECONDS = 1.0
"""How often it looks whether anything changed."""
REVIEW_SECONDS = 60.0
"""How often all are checked though nothing changed: some rights end by the clock."""
_RIGHTS = frozenset((*ROLES, *BINDINGS))
_BOUND = frozenset(("serviceaccounts", "pods", "secrets", "nodes"))
"""What a token lives no longer than."""
_FOLLOWED = (*sorted(_RIGHTS), *sorted(_BOUND))
_AT_ONCE = 100


class Gatekeeper(Protocol):
    """Says who may do what (door.py)."""

    def allows(self, exchange: Exchange, asked: Attributes) -> bool:
        """Say whether a request would be admitted now."""

    def seconds_left(self, exchange: Exchange) -> float:
        """Return how long the credentials of a request are still good."""


class OpenWatches:
    """Ends watches that are no longer allowed."""

    def __init__(self, store: Store, door: Gatekeeper, clock: Clock) -> None:
        self._store = store
        self._door = door
        self._clock = clock
        self._open: dict[Exchange, Attributes] = {}
        self._subscriptions: dict[str, Subscription] = {}

    @contextmanager
    def following(self, exchange: Exchange, asked: Attributes) -> Iterator[None]:
        """Watch over a watch while the block runs."""
        self._open[exchange] = asked
        left = self._door.seconds_left(exchange)
        timer = None
        if left < MAX_TIMEOUT_SECONDS:
            timer = asyncio.get_running_loop().call_later(left, exchange.end)
        try:
            yield
        finally:
            del self._open[exchange]
            if timer is not None:
                timer.cancel()

    async def keep(self) -> None:
        """Look after the watches for as long as the server runs."""
        with suppress(ClosedError):
            self.changed()
            reviewed = self._clock.monotonic()
            while True:
                await self._clock.sleep(LOOK_SECONDS)
                now = self._clock.monotonic()
                if self.changed() or now - reviewed >= REVIEW_SECONDS:
                    reviewed = now
                    await self.review()

    def changed(self) -> bool:
        """Say whether rights may have been taken away since the last call."""
        # All are asked, so that none falls behind the history that the store keeps.
        changed = [resource for resource in _FOLLOWED if self._changed(resource)]
        return bool(changed)

    def _changed(self, resource: str) -> bool:
        try:
            if resource in self._subscriptions:
                events = self._subscriptions[resource].take()
                return any(_matters(resource, event) for event in events)
        except CompactedError:
            pass
        self._subscriptions[resource] = self._store.watch(resource, after=self._store.revision)
        return True

    async def review(self) -> None:
        """End the watches that would be refused now."""
        for number, (exchange, asked) in enumerate(list(self._open.items()), 1):
            if not self._door.allows(exchange, asked):
                exchange.end()
            if number % _AT_ONCE == 0:
                # Others have a turn, too.
                await self._clock.sleep(0)


def _matters(resource: str, event: Event) -> bool:
    return resource in _RIGHTS or event.kind == "DELETED"
