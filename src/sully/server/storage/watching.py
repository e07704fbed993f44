"""Watches: the events of a resource as one client sees them.

A watch is a cursor into the store's log (store/base.py), so it costs nothing while nothing
happens. With a selector, an object that starts or stops matching appears as ADDED or DELETED.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from sully.machinery.compat import Compat
from sully.machinery.errors import BadRequest, Expired, InternalError, invalid
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Obj
from sully.runtime.tasks import let_others_run
from sully.server.requests import Request
from sully.server.storage.objects import Objects
from sully.server.storage.reads import (
    NO_MATCH_WITH_CONTINUE,
    catch_up_to,
    parse_int,
    parse_version,
    select,
)
from sully.server.storage.selection import SelectionPredicate, selection
from sully.server.storage.turns import AT_A_TIME
from sully.store.base import Event, Record, Store, Subscription
from sully.store.errors import (
    ClosedError,
    CompactedError,
    FutureRevisionError,
    UnavailableError,
)

BOOKMARK_SECONDS = 60.0
MIN_TIMEOUT_SECONDS = 1800.0
MAX_TIMEOUT_SECONDS = 2 * MIN_TIMEOUT_SECONDS
"""The longest that a watch without `timeoutSeconds` lasts."""
UNSERVED_SECONDS = 1.0
"""How long watches of a deleted definition last: a client that also watches definitions sees that
the kind is gone before it watches again and gets 404. Kubernetes waits as long."""


class WatchChange(msgspec.Struct, frozen=True):
    """One event for a watcher. `source` carries the memo of its encodings."""

    type: str  # ADDED MODIFIED DELETED BOOKMARK
    record: Record | None
    revision: int  # the resourceVersion of this event
    source: Event | None = None
    initial_end: bool = False


class Random(Protocol):
    """The source of randomness, which spreads the timeouts of watches."""

    def random(self) -> float:
        """Return a number from 0 to 1."""


class Watcher:
    """Opens watches on one store."""

    def __init__(
        self, store: Store, objects: Objects, random: Random, *, compat: Compat = Compat.SULLY
    ) -> None:
        self.bookmark_seconds = BOOKMARK_SECONDS  # how often an idle watch gets one
        self.unserved_seconds = UNSERVED_SECONDS  # how long watches of a deleted definition last
        self._compat = compat
        self._store = store
        self._objects = objects
        self._random = random
        self.stopping = asyncio.Event()
        self._open: dict[Subscription, str] = {}
        self._ending: set[Subscription] = set()

    async def watch(self, request: Request) -> AsyncGenerator[Sequence[WatchChange], None]:
        """Check the request, then return its stream of batches."""
        check_watch_options(request)
        predicate = selection(request)
        seconds = timeout(request.options.get("timeoutSeconds"), self._random)
        version = parse_version(request.option("resourceVersion"), compat=self._compat)
        start = await self._start(request, version)
        return self._stream(request, predicate, start, seconds)

    def stop(self) -> None:
        """End all watches before the server stops."""
        self.stopping.set()
        for subscription in list(self._open):
            subscription.close()

    def end(self, storage_key: str) -> None:
        """End the watches of a resource that is no longer served, soon and after its last event."""
        asyncio.get_running_loop().call_later(self.unserved_seconds, self._end, storage_key)

    def _end(self, storage_key: str) -> None:
        for subscription, resource in self._open.items():
            if resource == storage_key:
                self._ending.add(subscription)
                subscription.wake()

    async def _start(self, request: Request, version: int) -> "_WatchStart":
        target = request.target
        scope = (target.resource.storage_key, target.namespace or None)
        initial_events = request.options.get("sendInitialEvents")
        send_initial = (
            request.flag("sendInitialEvents") if initial_events is not None else version == 0
        )
        # A watch without a version starts at the newest state, also of other replicas.
        await (catch_up_to(self._store, version) if version else self._store.catch_up())
        if version > self._store.revision:
            return _WatchStart(None, [], version, sends_bookmark=False)
        if not send_initial:
            after = version or self._store.revision
            try:
                return _WatchStart(self._subscribe(scope, after), [], after, sends_bookmark=False)
            except Expired as expired:
                # Clients expect it in the stream, as for watches that fall behind.
                return _WatchStart(None, [], after, sends_bookmark=False, expired=expired)
        page = await self._store.list(*scope)
        subscription = self._subscribe(scope, page.revision)
        sends_bookmark = initial_events is not None and request.flag("allowWatchBookmarks")
        return _WatchStart(subscription, page.records, page.revision, sends_bookmark=sends_bookmark)

    def _subscribe(self, scope: tuple[str, str | None], after: int) -> Subscription:
        try:
            return self._store.watch(*scope, after=after)
        except CompactedError:
            raise Expired(f"too old resource version: {after} ({self._store.compacted})") from None
        except FutureRevisionError:
            raise InternalError("the watch starts at a resource version in the future") from None

    async def _stream(
        self, request: Request, predicate: SelectionPredicate, start: "_WatchStart", seconds: float
    ) -> AsyncGenerator[Sequence[WatchChange], None]:
        if start.expired is not None:
            raise start.expired
        if start.subscription is not None:
            self._open[start.subscription] = request.target.resource.storage_key
        try:
            if start.initial:
                records, start.initial = start.initial, []
                if not predicate.everything:
                    records = await select(records, predicate, self._objects)
                initial = [WatchChange("ADDED", record, record.revision) for record in records]
                if initial:
                    yield initial
                # Here and below: an idle watch must not keep sent objects in memory.
                del initial, records
            if start.sends_bookmark:
                yield [WatchChange("BOOKMARK", None, start.revision, initial_end=True)]
            bookmarks = request.flag("allowWatchBookmarks")
            async for batch in self._follow(start, seconds, bookmarks=bookmarks):
                events = await self._select(batch, predicate)
                del batch
                if events:
                    yield events
                del events
        finally:
            if start.subscription is not None:
                self._open.pop(start.subscription, None)
                self._ending.discard(start.subscription)
                start.subscription.close()

    async def _follow(
        self, start: "_WatchStart", seconds: float, *, bookmarks: bool
    ) -> AsyncIterator[list[Event | int]]:
        """Yield batches of events, and revisions for bookmarks while there are none."""
        if start.subscription is None:
            await self._until_stopped(seconds)
            return
        subscription = start.subscription
        timer = IntervalTimer(
            subscription.wake, seconds, self.bookmark_seconds if bookmarks else seconds
        )
        try:
            while not timer.ended and not self.stopping.is_set():
                events: list[Event | int] = list(subscription.take())
                if events:
                    yield events
                elif subscription in self._ending:
                    return
                elif bookmarks and timer.fired():
                    marks = await self._bookmark(subscription)
                    if marks:
                        yield marks
                else:
                    await subscription.wait()
        except ClosedError:
            return
        except CompactedError:
            raise Expired(f"too old resource version: {start.revision}") from None
        finally:
            timer.cancel()

    async def _bookmark(self, subscription: Subscription) -> list[Event | int]:
        """Return the remaining events and a final bookmark.

        Clients rely on it, so a replica that cannot read the writes of others sends none.
        """
        try:
            await self._store.catch_up()
        except UnavailableError:
            return []
        return [*subscription.take(), subscription.progress]

    async def _until_stopped(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stopping.wait()

    async def _select(
        self, batch: list[Event | int], predicate: SelectionPredicate
    ) -> list[WatchChange]:
        if predicate.everything:
            return [
                WatchChange("BOOKMARK", None, item)
                if isinstance(item, int)
                else WatchChange(item.kind, item.record, item.revision, item)
                for item in batch
            ]
        selected: list[WatchChange] = []
        for number, item in enumerate(batch, 1):
            event = self._filter(item, predicate)
            if event is not None:
                selected.append(event)
            if number % AT_A_TIME == 0:
                await let_others_run()
        return selected

    def _filter(self, item: Event | int, predicate: SelectionPredicate) -> WatchChange | None:
        if isinstance(item, int):
            return WatchChange("BOOKMARK", None, item)
        if predicate.single not in (None, item.record.key.name):
            return None
        live = self._objects.live
        matches = item.kind != "DELETED" and predicate.matches(live(item.record))
        before = item.previous if item.kind != "DELETED" else item.record
        matched = before is not None and predicate.matches(live(before))
        if matches:
            return WatchChange("MODIFIED" if matched else "ADDED", item.record, item.revision, item)
        if matched:
            return WatchChange("DELETED", before, item.revision, item)
        return None


def timeout(requested: str | None, random: Random) -> float:
    """Return how many seconds a watch lasts: as its client requests, within limits."""
    seconds = 0 if requested is None else parse_int(requested)
    if not seconds:
        return MIN_TIMEOUT_SECONDS * (1 + random.random())
    return min(float(seconds), MAX_TIMEOUT_SECONDS)


class _WatchStart(msgspec.Struct):
    """How a watch starts. No subscription: its version is in the future, or `expired`."""

    subscription: Subscription | None
    initial: list[Record]
    revision: int
    sends_bookmark: bool
    expired: Expired | None = None


class IntervalTimer:
    """One timer for a watch: it fires at each interval and at the end.

    A timer for every wait would cost more than sending the event that ends it.
    """

    def __init__(self, callback: Callable[[], None], seconds: float, interval: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._callback = callback
        self._end = self._loop.time() + seconds
        self._interval = interval
        self._fired = False
        self.ended = False
        self._timer = self._set()

    def _set(self) -> asyncio.TimerHandle:
        return self._loop.call_at(min(self._loop.time() + self._interval, self._end), self._due)

    def _due(self) -> None:
        self.ended = self._loop.time() >= self._end
        self._fired = True
        if not self.ended:
            self._timer = self._set()
        self._callback()

    def fired(self) -> bool:
        """Report once that an interval has passed."""
        fired, self._fired = self._fired, False
        return fired

    def cancel(self) -> None:
        """Stop the timer."""
        self._timer.cancel()


def check_watch_options(request: Request) -> None:
    """Reject invalid combinations of options for a watch."""
    match = request.option("resourceVersionMatch")
    initial_events = request.options.get("sendInitialEvents")
    at = Path("resourceVersionMatch")
    problems: list[FieldError] = []
    if initial_events is not None and match != "NotOlderThan":
        problems.append(
            at.forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        )
    elif match and initial_events is None:
        problems.append(
            at.forbidden(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        )
    if match and match != "NotOlderThan":
        problems.append(at.not_supported(match, ("NotOlderThan",)))
    # A watch from any version sends its initial events, so it has a match even if none is given.
    if request.option("continue") and (match or request.option("resourceVersion") in ("", "0")):
        problems.append(at.forbidden(NO_MATCH_WITH_CONTINUE))
    if problems:
        raise invalid("ListOptions", "meta.k8s.io", "", problems)
    if request.target.name and not request.target.watch:
        raise BadRequest("a watch of one object is a list with a field selector on its name")


def bookmark(change: WatchChange, empty: Obj) -> Obj:
    """Return the object of a BOOKMARK event: an empty one of its kind, with a version."""
    metadata: Obj = {"resourceVersion": str(change.revision)}
    if change.initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {**empty, "metadata": metadata}
