"""Several writes in one transaction: each is decided on what those before it changed.

A `StagedWriter` takes the place of the `ObjectWriter` for one transaction. Writes go through the
same steps, but commit to a `StagedStore`, which only keeps them. `commit` then writes all of them
at one revision, so watchers see of each object the last state, and after a crash there are all of
them or none. Only an object that is changed and then removed takes a second transaction after it:
its last state is part of history.
"""

from collections.abc import Iterator, Sequence

from sully.machinery.errors import Conflict
from sully.machinery.serialization.codec import to_json
from sully.machinery.strategy import Obj
from sully.server.admission.devices import DeviceAdmission
from sully.server.admission.plugins import AdmissionChain
from sully.server.registry.bodies.body import check_values
from sully.server.registry.writes import ObjectWriter, WritableStore, without_version
from sully.store.base import Check, Commit, Delete, Op, Put, Record, RecordPage, StoreKey
from sully.store.errors import ConflictError
from sully.store.transactions import plan

STAGED = -(1 << 62)
"""The revision of a state that is not committed; a store may use small negative ones."""


class _StagedRecord(Record):
    """A state that is encoded only if it is the last one, or is read."""

    __slots__ = ()

    @property
    def value(self) -> bytes:
        return super().value or to_json(self.derived["bare"])


class StagedStore:
    """What a transaction changes, over the store."""

    def __init__(self, store: WritableStore) -> None:
        self._store = store
        self.clear()

    def clear(self) -> None:
        """Forget what is staged."""
        self._records: dict[StoreKey, Record | None] = {}
        self._steps: list[dict[StoreKey, Op]] = [{}]
        """Transactions that follow each other; nearly always one."""

    @property
    def shared(self) -> bool:
        """Report whether other processes may write."""
        return self._store.shared

    def newest(self, key: StoreKey) -> Record | None:
        """Return the newest state, including what is staged."""
        return self._records[key] if key in self._records else self._store.newest(key)

    async def catch_up(self) -> None:
        """Wait until everything is visible that was acknowledged."""
        await self._store.catch_up()

    async def list(self, resource: str, namespace: str | None = None) -> RecordPage:
        """Return records without what is staged."""
        return await self._store.list(resource, namespace)

    def put(self, key: StoreKey, bare: Obj, expect: int) -> Record:
        """Stage an object, which is not encoded yet."""
        before = self.newest(key)
        if expect != (0 if before is None else before.revision):
            raise ConflictError(key, expect=expect, current=before)
        return self._put(Put(key, b"", expect, {"bare": bare}), before)

    async def commit(self, ops: Sequence[Op]) -> Commit:
        """Stage operations."""
        return Commit(STAGED, tuple(map(self._staged, ops)))

    def _staged(self, op: Op) -> Record | None:
        before = self.newest(op.key)
        plan((op,), lambda _: before, revision=STAGED)
        if isinstance(op, Put):
            return self._put(op, before)
        if isinstance(op, Check):
            self._steps[-1].setdefault(op.key, op)
        else:
            if isinstance(self._steps[-1].get(op.key), Put):
                # Watchers get the last state before its deletion.
                self._steps.append({})
            self._steps[-1][op.key], self._records[op.key] = op, None
        return before

    def _put(self, op: Put, before: Record | None) -> Record:
        key, earlier = op.key, self._steps[-1].get(op.key)
        if isinstance(earlier, Delete):
            self._steps.append({})
        elif earlier is not None:
            op.expect = earlier.expect
        self._steps[-1][key] = op
        created = STAGED if before is None else before.create_revision
        # Its memo is not that of the record to come, which has another revision.
        record = _StagedRecord(key, op.value, created, STAGED, dict(op.derived or {}))
        self._records[key] = record
        return record

    def steps(self) -> Iterator[Sequence[Op]]:
        """Yield the operations of the transactions that follow each other."""
        yield from (tuple(step.values()) for step in self._steps if step)


class StagedWriter(ObjectWriter):
    """Runs writes that are committed together."""

    def __init__(self, writer: ObjectWriter) -> None:
        self.__dict__.update(writer.__dict__)
        self._writer = writer
        self.staged = StagedStore(writer.store)
        self.store = self.staged
        self.quotas = writer.quotas.over(self.staged)
        self.admission = AdmissionChain(
            [
                plugin.over(self.staged) if isinstance(plugin, DeviceAdmission) else plugin
                for plugin in writer.admission.plugins
            ]
        )

    async def put(self, key: StoreKey, obj: Obj, expect: int, *extra: Op) -> Record:
        """Stage an object, which is encoded when it is committed."""
        if extra:
            await self.commit(list(extra))
        return self.staged.put(key, without_version(obj), expect)

    async def commit(self, ops: list[Op]) -> Commit:
        """Stage operations."""
        return await self.staged.commit(ops)

    async def commit_staged(self) -> None:
        """Write everything that is staged."""
        written: dict[StoreKey, int] = {}
        for step in self.staged.steps():
            ops = [self._final(op, written) for op in step]
            try:
                commit = await self._writer.commit(ops)
            except ConflictError as error:
                raise Conflict(f"{error.key} was changed by another client") from error
            written |= {op.key: commit.revision for op in ops}

    def _final(self, op: Op, written: dict[StoreKey, int]) -> Op:
        """Return an operation as the store takes it."""
        if op.expect == STAGED:
            op.expect = written[op.key]
        if not isinstance(op, Put) or op.value or op.derived is None:
            return op
        bare: Obj = op.derived["bare"]
        op.value = to_json(bare)
        stored = self.objects.scheme.stored(op.key.resource)
        if stored is not None:
            check_values(stored, bare, len(op.value))
        return op
