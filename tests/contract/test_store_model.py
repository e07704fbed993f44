"""Random histories: every store must agree with a model that keeps a copy of each revision."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)
from msgspec.structs import replace

from etcds import Etcd
from property_examples import examples
from sully.store.base import (
    FIRST_REVISION,
    Check,
    Commit,
    Delete,
    Event,
    Op,
    Put,
    Record,
    Store,
    StoreKey,
    Subscription,
)
from sully.store.errors import (
    CompactedError,
    ConflictError,
    DuplicateKeyError,
    FutureRevisionError,
    StoreError,
)
from sully.store.etcd.store import EtcdStore
from sully.store.memory import MemoryStore
from sully.store.sqlite.store import SqliteStore

RESOURCES = ("nodes", "pods")
NAMESPACES = ("a", "a-1", "b")
KEYS = [StoreKey(r, n, name) for r in RESOURCES for n in NAMESPACES for name in ("x", "y")]

Shape = tuple[StoreKey, bytes, int, int]
Change = tuple[str, Shape, Shape | None, int]


def shape(record: Record) -> Shape:
    return record.key, record.value, record.create_revision, record.revision


def change(event: Event) -> Change:
    previous = shape(event.previous) if event.previous else None
    return event.kind, shape(event.record), previous, event.revision


@dataclass
class Model:
    """The simplest store that could be right."""

    revision: int = FIRST_REVISION
    compacted: int = FIRST_REVISION
    states: dict[int, dict[StoreKey, Shape]] = field(default_factory=lambda: {FIRST_REVISION: {}})
    changes: list[Change] = field(default_factory=list)

    @property
    def now(self) -> dict[StoreKey, Shape]:
        return self.states[self.revision]

    def commit(self, ops: list[Op]) -> int | type[StoreError]:
        written = [op.key for op in ops if not isinstance(op, Check)]
        if len(set(written)) < len(written):
            return DuplicateKeyError
        for op in ops:
            result = self.now[op.key][3] if op.key in self.now else 0
            if op.expect not in (None, result) or (isinstance(op, Delete) and not result):
                return ConflictError
        if not written:
            return self.revision
        state = dict(self.now)
        revision = self.revision + 1
        for op in ops:
            old = state.get(op.key)
            if isinstance(op, Put):
                new = (op.key, op.value, old[2] if old else revision, revision)
                self.changes.append(("MODIFIED" if old else "ADDED", new, old, revision))
                state[op.key] = new
            elif isinstance(op, Delete):
                assert old is not None
                self.changes.append(("DELETED", old, old, revision))
                del state[op.key]
        self.revision = revision
        self.states[revision] = state
        return revision

    def select(self, at: int, resource: str, namespace: str | None) -> list[Shape]:
        state = self.states[at]
        return [
            state[key]
            for key in sorted(state)
            if key.resource == resource and namespace in (None, key.namespace)
        ]


@dataclass
class Watching:
    subscription: Subscription
    resource: str
    namespace: str | None
    after: int
    gone: bool = False

    def resume(self, store: Store) -> None:
        """Watch another store from where this one was left, as a client does."""
        if self.after < store.compacted:
            self.gone = True
        else:
            self.subscription = store.watch(self.resource, self.namespace, after=self.after)


@dataclass(frozen=True)
class Draft:
    """An operation before its expectation is known: that depends on the state."""

    key: StoreKey
    kind: str
    expect: str
    value: bytes

    def op(self, model: Model) -> Op:
        current = model.now[self.key][3] if self.key in model.now else 0
        expect = {"any": None, "right": current, "none": 0, "wrong": current + 1}[self.expect]
        if self.kind == "put":
            return Put(self.key, self.value, expect)
        if self.kind == "delete":
            return Delete(self.key, expect)
        return Check(self.key, current if expect is None else expect)


drafts = st.builds(
    Draft,
    key=st.sampled_from(KEYS),
    kind=st.sampled_from(["put", "put", "delete", "check"]),
    expect=st.sampled_from(["any", "right", "right", "none", "wrong"]),
    value=st.binary(max_size=4),
)
transactions = st.lists(drafts, min_size=1, max_size=4)
namespaces = st.none() | st.sampled_from(NAMESPACES)


class StoreMachine(RuleBasedStateMachine):
    """Does the same to a store and to the model."""

    watches = Bundle("watches")

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.model = Model()
        self.watching: list[Watching] = []
        self.store = self.runner.run(self.make())

    async def make(self) -> Store:
        return MemoryStore()

    async def commit_all(self, planned: list[list[Op]]) -> list[Commit | BaseException]:
        return await asyncio.gather(*map(self.store.commit, planned), return_exceptions=True)

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()
        shutil.rmtree(self.directory)

    @rule(batch=st.lists(transactions, min_size=1, max_size=5))
    def commit(self, batch: list[list[Draft]]) -> None:
        """Commit transactions at the same time; they are judged in the order they came."""

        async def run() -> list[Commit | BaseException]:
            return await self.commit_all(planned)

        planned, want = [], []
        for transaction in batch:
            ops = [draft.op(self.model) for draft in transaction]
            planned.append(ops)
            want.append(self.model.commit(ops))

        got = self.runner.run(run())

        assert [
            item.revision if isinstance(item, Commit) else type(item) for item in got
        ] == want, got

    @rule(
        resource=st.sampled_from(RESOURCES),
        namespace=namespaces,
        back=st.integers(-1, 12),
        start=st.none() | st.sampled_from(KEYS),
        limit=st.none() | st.integers(1, 4),
    )
    def list(
        self,
        resource: str,
        namespace: str | None,
        back: int,
        start: StoreKey | None,
        limit: int | None,
    ) -> None:
        at = self.model.revision - back
        listing = self.store.list(
            resource, namespace, at=at, start=start and start[1:], limit=limit
        )
        if not self.model.compacted <= at <= self.model.revision:
            self.refuses(at, listing)
            return
        want = self.model.select(at, resource, namespace)
        if start is not None:
            want = [item for item in want if item[0][1:] > start[1:]]

        page = self.runner.run(listing)

        assert [shape(record) for record in page.records] == want[:limit]
        assert (page.revision, page.remaining) == (at, len(want[limit:]) if limit else 0)

    def refuses(self, at: int, attempt: Coroutine[Any, Any, object]) -> None:
        error = CompactedError if at < self.model.compacted else FutureRevisionError
        try:
            self.runner.run(attempt)
        except error:
            return
        raise AssertionError(f"revision {at} was not refused")

    @rule(
        target=watches,
        resource=st.sampled_from(RESOURCES),
        namespace=namespaces,
        back=st.integers(-1, 12),
    )
    def watch(self, resource: str, namespace: str | None, back: int) -> object:
        async def run() -> Subscription:
            return self.store.watch(resource, namespace, after=after)

        after = self.model.revision - back
        if not self.model.compacted <= after <= self.model.revision:
            self.refuses(after, run())
            return multiple()
        watching = Watching(self.runner.run(run()), resource, namespace, after)
        self.watching.append(watching)
        return watching

    @rule(watching=watches)
    def take(self, watching: Watching) -> None:
        if watching.gone:
            return
        missed = [
            change
            for change in self.model.changes
            if change[1][0].resource == watching.resource and change[3] > watching.after
        ]
        before = watching.subscription.progress
        assert all(item[3] > before for item in missed)
        if any(item[3] <= self.model.compacted for item in missed):
            try:
                watching.subscription.take()
            except CompactedError:
                return
            raise AssertionError("compacted events were not reported")

        got = [change(event) for event in watching.subscription.take()]

        assert got == [
            item for item in missed if watching.namespace in (None, item[1][0].namespace)
        ]
        watching.after = self.model.revision
        assert watching.subscription.progress == self.model.revision

    @rule(watching=consumes(watches))
    def unwatch(self, watching: Watching) -> None:
        watching.subscription.close()
        self.watching.remove(watching)

    @rule(back=st.integers(0, 8))
    def compact(self, back: int) -> None:
        revision = max(FIRST_REVISION, self.model.revision - back)
        self.runner.run(self.store.compact(revision))
        self.model.compacted = max(self.model.compacted, revision)

    @invariant()
    def agrees(self) -> None:
        assert (self.store.revision, self.store.compacted) == (
            self.model.revision,
            self.model.compacted,
        )
        for key in KEYS:
            record = self.runner.run(self.store.get(key))
            assert record is self.store.newest(key)
            assert (record and shape(record)) == self.model.now.get(key)


class ReopenedMachine(StoreMachine):
    """Also closes and opens the store; those who watch resume where they were."""

    @rule()
    def reopen(self) -> None:
        async def run() -> None:
            await self.store.close()
            self.store = await self.make()
            for watching in self.watching:
                watching.resume(self.store)

        self.runner.run(run())


class SqliteMachine(ReopenedMachine):
    async def make(self) -> Store:
        return await SqliteStore.open(self.directory)


class EtcdMachine(ReopenedMachine):
    """One after the other: etcd numbers what comes at the same time as it likes.

    Every example has an etcd of its own, because it counts revisions from the first, and a prefix
    of its own, so that it cannot take what another wrote for something else than a foreign key.
    """

    numbers = count()

    def __init__(self) -> None:
        self.etcd = Etcd()
        self.etcd.__enter__()
        self.address = replace(self.etcd.address, prefix=f"/example-{next(self.numbers)}")
        super().__init__()

    async def make(self) -> Store:
        return await EtcdStore.open(self.address)

    async def commit_all(self, planned: list[list[Op]]) -> list[Commit | BaseException]:
        return [
            (await asyncio.gather(self.store.commit(ops), return_exceptions=True))[0]
            for ops in planned
        ]

    def teardown(self) -> None:
        super().teardown()
        self.etcd.__exit__(None, None, None)


TestMemory = StoreMachine.TestCase
TestMemory.settings = settings(max_examples=examples(100), stateful_step_count=40)
TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = settings(max_examples=examples(25), stateful_step_count=30)
TestEtcd = pytest.mark.slow(EtcdMachine.TestCase)
TestEtcd.settings = settings(max_examples=10, stateful_step_count=30)
