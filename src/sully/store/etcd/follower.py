"""Applies the etcd watch to the state in memory.

Own writes come this way too, so every process sees the same events in the same order. At the start
the state is read as it was some thousand revisions ago, and the watch brings it up to date: a
client that watched another process, or this one before it was started again, can resume from there.
If a gap cannot be closed, because its history was compacted meanwhile, the state is listed again
and watchers must do the same.

A revision of the store is etcd's plus an offset, which is 0 unless the store took the place of
another one (`migration.py`): what that one numbered must not come again. Numbers of etcd stay in
this module; records, events and the state have those of the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from itertools import groupby

from sully.runtime.backoff import Backoff
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.runtime.tasks import wait_first
from sully.store.base import Derived, Event, Record, StoreKey
from sully.store.errors import UnavailableError
from sully.store.etcd import messages as m
from sully.store.etcd.address import Keys
from sully.store.etcd.client import Client, CompactedHistoryError
from sully.store.state import State
from sully.store.transactions import Transaction

HISTORY = 2_000
"""Revisions to go back at the start: less than a second's work."""
_PAGE = 500
"""Keys per page: pages of large objects must stay far from what one message may hold."""

Memo = Callable[[bytes], dict[StoreKey, Derived]]
"""Returns what is known about the values of a transaction of this process, by its mark."""
OnTransaction = Callable[[bytes, Transaction], None]
"""Called with the mark of each transaction once readers see it."""

_log = get_logger("store")


