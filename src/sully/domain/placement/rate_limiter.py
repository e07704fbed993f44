"""How often a placement may change its clusters: ten times in a row, and then once a second.

A placement looks again when its decisions were written, because others may have moved meanwhile.
One that would rather have other clusters whatever it has (`Steady` with a weight below nothing)
would change indefinitely, as fast as the hub can write. What it wants in between is not lost: the
next look sees all of it.
"""

from __future__ import annotations

from datetime import datetime

from sully.domain.eviction.rates import Bucket, EvictionRate
from sully.domain.placement.incremental.decision_counts import PlacementKey

_RATE = EvictionRate(1)


class RateLimiter:
    """How often placements have changed recently."""

    def __init__(self) -> None:
        self._buckets: dict[PlacementKey, Bucket] = {}

    def hold(self, key: PlacementKey, now: datetime) -> datetime | None:
        """Note that a placement changes; if it has to wait, return until when instead."""
        bucket = self._buckets.get(key, Bucket(_RATE))
        if bucket.opens_at() > now:
            return bucket.opens_at()
        self._buckets[key] = bucket.take(now)
        return None

    def forget(self, key: PlacementKey) -> None:
        """Forget a deleted placement."""
        self._buckets.pop(key, None)
