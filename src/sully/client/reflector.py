"""Keeps a copy of a collection up to date: list once, then follow the watch from there.

A watch that ends is resumed from the last version seen. Only when the server no longer knows that
version (410), or refuses it otherwise, is everything listed again. Who keeps the copy is the
`Sink`: see informer.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sully.client.options import ListOptions, WatchOptions
from sully.client.status import retry_after
from sully.client.transport import Kind, Transport, UnreachableError, UnreadableError, WatchEvent
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
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

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
        self._transport = transport
        self._kind = kind
        self._sink = sink
        self._selection = selection
        self._clock = clock
        self._backoff = backoff or Backoff(base=0.5, cap=30.0, jitter=1.0)
        self._version = ""
        self._failures = 0
        self._problem: Exception | None = None

    @property
    def problem(self) -> Exception | None:
        """Return what keeps the copy from being up to date, or None if nothing does."""
        return self._problem

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        while True:
            begun = self._clock.monotonic()
            try:
                if not self._version:
                    await self._list()
                came = await self._follow()
                lasted = self._clock.monotonic() - begun
                if not came and lasted < BRIEF_SECONDS:
                    raise UnreachableError("the server ended the watch at once")
                self._failures = 0
            except (ApiError, UnreachableError, UnreadableError) as error:
                if self._clock.monotonic() - begun >= STEADY_SECONDS:
                    self._failures = 0
                await self._clock.sleep(self._note(error))

    async def _list(self) -> None:
        try:
            items, version = await self._pages(PAGE_SIZE)
        except Gone:
            # The pages took longer than the server keeps them: ask for all at once.
            items, version = await self._pages(0)
        self._sink.replace(items)
        self._version = version
        self._problem = None

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

    async def _follow(self) -> bool:
        """Pass on events until the watch ends; say whether any came."""
        came = False
        options = WatchOptions(
            label_selector=self._selection.label_selector,
            field_selector=self._selection.field_selector,
            resource_version=self._version,
            timeout_seconds=round(self._backoff.chance.uniform(*WATCH_SECONDS)),
        )
        events = self._transport.watch(self._kind, self._selection.namespace, options)
        async with aclosing(events):
            async for event in events:
                if event.type != "BOOKMARK":
                    self._sink.change(event)
                # Only now: an event that was not taken must come again.
                self._version = event.resource_version
                self._failures = 0
                self._problem = None
                came = True
        return came

    def _note(self, error: Exception) -> float:
        """Remember a failure and return how long to wait."""
        self._failures += 1
        if not isinstance(error, _KEEPS_PLACE):
            self._version = ""
        if isinstance(error, Gone) and self._failures == 1:
            # It happens after a long pause, and the cure is known: list again at once.
            return 0.0
        self._problem = error
        delay = self._backoff.delay(self._failures)
        if isinstance(error, ApiError):
            delay = max(delay, retry_after(error) or 0.0)
        log.warning(
            "cannot follow a collection",
            resource=f"{self._kind.plural}.{self._kind.group}".rstrip("."),
            error=str(error),
            failures=self._failures,
            retry_in=round(delay, 3),
        )
        return delay
