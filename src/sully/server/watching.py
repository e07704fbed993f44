"""Watches: the events of a resource as one client sees them.

A watch is a cursor into the store's log (store/base.py), so it costs nothing while nothing
happens. With a selector, an object that begins or ceases to match appears as ADDED or DELETED.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sully.machinery.errors import BadRequest, Expired, InternalError, invalid
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Obj
from sully.runtime.clock import Clock
from sully.server.objects import Objects
from sully.server.reads import parse_int, parse_version
from sully.server.requests import Request
from sully.server.selection import Selection, selection
from sully.store.base import Event, Record, Store, Subscription
from sully.store.errors import ClosedError, CompactedError, FutureRevisionError

BOOKMARK_SECONDS = 60.0
MIN_TIMEOUT_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to tell a watcher. `source` carries the memo its encodings are kept in."""

    type: str  # ADDED MODIFIED DELETED BOOKMARK
    record: Record | None
    revision: int  # what resourceVersion says in this event
    source: Event | None = None
    initial_end: bool = False


class Random(Protocol):
    """The one thing asked of chance: spreading the ends of watches."""

    def random(self) -> float:
        """Return a number from 0 to 1."""


class Watcher:
    """Opens watches on one store."""

    def __init__(
        self, store: Store, objects: Objects, clock: Clock, random: Random, *, strict: bool = False
    ) -> None:
        self._strict = strict
        self._store = store
        self._objects = objects
        self._clock = clock
        self._random = random
        self.stopping = asyncio.Event()
        self._open: set[Subscription] = set()

    async def watch(self, request: Request) -> AsyncGenerator[Sequence[Change], None]:
        """Check the request, then return its stream of batches."""
        check_watch_options(request)
        chosen = selection(request)
        seconds = self._timeout(request)
        version = parse_version(request.option("resourceVersion"), strict=self._strict)
        plan = await self._start(request, chosen, version)
        return self._stream(request, chosen, plan, seconds)

    def stop(self) -> None:
        """End all watches, as the server does before it goes."""
        self.stopping.set()
        for subscription in list(self._open):
            subscription.close()

    def _timeout(self, request: Request) -> float:
        text = request.option("timeoutSeconds")
        seconds = float(parse_int(text)) if text else 0.0
        return seconds or MIN_TIMEOUT_SECONDS * (1 + self._random.random())

    async def _start(self, request: Request, chosen: Selection, version: int) -> "_Plan":
        target = request.target
        where = (target.resource.storage_key, target.namespace or None)
        initial = request.options.get("sendInitialEvents")
        wants = request.flag("sendInitialEvents") if initial is not None else version == 0
        if version > self._store.revision:
            return _Plan(None, [], version, wants_bookmark=False)
        if not wants:
            after = version or self._store.revision
            return _Plan(self._subscribe(where, after), [], after, wants_bookmark=False)
        page = await self._store.list(*where)
        subscription = self._subscribe(where, page.revision)
        first = [
            Change("ADDED", record, record.revision)
            for record in page.records
            if chosen.matches(self._objects.live(record))
        ]
        marked = initial is not None and request.flag("allowWatchBookmarks")
        return _Plan(subscription, first, page.revision, wants_bookmark=marked)

    def _subscribe(self, where: tuple[str, str | None], after: int) -> Subscription:
        try:
            return self._store.watch(*where, after=after)
        except CompactedError:
            raise Expired(f"too old resource version: {after} ({self._store.compacted})") from None
        except FutureRevisionError:
            raise InternalError("the watch starts at a version that has not happened") from None

    async def _stream(
        self, request: Request, chosen: Selection, plan: "_Plan", seconds: float
    ) -> AsyncGenerator[Sequence[Change], None]:
        if plan.subscription is not None:
            self._open.add(plan.subscription)
        try:
            if plan.first:
                yield plan.first
            if plan.wants_bookmark:
                yield [Change("BOOKMARK", None, plan.revision, initial_end=True)]
            bookmarks = request.flag("allowWatchBookmarks")
            async for batch in self._follow(plan, seconds, bookmarks=bookmarks):
                told = self._tell(batch, chosen)
                if told:
                    yield told
        finally:
            if plan.subscription is not None:
                self._open.discard(plan.subscription)
                plan.subscription.close()

    async def _follow(
        self, plan: "_Plan", seconds: float, *, bookmarks: bool
    ) -> AsyncIterator[list[Event | int]]:
        """Yield batches of events, and revisions to mark when it is quiet."""
        end = self._clock.monotonic() + seconds
        while (left := end - self._clock.monotonic()) > 0 and not self.stopping.is_set():
            if plan.subscription is None:
                await self._wait(self.stopping.wait(), left)
                continue
            try:
                events: list[Event | int] = list(plan.subscription.take())
            except ClosedError:
                return
            except CompactedError:
                raise Expired(f"too old resource version: {plan.revision}") from None
            if events:
                yield events
                continue
            pause = min(left, BOOKMARK_SECONDS) if bookmarks else left
            if not await self._wait(plan.subscription.wait(), pause) and bookmarks:
                yield [plan.subscription.progress]

    async def _wait(self, waiting: object, seconds: float) -> bool:
        """Wait for something, the time, or the server's end; say whether it was the first."""
        return await wait_first(waiting, self.stopping, seconds)

    def _tell(self, batch: list[Event | int], chosen: Selection) -> list[Change]:
        if chosen.everything:
            return [
                Change("BOOKMARK", None, item)
                if isinstance(item, int)
                else Change(item.kind, item.record, item.revision, item)
                for item in batch
            ]
        return [told for item in batch if (told := self._judge(item, chosen)) is not None]

    def _judge(self, item: Event | int, chosen: Selection) -> Change | None:
        if isinstance(item, int):
            return Change("BOOKMARK", None, item)
        live = self._objects.live
        matches = item.kind != "DELETED" and chosen.matches(live(item.record))
        before = item.previous if item.kind != "DELETED" else item.record
        matched = before is not None and chosen.matches(live(before))
        if matches:
            return Change("MODIFIED" if matched else "ADDED", item.record, item.revision, item)
        if matched:
            return Change("DELETED", before, item.revision, item)
        return None


