"""A store that several processes share: etcd underneath, reads from memory.

    commit ─ plan against newest() ─ pending ─▶ etcd: compare revisions, write, mark the tip
       ▲                                       │ watch
       └── future ◀── State.apply, watchers wake ◀──┘

A revision is etcd's, in some stores plus an offset. Every transaction compares the revision of each
key it writes, whether its caller expected one or not: so it can be applied once only, and sent
again when an answer was lost.
A read first asks etcd for the revision of the tip, which is that of the newest acknowledged write,
and waits until the state in memory has it; concurrent readers share one request. `follower.py`
keeps the state up to date, `pending.py` has writes in flight, `txn.py` builds requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, BinaryIO, TypeVar

from sully.runtime.clock import Clock, SystemClock
from sully.runtime.ids import Ids
from sully.runtime.log import get_logger
from sully.store.base import Commit, Derived, Op, Record, RecordPage, StoreKey
from sully.store.errors import (
    ClosedError,
    ConflictError,
    StoreError,
    UnavailableError,
    UncertainError,
)
from sully.store.etcd import messages as m
from sully.store.etcd.address import Address, Keys
from sully.store.etcd.client import TIMEOUT, Client, CompactedHistoryError, RefusedError
from sully.store.etcd.follower import Follower
from sully.store.etcd.pending import Pending, PendingWrites, follow_up, resolve, wait_all
from sully.store.etcd.txn import Numbers, refusal, tip_in, write_request
from sully.store.memory import ReadSide
from sully.store.transactions import Transaction, plan, validate

T = TypeVar("T")

_log = get_logger("store")

OFFSET = "offset"
"""The shared value: the offset of revisions to those of etcd."""
_UNKNOWN = "unknown whether etcd has applied the write: read before you retry"


class EtcdStore(ReadSide):
    """One process's view of a store in etcd. Make one with `open`."""

    def __init__(self, client: Client, keys: Keys, follower: Follower, ids: Ids) -> None:
        super().__init__(follower.state)
        self._client = client
        self._keys = keys
        self._follower = follower
        self._numbers = Numbers(keys, follower.offset)
        self._pending = PendingWrites(ids.suffix() + ids.suffix())
        self._closed: asyncio.Future[None] | None = None
        self._in_progress: set[asyncio.Future[Any]] = set()
        self._round_task: asyncio.Task[None] | None = None
        self._next_round: asyncio.Task[None] | None = None
        follower.memo, follower.on_transaction = self._memo, self._on_transaction
        follower.renewed = self._renewed
        self._following = asyncio.ensure_future(follower.run())
        self._following.add_done_callback(_report)

    @property
    def problem(self) -> str:
        """Return why this process may be behind the others; empty while it is not."""
        if self._following.done() and self._closed is None:
            return "the etcd watch has stopped"
        return self._follower.problem

    @property
    def shared(self) -> bool:
        """Return True: several processes write."""
        return True

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        call_timeout: float = TIMEOUT,
    ) -> EtcdStore:
        """Connect, list everything and start the watch. Raises `UnavailableError`."""
        clock = clock or SystemClock()
        client = Client(address, clock, call_timeout)
        try:
            keys = Keys(address.prefix)
            follower = Follower(client, keys, clock)
            stored = await client.range(m.RangeRequest(key=keys.shared + OFFSET.encode()))
            follower.offset = int(stored.kvs[0].value) if stored.kvs else 0
            await follower.load()
        except BaseException:
            await client.close()
            raise
        store = cls(client, keys, follower, ids or Ids())
        try:
            await store.catch_up()
        except BaseException:
            await store.close()
            raise
        return store

    # -- reading ---------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        """Wait until all writes acknowledged before this call are visible here."""
        self._check_open()
        if self._next_round is None:
            # A request in progress may have been answered before this call.
            self._next_round = asyncio.ensure_future(self._round(self._round_task))
            self._next_round.add_done_callback(_retrieve)
        next_round = self._next_round
        try:
            await asyncio.shield(next_round)
        except asyncio.CancelledError:
            if not next_round.cancelled():
                raise
            raise ClosedError("the store is closed") from None

    async def _round(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        self._round_task, self._next_round = self._next_round, None
        await self._follower.reached(await self._follower.tip())

    async def get(self, key: StoreKey) -> Record | None:
        """Return the newest acknowledged state of a key."""
        await self.catch_up()
        return self._state.get(key)

    async def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        at: int | None = None,
        start: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> RecordPage:
        """Return the records of a resource, or of one namespace of it, in order."""
        if at is None or at > self._state.revision:
            await self.catch_up()
        return await super().list(resource, namespace, at=at, start=start, limit=limit)

    def newest(self, key: StoreKey) -> Record | None:
        """Return the newest state, including writes that are accepted but not yet durable."""
        return self._pending.newest(key, self._state.get(key))

    async def agree(self, name: str, value: bytes) -> bytes:
        """Store a value that all processes must share; return that of the first process."""
        self._check_open()
        return await asyncio.shield(self._begin(self._agree(name, value)))

    async def _agree(self, name: str, value: bytes) -> bytes:
        key = self._keys.shared + name.encode()
        request = m.TxnRequest(
            compare=[m.Compare(target=m.COMPARE_MOD, key=key, mod_revision=0)],
            success=[m.RequestOp(request_put=m.PutRequest(key=key, value=value))],
            failure=[m.RequestOp(request_range=m.RangeRequest(key=key))],
        )
        response, _ = await self._client.txn(request)
        if response.succeeded:
            return value
        stored: bytes = response.responses[0].response_range.kvs[0].value
        return stored

    # -- writing ---------------------------------------------------------------------------------

    async def commit(self, ops: Sequence[Op]) -> Commit:
        """Apply all operations at one new revision, or none of them."""
        validate(ops)
        while True:
            self._check_open()
            try:
                planned = plan(ops, self.newest, revision=self._pending.next_number)
            except ConflictError:
                planned = None
            if planned is not None and planned.events:
                return await self._accept(ops, planned)
            # Decide on what is durable everywhere, before it is reported.
            await self._pending.wait_settled(ops)
            await self.catch_up()
            resolved = plan(ops, self._state.get, revision=0)
            if not resolved.events:
                return Commit(self._state.revision, resolved.records)

    async def _accept(self, ops: Sequence[Op], planned: Transaction) -> Commit:
        pending = self._pending.add(ops, planned)
        # Not cancelled: later writes may already build on it.
        self._begin(self._write(pending))
        return await asyncio.shield(pending.done)

    def _begin(self, change: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Start a change of etcd; `close` waits for it in any case."""
        task = asyncio.ensure_future(change)
        self._in_progress.add(task)
        task.add_done_callback(self._in_progress.discard)
        task.add_done_callback(_retrieve)
        return task

    async def _write(self, pending: Pending) -> None:
        try:
            await wait_all(pending.before)
            if not pending.done.done():
                await self._send(pending, resolve(pending))
        except StoreError as error:
            self._fail(pending, error)
        except BaseException:
            self._fail(pending, UnavailableError("the store was stopped"))
            raise

    async def _send(self, pending: Pending, ops: Sequence[Op]) -> None:
        """Write until etcd has decided; the watch delivers the result."""
        uncertain = False
        while not pending.done.done():
            request = write_request(self._numbers, ops, self._state.get, pending.ident)
            try:
                response, retry = await self._client.txn(request)
            except UnavailableError as error:
                if isinstance(error, RefusedError) and not (uncertain or error.uncertain):
                    raise refusal(error, ops) from error
                await self._await_delivery(pending)
                raise UncertainError(f"{_UNKNOWN} ({error})") from error
            uncertain = uncertain or retry
            if response.succeeded:
                pending.revision = response.header.revision + self._follower.offset
                await self._wait_visible(response.header.revision, uncertain=True)
                # If the state was listed again meanwhile, the watch did not deliver it.
                self._succeed(pending, pending.revision, {})
                return
            await self._wait_visible(tip_in(response), uncertain=uncertain)
            if not pending.done.done():
                self._resolve(ops, uncertain=uncertain)

    async def _wait_visible(self, revision: int, *, uncertain: bool) -> None:
        """Wait until the watch has reached a revision."""
        try:
            await self._follower.reached(revision)
        except UnavailableError as error:
            if uncertain:
                raise UncertainError(f"{_UNKNOWN} ({error})") from error
            raise

    def _resolve(self, ops: Sequence[Op], *, uncertain: bool) -> None:
        """Raise if the state that etcd compared with contradicts an expectation."""
        try:
            plan(ops, self._state.get, revision=0)
        except ConflictError:
            if uncertain:
                # A response was lost, and its content cannot be reconstructed.
                raise UncertainError(_UNKNOWN) from None
            raise

    async def _await_delivery(self, pending: Pending) -> None:
        """Wait briefly for the watch to deliver what the lost response contained."""
        await asyncio.wait([pending.done], timeout=self._client.timeout / 10)

    # -- what the watch delivers ---------------------------------------------------------------

    def _memo(self, mark: bytes) -> dict[StoreKey, Derived]:
        pending = self._pending.by_ident.get(mark)
        return {} if pending is None else pending.derived

    def _on_transaction(self, mark: bytes, transaction: Transaction) -> None:
        pending = self._pending.by_ident.get(mark)
        if pending is None:
            return
        records = {event.record.key: event.record for event in transaction.events}
        self._succeed(pending, transaction.revision, records)

    def _renewed(self, revision: int) -> None:
        """Complete what etcd acknowledged and the watch will never deliver."""
        for pending in list(self._pending.by_ident.values()):
            if 0 < pending.revision <= revision:
                self._succeed(pending, pending.revision, {})

    def _succeed(self, pending: Pending, revision: int, records: dict[StoreKey, Record]) -> None:
        if pending.done.done():
            return
        self._pending.remove(pending)
        pending.revision = revision
        results = (
            records[op.key] if op.key in records else self._state.get(op.key) for op in pending.ops
        )
        pending.done.set_result(Commit(revision, tuple(results)))

    def _fail(self, pending: Pending, error: StoreError) -> None:
        """Fail a transaction, and all that build on it."""
        failed = [(pending, error)]
        while failed:
            pending, error = failed.pop()
            if pending.done.done():
                continue
            self._pending.remove(pending)
            pending.done.set_exception(error)
            # Its caller may be cancelled.
            pending.done.exception()
            for other, op in self._pending.built_on(pending):
                failed.append((other, follow_up(op, error, self._state.get(op.key))))

    # -- history and the end ---------------------------------------------------------------------

    async def compact(self, revision: int) -> None:
        """Compact the history up to and including this revision; current records stay."""
        self._check_open()
        if revision > self._state.revision:
            await self.catch_up()
        before = self.compacted
        self._state.compact(revision)
        if revision <= before:
            return
        try:
            compaction = self._client.compact(self._numbers.at_etcd(revision))
            await asyncio.shield(self._begin(compaction))
        except CompactedHistoryError:
            return  # another process has compacted

    async def snapshot(self) -> BinaryIO:
        """Fail: use the snapshots of etcd."""
        raise UnavailableError(
            "the data is in etcd: `etcdctl snapshot save FILE` backs it up, and"
            " `sully migrate` copies it into a data directory"
        )

    async def close(self) -> None:
        """Finish what was accepted, wake every waiter, release everything."""
        if self._closed is None:
            self._closed = asyncio.ensure_future(self._close())
        # Others may wait for the end too.
        await asyncio.shield(self._closed)

    async def _close(self) -> None:
        if self._in_progress:
            await asyncio.wait(list(self._in_progress))
        rounds = [
            request for request in (self._round_task, self._next_round) if request is not None
        ]
        for task in (*rounds, self._following):
            task.cancel()
        await asyncio.gather(*rounds, self._following, return_exceptions=True)
        self._state.close()
        await self._client.close()

    def _check_open(self) -> None:
        if self._closed is not None:
            raise ClosedError("the store is closed")


def _report(following: asyncio.Task[None]) -> None:
    """Log why the watch stopped."""
    error = None if following.cancelled() else following.exception()
    if error is not None:
        _log.error("etcd watch stopped", exc_info=error)


def _retrieve(task: asyncio.Future[Any]) -> None:
    """Retrieve an exception whose waiter may be gone."""
    if not task.cancelled():
        task.exception()


async def begin_at(address: Address, revision: int) -> None:
    """Set the first revision of an empty store.

    For a store that replaces another one: its revisions must not be reused.
    """
    async with await EtcdStore.open(address) as store:
        if store.revision < revision:
            stored = await store.agree(OFFSET, str(revision).encode())
            if int(stored) < revision:
                raise UnavailableError(
                    f"{address} was used before and cannot continue from revision {revision}:"
                    " use another prefix"
                )
