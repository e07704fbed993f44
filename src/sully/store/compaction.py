"""How much history a store keeps: long enough for slow readers, and bounded.

A client that pages through a list or reconnects a watch needs the events since it last looked,
so they are kept for some minutes, as Kubernetes keeps them. In a storm of writes memory matters
more: then their number and size decide. `app.py` runs one `Compactor` per store.
"""

from __future__ import annotations

from collections import deque

import msgspec

from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.store.base import Store
from sully.store.errors import UnavailableError

_log = get_logger("store")


class Retention(msgspec.Struct, frozen=True):
    """What may be forgotten."""

    seconds: float = 300.0
    """Events stay at least this long, unless there are too many of them."""
    events: int = 50_000
    """Never keep more, however young they are."""
    size: int = 256 << 20
    """The maximum of bytes of values, without what others derive from them."""
    interval: float = 5.0
    """How often to look; history exceeds the bounds by at most what happens in between."""


class Compactor:
    """Compacts a store by age, number and size of events."""

    def __init__(self, store: Store, clock: Clock, retention: Retention | None = None) -> None:
        self._store = store
        self._clock = clock
        self._retention = retention or Retention()
        # When which revision was the newest. The store does not date its events, and
        # for this purpose the interval is precise enough.
        self._seen: deque[tuple[float, int]] = deque()

    async def run(self) -> None:
        """Compact until cancelled."""
        while True:
            try:
                await self.compact()
            except UnavailableError as error:
                # A full disk must not end the control plane; the next round retries.
                _log.warning("compaction failed", error=str(error))
            await self._clock.sleep(self._retention.interval)

    async def compact(self) -> None:
        """Forget what the retention allows to forget now."""
        now = self._clock.monotonic()
        self._seen.append((now, self._store.revision))
        keep = self._retention
        target = self._store.horizon(events=keep.events, size=keep.size)
        while self._seen and self._seen[0][0] <= now - keep.seconds:
            target = max(target, self._seen.popleft()[1])
        if target > self._store.compacted:
            await self._store.compact(target)