@dataclass(slots=True)
class _Plan:
    """How a watch begins. No subscription: its version lies in the future."""

    subscription: Subscription | None
    first: list[Change]
    revision: int
    wants_bookmark: bool


async def wait_first(waiting: object, stopping: asyncio.Event, seconds: float) -> bool:
    """Wait for a coroutine for some seconds, or until the server stops."""
    if stopping.is_set():
        close = getattr(waiting, "close", None)
        if close is not None:
            close()
        return False
    try:
        async with asyncio.timeout(seconds):
            await waiting  # type: ignore[misc]  # a coroutine; its result is not used
        return True
    except TimeoutError:
        return False


def check_watch_options(request: Request) -> None:
    """Refuse combinations of options that mean nothing for a watch."""
    match = request.option("resourceVersionMatch")
    initial = request.options.get("sendInitialEvents")
    at = Path("resourceVersionMatch")
    problems: list[FieldError] = []
    if initial is not None and match != "NotOlderThan":
        problems.append(
            at.forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        )
        if match:
            problems.append(at.not_supported(match, ("NotOlderThan",)))
    elif match and initial is None:
        problems.append(
            at.forbidden(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        )
    if request.option("continue"):
        problems.append(Path("continue").forbidden("continue is forbidden for watch"))
    if problems:
        raise invalid("ListOptions", "meta.k8s.io", "", problems)
    if request.target.name and not request.target.watch:
        raise BadRequest("a watch of one object is a list with a field selector on its name")


def bookmark(change: Change, empty: Obj) -> Obj:
    """Return the object of a BOOKMARK event: an empty one of its kind, with a version."""
    metadata: Obj = {"resourceVersion": str(change.revision)}
    if change.initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {**empty, "metadata": metadata}
