"""Keeps a cache up to date: list once, then watch from there.

A watch that ends is resumed from the last resourceVersion. Everything is listed again only when the
server no longer has that version (410) or rejects it otherwise, or when a reader needs a confirmed
cache (`refresh`). The cache is the `Sink`, see informer.py. freshness.py measures how fresh it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

import msgspec

from sully.client.http.status import retry_after
from sully.client.informers.freshness import InformerFreshness
from sully.client.informers.outages import Outages
from sully.client.options import ListOptions, WatchOptions
from sully.client.transport import (
    Kind,
    Transport,
    UnreachableError,
    UnreadableError,
    WatchEvent,
    WatchStalledError,
)
from sully.machinery.errors import (
    ApiError,
    Forbidden,
    Gone,
    InternalError,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)
from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock, Moment
from sully.runtime.log import get_logger
from sully.runtime.tasks import wait_first

T = TypeVar("T")

log = get_logger("client")

PAGE_SIZE = 500
WATCH_SECONDS = (300.0, 600.0)
"""Watches time out after a time in this range, so that they do not all reconnect together."""
STEADY_SECONDS = 60.0
"""A watch that lasts this long resets the backoff."""
BRIEF_SECONDS = 1.0
"""A watch that ends sooner without an event counts as a failure and is backed off."""

_KEEPS_VERSION = (
    TooManyRequests,
    ServiceUnavailable,
    InternalError,
    Unauthorized,
    Forbidden,
    UnreachableError,
)
"""Errors that do not invalidate the resourceVersion: the watch resumes from it."""


class ObjectSelector(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects of a kind to list and watch."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


EVERYTHING = ObjectSelector()


class Sink(Protocol[T]):
    """Receives what a reflector lists and watches."""

    def replace(self, items: Sequence[T]) -> None:
        """Replace the whole collection."""
        ...

    def change(self, event: WatchEvent[T]) -> None:
        """Apply one ADDED, MODIFIED or DELETED event."""
        ...


class Observer(Protocol):
    """Counts what a reflector does; metrics.py has one."""

    def listed(self) -> None:
        """Count a complete list."""
        ...

    def watched(self) -> None:
        """Count a watch."""
        ...

    def event_received(self) -> None:
        """Count a watch event."""
        ...

    def failed(self, *, expired: bool) -> None:
        """Count a failure; it is `expired` if the resourceVersion was too old (410)."""
        ...


class Reflector(Generic[T]):
    """Lists and watches one collection."""

    def __init__(
        self,
        transport: Transport,
        kind: Kind[T],
        sink: Sink[T],
        *,
        clock: Clock,
        selector: ObjectSelector = EVERYTHING,
        backoff: Backoff | None = None,
    ) -> None:
        self.freshness = InformerFreshness(clock)
        self._transport = transport
        self._kind = kind
        self._sink = sink
        self._selector = selector
        self._clock = clock
        self._backoff = backoff or Backoff(base=0.5, cap=30.0, jitter=1.0)
        self._outages = Outages(clock)
        self._observer: Observer | None = None
        self._version = ""
        self._failures = 0
        self._expiries = 0
        """How often the version had expired since the server last sent an event."""
        self._name = f"{kind.plural}.{kind.group}".rstrip(".")
        self._relist = asyncio.Event()
        self._listing = False

    async def run(self) -> None:
        """List and watch until cancelled."""
        try:
            while True:
                await self._try_once()
        finally:
            self._outages.forget(self)

    def report_to(self, outages: Outages, observer: Observer | None = None) -> None:
        """Report outages together with others, and count with an observer."""
        self._outages = outages
        self._observer = observer

    def refresh(self) -> None:
        """List everything again: immediately, or after the current backoff."""
        if not self._listing:
            self._relist.set()

    async def _try_once(self) -> None:
        started = self._clock.monotonic()
        try:
            await self._list_and_watch(started)
        except (ApiError, UnreachableError, UnreadableError) as error:
            if self._clock.monotonic() - started >= STEADY_SECONDS:
                self._failures = 0
            await self._pause(self._failed(error), error)

    async def _pause(self, delay: float, error: Exception) -> None:
        if isinstance(error, UnreachableError):
            # All watches of a server fail together; the first to reconnect wakes the others.
            await wait_first(self._clock.sleep(delay), self._outages.wait_answered())
        else:
            await self._clock.sleep(delay)

    async def _list_and_watch(self, started: float) -> None:
        """Watch once, after a list if there is no version to resume from."""
        if self._relist.is_set() or not self._version:
            await self._list()
        before = self._version
        try:
            await wait_first(self._watch(), self._relist.wait())
            self.freshness.watch_ended()
        except WatchStalledError:
            # The connection may be dead; the next attempt finds out.
            self.freshness.watch_ended(stalled=True)
        if self._relist.is_set():
            return
        if self._version == before and self._clock.monotonic() - started < BRIEF_SECONDS:
            raise UnreachableError("the server ended the watch immediately")
        self._failures = self._expiries = 0

    async def _list(self) -> None:
        self._version = ""
        self._relist.clear()
        self._listing = True
        # A list is at least as recent as its request.
        started = Moment.of(self._clock)
        try:
            items, version = await self._pages(PAGE_SIZE)
        except Gone:
            # The continue token expired: list without pages.
            items, version = await self._pages(0)
        finally:
            self._listing = False
        self._sink.replace(items)
        self._version = version
        if self._observer:
            self._observer.listed()
        self._succeeded()
        self.freshness.confirmed(started)

    async def _pages(self, limit: int) -> tuple[list[T], str]:
        items: list[T] = []
        token = ""
        while True:
            options = ListOptions(
                label_selector=self._selector.label_selector,
                field_selector=self._selector.field_selector,
                limit=limit,
                continue_token=token,
            )
            page = await self._transport.list(self._kind, self._selector.namespace, options)
            items.extend(page.items)
            token = page.continue_token
            if not token:
                return items, page.resource_version

    async def _watch(self) -> None:
        """Apply events until the watch ends."""
        options = WatchOptions(
            label_selector=self._selector.label_selector,
            field_selector=self._selector.field_selector,
            resource_version=self._version,
            timeout_seconds=round(self._backoff.rng.uniform(*WATCH_SECONDS)),
            opened=self._opened,
        )
        if self._observer:
            self._observer.watched()
        events = self._transport.watch(self._kind, self._selector.namespace, options)
        async with aclosing(events):
            async for event in events:
                self._apply(event)

    def _apply(self, event: WatchEvent[T]) -> None:
        is_bookmark = event.type == "BOOKMARK"
        if not is_bookmark:
            self._sink.change(event)
        # Only now: an event that could not be applied must be delivered again.
        self._version = event.resource_version
        self._failures = self._expiries = 0
        if self._observer:
            self._observer.event_received()
        self._succeeded()
        if is_bookmark:
            self.freshness.confirmed(Moment.of(self._clock))
        else:
            self.freshness.event_received()

    def _opened(self) -> None:
        self._succeeded()
        self.freshness.watch_opened()

    def _succeeded(self) -> None:
        if self.freshness.problem is not None:
            self._outages.recovered(self, self._name)
        else:
            self._outages.server_answered()

    def _failed(self, error: Exception) -> float:
        """Record a failure and return how long to back off."""
        self._failures += 1
        if not isinstance(error, _KEEPS_VERSION):
            self._version = ""
        expired = isinstance(error, Gone)
        if self._observer:
            self._observer.failed(expired=expired)
        self._expiries += expired
        if expired and self._expiries == 1:
            # Expected after a long pause, also of the server. Only if the version that was just
            # listed has expired, too, something is wrong.
            log.debug("watch expired, relisting", resource=self._name)
            self.freshness.watch_ended(stalled=True)
            return 0.0
        self.freshness.failed(error)
        delay = self._backoff.delay(self._failures)
        if isinstance(error, ApiError):
            delay = max(delay, retry_after(error) or 0.0)
        report = log.warning if self._outages.failed(self, error) else log.debug
        report(
            "failed to list or watch",
            resource=self._name,
            error=str(error),
            failures=self._failures,
            retry_in=round(delay, 3),
        )
        return delay
