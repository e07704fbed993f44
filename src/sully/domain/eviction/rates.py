"""How many pods may be evicted per second: a token bucket per taint, and a cap for the cluster.

Only arithmetic, with the time as an argument. Which pods wait for a token is kept by
`evictor/rate_limiter.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from sully.api.resource.eviction_rate import BURST, EvictionRate
from sully.domain.devices.taints import SourcedTaint

__all__ = ["BURST", "EvictionRate"]
MINUTE = timedelta(minutes=1)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class BucketKey(NamedTuple):
    """What shares one bucket: a rule, by its uid, or several that were created together, by group.

    For drivers and patches it is all equal taints. Equal means key, value and effect: times,
    descriptions and data differ from device to device, and a bucket for each device would be no
    limit.
    """

    uid: str = ""
    key: str = ""
    value: str = ""
    effect: str = ""
    group: str = ""

    @property
    def is_rule(self) -> bool:
        """Report whether it is a rule, or several."""
        return bool(self.uid or self.group)


class Limit(NamedTuple):
    """A bucket, and how many tokens it gets."""

    bucket: BucketKey
    rate: EvictionRate


def bucket_key(taint: SourcedTaint) -> BucketKey:
    """Return the bucket from which a taint takes tokens."""
    if taint.origin.kind == "DeviceTaintRule":
        return BucketKey(group=taint.group) if taint.group else BucketKey(uid=taint.origin.uid)
    spec = taint.taint
    return BucketKey(key=spec.key, value=spec.value, effect=spec.effect)


def limits(taints: Iterable[SourcedTaint], *, default: int | None = None) -> tuple[Limit, ...]:
    """Return the limits of which the fastest decides, and all are charged; none: immediately.

    A taint without a rate, and without a default for it, has its pods evicted at any rate, whatever
    else is on their devices.
    """
    limits: dict[Limit, None] = {}
    for taint in taints:
        rate = taint.rate or (EvictionRate(default) if default is not None else None)
        if rate is None:
            return ()
        limits[Limit(bucket_key(taint), rate)] = None
    return tuple(limits)


class Bucket(msgspec.Struct, frozen=True):
    """A token bucket that is refilled at an even rate, up to its burst.

    Its only state is when it will be full again: each token that was taken moves that time by the
    interval of the rate.
    """

    rate: EvictionRate
    full_at: datetime = _LONG_AGO

    @property
    def interval(self) -> timedelta:
        """Return the time between two tokens."""
        return self.rate.interval

    def opens_at(self) -> datetime:
        """Return when the next token is available."""
        if self.full_at == _LONG_AGO:
            return _LONG_AGO
        return self.full_at - (self.rate.burst - 1) * self.interval

    def take(self, now: datetime) -> Bucket:
        """Return the bucket with one token less."""
        return Bucket(self.rate, max(self.full_at, now) + self.interval)

    def put_back(self) -> Bucket:
        """Return the bucket with a token that was taken and not used."""
        return Bucket(self.rate, self.full_at - self.interval)

    def is_full(self, now: datetime) -> bool:
        """Report whether the bucket is full, as a new one is."""
        return self.full_at <= now

    def at_rate(self, rate: EvictionRate, now: datetime) -> Bucket:
        """Return the bucket with as many tokens as it has, but another rate."""
        if rate == self.rate or self.is_full(now) or not self.interval:
            return Bucket(rate, self.full_at)
        missing = (self.full_at - now) / self.interval
        return Bucket(rate, now + missing * rate.interval)


def bucket_after(rate: EvictionRate, times: Iterable[datetime]) -> Bucket:
    """Return the bucket after evictions at these times, also by an earlier process.

    So a controller that restarts does not start with another burst.
    """
    bucket = Bucket(rate)
    for moment in sorted(times):
        bucket = bucket.take(moment)
    return bucket


class Cap:
    """The limit of evictions per minute, for all taints together."""

    def __init__(self, most: int, times: Iterable[datetime] = ()) -> None:
        self._most = most
        # Of the last evictions, the earliest first.
        self._times = deque(sorted(times), maxlen=most)

    def opens_at(self) -> datetime:
        """Return when the next eviction is allowed."""
        return _LONG_AGO if len(self._times) < self._most else self._times[0] + MINUTE

    def take(self, now: datetime) -> None:
        """Count an eviction."""
        while self._times and self._times[0] + MINUTE <= now:
            self._times.popleft()
        self._times.append(now)

    def put_back(self, moment: datetime) -> None:
        """Remove an eviction that was counted at a time and did not happen."""
        if moment in self._times:
            self._times.remove(moment)
