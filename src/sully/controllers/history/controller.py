"""Keeps one TaintRecord for every DeviceTaintRule, also after the rule is deleted.

Reads rules and records of evictions; writes TaintRecords, whose content is
`domain/eviction/records.py`. A key is the name of a record, which is derived from the rule's name
and uid, so a recreated rule has a record of its own. What changed while the controller did not run
is recorded at the next start: a changed rule by comparison, a missing one as deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sully.api.resource.annotations import EXPIRES_AT, expiry
from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import TaintRecord, TaintRecordStatus
from sully.client.informers.informer import Informer, own_key
from sully.client.transport import Key, Transport
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.sources import Channel, same_key
from sully.domain.claims.pods import still_runs
from sully.domain.eviction.partial_records import PartialEvictionRecord
from sully.domain.eviction.records import (
    EXPIRY,
    close_record,
    follow,
    open_record,
    taint_record_name,
)
from sully.domain.eviction.status import evicted_count
from sully.domain.scheduling.objects import Pod
from sully.machinery.errors import AlreadyExists
from sully.runtime.clock import Clock
from sully.views.kinds import TAINT_RECORDS

NAME = "taint-history-controller"
BY_RECORD = "record of the rule"
INTERVAL = timedelta(seconds=1)
"""The least time between two writes of a count; a thousand pods may be evicted in it."""


class _Count(msgspec.Struct):
    existing: int = 0
    """Records that exist."""
    deleted: int = 0
    """Records that existed; a lower bound."""
    restored: bool = False
    """Whether `deleted` includes what was counted before the start."""


class EvictionCounts(Channel[Key]):
    """The number of evictions of each rule: a source of the keys of TaintRecords.

    A count does not decrease when a record expires or is deleted with its namespace, but when it is
    withdrawn, because the pod keeps running.
    """

    def __init__(self, evictions: Informer[PartialEvictionRecord], pods: Informer[Pod]) -> None:
        super().__init__(lambda: self._counts)
        self._pods = pods
        self._counts: dict[Key, _Count] = {}
        evictions.on_change(self._changed)

    def count(self, record: Key, *, at_least: int, reported: int = 0) -> int:
        """Return the number of evictions, at least what was counted before the start.

        What an evictor reports that writes no records is kept when it reports less after a restart.
        """
        count = self._counts.setdefault(record, _Count())
        if not count.restored:
            count.restored = True
            reported = max(reported, at_least)
        count.deleted += max(0, reported - count.existing - count.deleted)
        return count.existing + count.deleted

    def forget(self, record: Key) -> None:
        """Forget the count of a rule whose record is deleted."""
        self._counts.pop(record, None)

    def _changed(
        self, old: PartialEvictionRecord | None, new: PartialEvictionRecord | None
    ) -> None:
        eviction = new or old
        if eviction is None or (old is not None and new is not None):
            # Evictions are immutable.
            return
        for record in {_record_key(rule.name, rule.uid) for rule in eviction.rules()}:
            count = self._counts.setdefault(record, _Count())
            count.existing += 1 if new is not None else -1
            if new is None and not self._still_runs(eviction):
                count.deleted += 1
            self.send(record)

    def _still_runs(self, eviction: PartialEvictionRecord) -> bool:
        """Report whether the pod of a deleted record was not evicted after all."""
        pod = self._pods.get(Key(eviction.metadata.namespace, eviction.spec.pod.name))
        return still_runs(pod, eviction.metadata.name)


class TaintHistoryController:
    """Keeps the records of rules."""

    name = NAME

    def __init__(
        self,
        *,
        rules: Informer[DeviceTaintRule],
        records: Informer[TaintRecord],
        evictions: EvictionCounts,
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._rules = rules
        self._rules.add_index(BY_RECORD, lambda rule: (_key_of(rule).name,))
        self._records = records
        self._evictions = evictions
        self._transport = transport
        self._clock = clock
        self._written_at: dict[Key, datetime] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for rules, for records, and for evictions."""
        yield Watch(self._rules, lambda rule: (_key_of(rule),))
        yield Watch(self._records, own_key)
        yield Watch(self._evictions, same_key)

    async def reconcile(self, key: Key) -> Result:
        """Update one record from its rule."""
        record, rule = self._records.get(key), self._rule(key)
        if record is not None:
            return await self._update(key, record, rule)
        if rule is not None:
            await self._create(rule)
        else:
            self._written_at.pop(key, None)
            self._evictions.forget(key)
        return DONE

    def _rule(self, record: Key) -> DeviceTaintRule | None:
        """Return the rule of a record; None if it is deleted."""
        return next(iter(self._rules.by_index(BY_RECORD, record.name)), None)

    async def _create(self, rule: DeviceTaintRule) -> None:
        record = open_record(rule, now=self._clock.now())
        try:
            created = await self._transport.create(TAINT_RECORDS, record)
        except AlreadyExists:
            # The cache is behind; the record is about to be enqueued.
            return
        await self._write(created, record.status)

    async def _update(self, key: Key, record: TaintRecord, rule: DeviceTaintRule | None) -> Result:
        now = self._clock.now()
        status = _next_status(record.status, rule, now)
        reported = _reported_count(rule)
        evicted = self._evictions.count(key, at_least=status.evicted, reported=reported)
        if status == record.status and evicted == status.evicted:
            return DONE
        written = self._written_at.get(key)
        if status == record.status and written is not None and now < written + INTERVAL:
            return Result(requeue_after=written + INTERVAL - now)
        self._written_at[key] = now
        await self._write(record, msgspec.structs.replace(status, evicted=evicted))
        return DONE

    async def _write(self, record: TaintRecord, status: TaintRecordStatus) -> None:
        # With the resourceVersion that was read, so that a write from an old state conflicts.
        changed = msgspec.structs.replace(record, status=status)
        await self._transport.update(TAINT_RECORDS, changed, "status")


def _key_of(rule: DeviceTaintRule) -> Key:
    return _record_key(rule.metadata.name, rule.metadata.uid)


def _record_key(rule: str, uid: str) -> Key:
    return Key("", taint_record_name(rule, uid))


def _reported_count(rule: DeviceTaintRule | None) -> int:
    """Return the evictions that an evictor reports that writes no records and restarts at 0."""
    evicted = evicted_count(rule.status.conditions) if rule is not None else None
    return evicted.count if evicted is not None and not evicted.complete else 0


def _next_status(
    status: TaintRecordStatus, rule: DeviceTaintRule | None, now: datetime
) -> TaintRecordStatus:
    if rule is not None:
        return follow(status, rule, now=now)
    if status.deleted_time is not None:
        return status
    expires_at = expiry({EXPIRES_AT: status.expires_at})
    expired = expires_at is not None and expires_at <= now
    # The server did not record who deleted it.
    return close_record(status, now=now, by=EXPIRY if expired else "")
