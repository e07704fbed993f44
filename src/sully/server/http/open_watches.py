"""Ends open watches whose user has lost the permission.

A request is authorized when it starts; a watch lasts for an hour. When roles, bindings or what
tokens are bound to change, each open watch is authorized again, and one that would be rejected
ends. Its client then starts a new one and gets the rejection. Watches of controllers in process are
not checked.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from sully.runtime.clock import Clock
from sully.server.authorization.attributes import Attributes
from sully.server.authorization.index import BINDINGS, ROLES
from sully.server.http.http_request import HttpRequest
from sully.server.storage.watching import MAX_TIMEOUT_SECONDS
from sully.store.base import Event, Store, Subscription
from sully.store.errors import ClosedError, CompactedError

POLL_SECONDS = 1.0
"""How often to check for changes."""
REVIEW_SECONDS = 60.0
"""How often all are checked without a change: some permissions expire."""
_RIGHTS = frozenset((*ROLES, *BINDINGS))
_BOUND = frozenset(("serviceaccounts", "pods", "secrets", "nodes"))
"""Deleting these invalidates tokens that are bound to them."""
_WATCHED = (*sorted(_RIGHTS), *sorted(_BOUND))
_BATCH = 100


class Authorization(Protocol):
    """Decides whether a request is still authorized (access.py)."""

    def allows(self, http_request: HttpRequest, attributes: Attributes) -> bool:
        """Report whether a request would be authorized now."""

    def seconds_left(self, http_request: HttpRequest) -> float:
        """Return how long the credentials of a request remain valid."""


class OpenWatches:
    """Ends watches that are no longer allowed."""

    def __init__(self, store: Store, access: Authorization, clock: Clock) -> None:
        self._store = store
        self._access = access
        self._clock = clock
        self._open: dict[HttpRequest, Attributes] = {}
        self._subscriptions: dict[str, Subscription] = {}

    @contextmanager
    def track(self, http_request: HttpRequest, attributes: Attributes) -> Iterator[None]:
        """Check a watch while the block runs."""
        self._open[http_request] = attributes
        left = self._access.seconds_left(http_request)
        timer = None
        if left < MAX_TIMEOUT_SECONDS:
            timer = asyncio.get_running_loop().call_later(left, http_request.end)
        try:
            yield
        finally:
            del self._open[http_request]
            if timer is not None:
                timer.cancel()

    async def run(self) -> None:
        """Check watches until the server stops."""
        with suppress(ClosedError):
            self.changed()
            reviewed = self._clock.monotonic()
            while True:
                await self._clock.sleep(POLL_SECONDS)
                now = self._clock.monotonic()
                if self.changed() or now - reviewed >= REVIEW_SECONDS:
                    reviewed = now
                    await self.review()

    def changed(self) -> bool:
        """Report whether permissions may have been revoked since the last call."""
        # All are read, so that none falls behind the compaction of the store.
        changed = [resource for resource in _WATCHED if self._changed(resource)]
        return bool(changed)

    def _changed(self, resource: str) -> bool:
        try:
            if resource in self._subscriptions:
                events = self._subscriptions[resource].take()
                return any(_may_revoke(resource, event) for event in events)
        except CompactedError:
            pass
        self._subscriptions[resource] = self._store.watch(resource, after=self._store.revision)
        return True

    async def review(self) -> None:
        """End the watches that would be rejected now."""
        for number, (http_request, attributes) in enumerate(list(self._open.items()), 1):
            if not self._access.allows(http_request, attributes):
                http_request.end()
            if number % _BATCH == 0:
                # Yield to other tasks.
                await self._clock.sleep(0)


def _may_revoke(resource: str, event: Event) -> bool:
    return resource in _RIGHTS or event.kind == "DELETED"
