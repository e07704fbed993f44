"""Keeps a copy of a collection up to date: list once, then follow the watch from there.

A watch that ends is resumed from the last version seen. Only when the server no longer knows that
version (410), or refuses it otherwise, is everything listed again; or when somebody wants to be
sure of the copy (`refresh`). Who keeps the copy is the `Sink`: see informer.py. How sure it is says
contact.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sully.client.http.status import retry_after
from sully.client.informers.freshness import Contact
from sully.client.informers.outages import Troubles
from sully.client.options import ListOptions, WatchOptions
from sully.client.transport import (
    Kind,
    SilentError,
    Transport,
    UnreachableError,
    UnreadableError,
    WatchEvent,
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
"""Watches end after a time in this range, so that they do not all come back at once."""
STEADY_SECONDS = 60.0
"""After a watch that held this long, earlier failures are forgotten."""
BRIEF_SECONDS = 1.0
"""A watch that ends sooner and brought nothing counts as a failure, or we would spin."""

_KEEPS_PLACE = (
    TooManyRequests,
    ServiceUnavailable,
    InternalError,
    Unauthorized,
    Forbidden,
    UnreachableError,
)
"""Failures that say nothing about the version: the watch resumes where it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind to follow."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


EVERYTHING = Selection()


class Sink(Protocol[T]):
    """Takes what a reflector sees."""

    def replace(self, items: Sequence[T]) -> None:
        """Take the whole collection as it is now."""
        ...

    def change(self, event: WatchEvent[T]) -> None:
        """Take one ADDED, MODIFIED or DELETED event."""
        ...


class Observer(Protocol):
    """Is told what a reflector does; informermetrics.py has one."""

    def listed(self) -> None:
        """Note that everything was listed."""
        ...

    def watched(self) -> None:
        """Note that a watch is being opened."""
        ...

    def told(self) -> None:
        """Note that an event came."""
        ...

    def failed(self, *, expired: bool) -> None:
        """Note a failure; it is `expired` if the server had forgotten our place."""
        ...


class Reflector(Generic[T]):
    """Follows one collection of one server, for ever."""

    def __init__(
        self,
        transport: Transport,
        kind: Kind[T],
        sink: Sink[T],
        *,
        clock: Clock,
        selection: Selection = EVERYTHING,
        backoff: Backoff | None = None,
    ) -> None:
        self.contact = Contact(clock)
        self._transport = transport
        self._kind = kind
        self._sink = sink
        self._selection = selection
        self._clock = clock
        self._backoff = backoff or Backoff(base=0.5, cap=30.0, jitter=1.0)
        self._troubles = Troubles(clock)
        self._observer: Observer | None = None
        self._version = ""
        self._failures = 0
        self._name = f"{kind.plural}.{kind.group}".rstrip(".")
        self._wanted = asyncio.Event()
        self._listing = False

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        try:
            while True:
                await self._try_once()
        finally:
            self._troubles.forget(self)

    def report_to(self, troubles: Troubles, observer: Observer | None = None) -> None:
        """Share the telling of troubles with others, and have what is done counted."""
        self._troubles = troubles
        self._observer = observer

    def refresh(self) -> None:
        """Have everything listed anew: at once, or if the last try failed, when the next is due."""
        if not self._listing:
            self._wanted.set()

    async def _try_once(self) -> None:
        begun = self._clock.monotonic()
        try:
            await self._follow_on(begun)
        except (ApiError, UnreachableError, UnreadableError) as error:
            if self._clock.monotonic() - begun >= STEADY_SECONDS:
                self._failures = 0
            await self._pause(self._note(error), error)

    async def _pause(self, delay: float, error: Exception) -> None:
        if isinstance(error, UnreachableError):
            # All who follow a server lose it together; the first to find it calls the others.
            await wait_first(self._clock.sleep(delay), self._troubles.answered())
        else:
            await self._clock.sleep(delay)

    async def _follow_on(self, begun: float) -> None:
        """Watch once, after a list if there is no place to resume from."""
        if self._wanted.is_set() or not self._version:
            await self._list()
        before = self._version
        try:
            await wait_first(self._follow(), self._wanted.wait())
            self.contact.ended()
        except SilentError:
            # The line may be dead. If so, the next try tells.
            self.contact.ended(rightly=False)
        if self._wanted.is_set():
            return
        if self._version == before and self._clock.monotonic() - begun < BRIEF_SECONDS:
            raise UnreachableError("the server ended the watch at once")
        self._failures = 0

    async def _list(self) -> None:
        self._version = ""
        self._wanted.clear()
        self._listing = True
        # What is listed is at least as new as the question.
        begun = Moment.of(self._clock)
        try:
            items, version = await self._pages(PAGE_SIZE)
        except Gone:
            # The pages took longer than the server keeps them: ask for all at once.
            items, version = await self._pages(0)
        finally:
            self._listing = False
        self._sink.replace(items)
        self._version = version
        if self._observer:
            self._observer.listed()
        self._works()
        self.contact.confirmed(begun)

    async def _pages(self, limit: int) -> tuple[list[T], str]:
        items: list[T] = []
        token = ""
        while True:
            options = ListOptions(
                label_selector=self._selection.label_selector,
                field_selector=self._selection.field_selector,
                limit=limit,
                continue_token=token,
            )
            page = await self._transport.list(self._kind, self._selection.namespace, options)
            items.extend(page.items)
            token = page.continue_token
            if not token:
                return items, page.resource_version

    async def _follow(self) -> None:
        """Pass on events until the watch ends."""
        options = WatchOptions(
            label_selector=self._selection.label_selector,
            field_selector=self._selection.field_selector,
            resource_version=self._version,
            timeout_seconds=round(self._backoff.chance.uniform(*WATCH_SECONDS)),
            opened=self._opened,
        )
        if self._observer:
            self._observer.watched()
        events = self._transport.watch(self._kind, self._selection.namespace, options)
        async with aclosing(events):
            async for event in events:
                self._take(event)

    def _take(self, event: WatchEvent[T]) -> None:
        marks = event.type == "BOOKMARK"
        if not marks:
            self._sink.change(event)
        # Only now: an event that was not taken must come again.
        self._version = event.resource_version
        self._failures = 0
        if self._observer:
            self._observer.told()
        self._works()
        if marks:
            self.contact.confirmed(Moment.of(self._clock))
        else:
            self.contact.heard()

    def _opened(self) -> None:
        self._works()
        self.contact.opened()

    def _works(self) -> None:
        if self.contact.problem is not None:
            self._troubles.over(self, self._name)
        else:
            self._troubles.heard()

    def _note(self, error: Exception) -> float:
        """Remember a failure and return how long to wait."""
        self._failures += 1
        if not isinstance(error, _KEEPS_PLACE):
            self._version = ""
        expired = isinstance(error, Gone)
        if self._observer:
            self._observer.failed(expired=expired)
        if expired and self._failures == 1:
            # It happens after a long pause, and the cure is known: list again at once.
            self.contact.ended(rightly=False)
            return 0.0
        self.contact.broke(error)
        delay = self._backoff.delay(self._failures)
        if isinstance(error, ApiError):
            delay = max(delay, retry_after(error) or 0.0)
        tell = log.warning if self._troubles.began(self, error) else log.debug
        tell(
            "cannot follow a collection",
            resource=self._name,
            error=str(error),
            failures=self._failures,
            retry_in=round(delay, 3),
        )
        return delay
