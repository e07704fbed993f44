"""Keeps one TaintRecord for every DeviceTaintRule, from its first sight until after its end.

Reads rules, records and what left because of them; writes only records. What a record says is
`domain/eviction/records.py`. A key is the name of a record, which follows from the rule's name and
uid, so a rule that takes the name of an earlier one has a record of its own. Whatever happened
while nobody looked is noted at the next start: a changed rule by comparison, a missing one as
lifted.
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
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.history.tally import Tally
from sully.domain.eviction.records import (
    EXPIRY,
    close_record,
    follow,
    open_record,
    taint_record_name,
)
from sully.domain.eviction.status import evicted_count as counted_by
from sully.machinery.errors import AlreadyExists
from sully.runtime.clock import Clock
from sully.views.kinds import TAINT_RECORDS

NAME = "taint-history-controller"
BY_RECORD = "record of the rule"
INTERVAL = timedelta(seconds=1)
"""How often at most a growing count is written; a thousand pods may leave in that time."""


class TaintHistoryController:
    """Remembers rules."""

    name = NAME

    def __init__(
        self,
        *,
        rules: Informer[DeviceTaintRule],
        records: Informer[TaintRecord],
        tally: Tally,
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._rules = rules
        self._rules.add_index(BY_RECORD, _record_names)
        self._records = records
        self._tally = tally
        self._transport = transport
        self._clock = clock
        self._counted_at: dict[str, datetime] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for rules, for records, and for pods that left."""
        yield Watch(self._rules, lambda rule: (Key("", name) for name in _record_names(rule)))
        yield Watch(self._records, own_key)
        yield Watch(self._tally, lambda name: (Key("", name),))

    async def reconcile(self, key: Key) -> Result:
        """Bring one record up to date with its rule."""
        record, rule = self._records.get(key), self._rule(key.name)
        if record is not None:
            return await self._update(record, rule)
        if rule is not None:
            await self._open(rule)
        else:
            self._counted_at.pop(key.name, None)
            self._tally.forget(key.name)
        return DONE

    def _rule(self, record: str) -> DeviceTaintRule | None:
        """Return the rule that a record is about, unless it is gone."""
        return next(iter(self._rules.by_index(BY_RECORD, record)), None)

    async def _open(self, rule: DeviceTaintRule) -> None:
        record = open_record(rule, now=self._clock.now())
        try:
            made = await self._transport.create(TAINT_RECORDS, record)
        except AlreadyExists:
            # The cache is behind; the record itself will wake us.
            return
        await self._write(made, record.status)

    async def _update(self, record: TaintRecord, rule: DeviceTaintRule | None) -> Result:
        name, now = record.metadata.name, self._clock.now()
        status = _followed(record.status, rule, now)
        evicted = self._tally.count(name, at_least=status.evicted, told=_told(rule))
        if status == record.status and evicted == status.evicted:
            return DONE
        counted = self._counted_at.get(name)
        if status == record.status and counted is not None and now < counted + INTERVAL:
            return Result(requeue_after=counted + INTERVAL - now)
        self._counted_at[name] = now
        await self._write(record, msgspec.structs.replace(status, evicted=evicted))
        return DONE

    async def _write(self, record: TaintRecord, status: TaintRecordStatus) -> None:
        # With the version that was read: who writes from an old state must lose.
        changed = msgspec.structs.replace(record, status=status)
        await self._transport.update(TAINT_RECORDS, changed, "status")


def _record_names(rule: DeviceTaintRule) -> tuple[str]:
    return (taint_record_name(rule.metadata.name, rule.metadata.uid),)


def _told(rule: DeviceTaintRule | None) -> int:
    """Return how many left by the count of an evictor that leaves no records, and forgets."""
    found = counted_by(rule.status.conditions) if rule is not None else None
    return found.count if found is not None and not found.complete else 0


def _followed(
    status: TaintRecordStatus, rule: DeviceTaintRule | None, now: datetime
) -> TaintRecordStatus:
    if rule is not None:
        return follow(status, rule, now=now)
    if status.deleted_time is not None:
        return status
    ends = expiry({EXPIRES_AT: status.expires_at})
    # Where the server did not say who deleted it.
    return close_record(status, now=now, by=EXPIRY if ends is not None and ends <= now else "")