class Follower:
    """Keeps a `State` up to date with the keys under a prefix."""

    def __init__(self, client: Client, keys: Keys, clock: Clock) -> None:
        self._client = client
        self._keys = keys
        self._clock = clock
        self._backoff = Backoff(base=0.05, cap=2.0)
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._stuck = asyncio.Event()
        self._applied = 0
        self.resume = 1
        """etcd's revision from which the next watch begins; nothing before it can be missing."""
        self.problem = ""
        """Why the state may be behind; empty while a watch is open."""
        self.offset = 0
        self.state = State(revision=0, compacted=0)
        self.memo: Memo = lambda _: {}
        self.on_transaction: OnTransaction = lambda *_: None
        self.renewed: Callable[[int], None] = lambda _: None
        """Called after the state was listed again, with its revision."""

    async def tip(self) -> int:
        """Return etcd's revision of the newest write that was acknowledged to anyone."""
        response = await self._client.range(m.RangeRequest(key=self._keys.tip, keys_only=True))
        return response.kvs[0].mod_revision if response.kvs else 0

    async def load(self) -> None:
        """Read a state that `run` can begin with."""
        while True:
            response = await self._client.range(m.RangeRequest(key=self._keys.tip, keys_only=True))
            newest = response.kvs[0].mod_revision if response.kvs else response.header.revision
            revision = max(1, newest - HISTORY) if response.kvs else newest
            try:
                records = await self._read(revision)
            except CompactedHistoryError:
                revision = await self._client.oldest(self._keys.start, self._keys.end)
                if not revision:
                    continue
                try:
                    records = await self._read(revision)
                except CompactedHistoryError:
                    continue  # it was compacted further just now
            visible = revision + self.offset
            self.state = State(revision=visible, compacted=visible)
            self.state.restore(records, ())
            self._applied, self.resume = revision, revision + 1
            return

    async def run(self) -> None:
        """Watch until cancelled, from member to member."""
        failures = 0
        while True:
            before = self._applied
            try:
                self._stuck.clear()
                await wait_first(self._follow(), self._stuck.wait())
                self._client.switch_member()
                raise UnavailableError("the watch lags behind")
            except CompactedHistoryError as error:
                _log.warning("etcd watch compacted, relisting", error=str(error))
                await self._renew()
            except UnavailableError as error:
                failures = failures + 1 if self._applied == before else 1
                delay = self._backoff.delay(failures)
                self.problem = str(error)
                _log.warning("etcd watch failed", error=str(error), retry_in=round(delay, 3))
                await self._clock.sleep(delay)

    async def reached(self, revision: int) -> None:
        """Wait until readers see a revision of etcd; `UnavailableError` if it takes too long."""
        if self._applied >= revision:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((revision, future))
        if not await _wait_at_most(self._client.timeout / 4, future):
            # The watched member may lag.
            self._stuck.set()
            if not await _wait_at_most(self._client.timeout, future):
                future.cancel()
                raise UnavailableError(f"no watch on etcd brings revision {revision}")

    async def _follow(self) -> None:
        start, complete = self.resume, False
        watch = self._client.watch(self._keys.start, self._keys.end, start)
        async with aclosing(watch) as responses:
            async for response in responses:
                if response.events and not complete:
                    await self._check_history(start - 1)
                    complete = True
                self.problem = ""
                self._take(response)

    async def _check_history(self, revision: int) -> None:
        """Raise `CompactedHistoryError` if a watch from this revision may miss events.

        etcd rejects a watch that begins before the compacted revision, but not one that begins at
        it, though the deletions of just that revision are gone.
        """
        await self._client.range(
            m.RangeRequest(key=self._keys.tip, keys_only=True, revision=revision)
        )

    def _take(self, response: m.Message) -> None:
        marked = list(self._transactions(response.events))
        self.state.apply(transaction for _, transaction in marked)
        if marked:
            self._applied = marked[-1][1].revision - self.offset
            self.resume = self._applied + 1
        elif not response.created:
            # It reports that there is nothing up to here. Readers do not rely on it, a new watch
            # does: other users of the same etcd must not make a quiet store fall out of its
            # history.
            self.resume = max(self.resume, response.header.revision + 1)
        for mark, transaction in marked:
            self.on_transaction(mark, transaction)
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for revision, future in waiting:
            if revision > self._applied:
                self._waiting.append((revision, future))
            elif not future.done():
                future.set_result(None)

    def _transactions(self, changes: list[m.Message]) -> Iterator[tuple[bytes, Transaction]]:
        """Yield etcd events as transactions, each with the mark of its writer."""
        latest: dict[StoreKey, Record | None] = {}
        for revision, group in groupby(changes, lambda change: change.kv.mod_revision):
            if revision <= self._applied:
                continue
            of_one, visible = list(group), revision + self.offset
            mark = next(
                (change.kv.value for change in of_one if change.kv.key == self._keys.tip), b""
            )
            memo = self.memo(mark)
            events = [
                event
                for change in of_one
                if (event := self._event(change, latest, memo, visible)) is not None
            ]
            yield mark, Transaction(visible, events, tuple(event.record for event in events))

    def _event(
        self,
        change: m.Message,
        latest: dict[StoreKey, Record | None],
        memo: dict[StoreKey, Derived],
        revision: int,
    ) -> Event | None:
        key = self._keys.decode(change.kv.key)
        if key is None:
            return None
        previous = latest[key] if key in latest else self.state.get(key)
        if change.type == m.EVENT_DELETE:
            latest[key] = None
            return None if previous is None else Event("DELETED", previous, previous, revision)
        record = latest[key] = self._record(key, change.kv)
        record.derived = memo.get(key, record.derived)
        return Event("MODIFIED" if previous else "ADDED", record, previous, revision)

    async def _renew(self) -> None:
        """List everything again."""
        try:
            revision = (
                await self._client.range(m.RangeRequest(key=self._keys.tip))
            ).header.revision
            records = await self._read(revision)
        except (UnavailableError, CompactedHistoryError) as error:
            _log.warning("failed to list from etcd", error=str(error))
            await self._clock.sleep(self._backoff.delay(1))
            return
        self.state.reset(records, revision + self.offset)
        self._applied, self.resume = revision, revision + 1
        self.renewed(revision + self.offset)
        self._wake()

    def _record(self, key: StoreKey, kv: m.Message) -> Record:
        created, written = kv.create_revision + self.offset, kv.mod_revision + self.offset
        return Record(key, kv.value, created, written)

    async def _read(self, revision: int) -> list[Record]:
        """Read all objects as they were at a revision, page by page."""
        records: list[Record] = []
        start = self._keys.objects
        while True:
            response = await self._client.range(
                m.RangeRequest(
                    key=start, range_end=self._keys.objects_end, limit=_PAGE, revision=revision
                )
            )
            for kv in response.kvs:
                key = self._keys.decode(kv.key)
                if key is not None:
                    records.append(self._record(key, kv))
            if not response.more:
                return records
            start = response.kvs[-1].key + b"\0"


async def _wait_at_most(seconds: float, future: asyncio.Future[None]) -> bool:
    """Wait for a future with a timeout; report whether it completed."""
    await asyncio.wait([future], timeout=seconds)
    return future.done()
