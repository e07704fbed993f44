"""Which clusters may be removed from their placements because of their health, per minute.

A hub that loses its network sees all clusters unreachable at the same time. The budget removes a
few and delays the others, so that the fleet does not empty before an administrator reacts. A bucket
of a minute's worth fills at an even rate; a cluster takes one token, whatever number of placements
it is removed from, until it is healthy again. The bucket is a value: `grant` returns the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from sully.machinery.formats.timestamps import later

_MINUTE = 60.0


class RemovalBucket(msgspec.Struct, frozen=True):
    """The remaining budget at a time; a new one is full."""

    per_minute: int
    tokens: float = -1.0
    at: datetime | None = None

    def at_time(self, now: datetime) -> RemovalBucket:
        """Return the bucket as it is by now."""
        if self.at is None or self.tokens < 0:
            return RemovalBucket(self.per_minute, float(self.per_minute), now)
        passed = max((now - self.at).total_seconds(), 0.0)
        filled = min(self.tokens + passed * self.per_minute / _MINUTE, float(self.per_minute))
        return RemovalBucket(self.per_minute, filled, max(now, self.at))

    def next_token(self) -> datetime | None:
        """Return when one more cluster may be removed; None: immediately, or never."""
        if self.at is None or self.per_minute <= 0 or self.tokens >= 1:
            return None
        missing = (1 - self.tokens) * _MINUTE / self.per_minute
        # Rounded up, so that there is a whole token at that time.
        return later(self.at, timedelta(microseconds=int(missing * 1_000_000) + 1))


class Grant(msgspec.Struct, frozen=True):
    """Which clusters may be removed now, which must wait, and until when."""

    granted: tuple[str, ...]
    held: tuple[str, ...]
    bucket: RemovalBucket
    next_at: datetime | None


def grant(bucket: RemovalBucket, removable: Iterable[str], now: datetime) -> Grant:
    """Remove as many clusters as the budget has tokens for, in order of name."""
    bucket = bucket.at_time(now)
    names = sorted(set(removable))
    # A sum of shares can miss a whole number by a rounding error.
    count = min(len(names), int(bucket.tokens + 1e-9))
    bucket = RemovalBucket(bucket.per_minute, max(bucket.tokens - count, 0.0), bucket.at)
    held = tuple(names[count:])
    return Grant(tuple(names[:count]), held, bucket, bucket.next_token() if held else None)


class Removals:
    """The budget in use; without a limit every cluster may be removed."""

    def __init__(self, per_minute: int | None) -> None:
        self._bucket = RemovalBucket(per_minute) if per_minute is not None else None
        self._granted: frozenset[str] = frozenset()

    def copy(self) -> Removals:
        """Return one that can be changed without changing this."""
        other = Removals(None)
        other._bucket, other._granted = self._bucket, self._granted
        return other

    @property
    def limited(self) -> bool:
        """Report whether there is a budget."""
        return self._bucket is not None

    @property
    def granted(self) -> frozenset[str]:
        """Return the clusters that may be removed."""
        return self._granted

    def ask(self, removable: Iterable[str], now: datetime) -> Grant | None:
        """Grant removals, and return which clusters are currently held."""
        waiting = sorted(name for name in removable if name not in self._granted)
        if self._bucket is None or not waiting:
            return None
        granted = grant(self._bucket, waiting, now)
        self._bucket = granted.bucket
        self._granted = self._granted.union(granted.granted)
        return granted

    def recovered(self, name: str) -> None:
        """Note that a cluster is healthy again, so its next removal needs a new token."""
        if name in self._granted:
            self._granted = self._granted.difference((name,))
