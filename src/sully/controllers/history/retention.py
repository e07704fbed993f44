"""Deletes records when their retention time is over: of evictions, and of deleted rules.

Each record is requeued for its own time, so no search for expired records is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from sully.api.sully.types import TaintRecord
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import uid_of, version_of
from sully.client.options import DeleteOptions
from sully.client.transport import Key, Transport
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.domain.eviction.partial_records import PartialEvictionRecord
from sully.machinery.errors import NotFound
from sully.machinery.formats.timestamps import later
from sully.runtime.clock import Clock

T = TypeVar("T")

DEFAULT_RETENTION = timedelta(days=30)


class RetentionController(Generic[T]):
    """Deletes expired records of one kind."""

    name = "taint-history-retention"

    def __init__(
        self,
        records: Informer[T],
        since: Callable[[T], datetime | None],
        *,
        transport: Transport,
        clock: Clock,
        keep: timedelta = DEFAULT_RETENTION,
    ) -> None:
        self._records = records
        self.name = f"{RetentionController.name}-{records.kind.plural}"
        self._since = since
        self._transport = transport
        self._clock = clock
        self._keep = keep

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for each record."""
        yield Watch(self._records, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Delete a record that is expired, or requeue it for when it will be."""
        record = self._records.get(key)
        since = self._since(record) if record is not None else None
        if since is None:
            return DONE
        remaining = later(since, self._keep) - self._clock.now()
        if remaining > timedelta(0):
            return Result(requeue_after=remaining)
        preconditions = DeleteOptions(uid=uid_of(record), resource_version=version_of(record))
        try:
            await self._transport.delete(self._records.kind, key, preconditions)
        except NotFound:
            return DONE
        return DONE


def evicted_since(record: PartialEvictionRecord) -> datetime | None:
    """Return the time of an eviction."""
    return record.spec.evicted_time


def deletion_time(record: TaintRecord) -> datetime | None:
    """Return when a rule was deleted; the record of an existing one does not expire."""
    return record.status.deleted_time
