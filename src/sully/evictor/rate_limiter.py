"""How many pods may be evicted now: the rates of taints, and the limit for the whole cluster.

Each limit has a queue of pods. Only its first pod has to wait for a time; a pod that gets a token
lets the next one wait, so a thousand pods that are due together cost no more than one after the
other. A pod under several taints is in the queue of each; the first token that is available decides
when it is evicted, and one is taken from each, so that the rates of several rules never add up. The
arithmetic is `domain/eviction/rates.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from sully.client.transport import Key
from sully.domain.eviction.rates import Bucket, BucketKey, Cap, EvictionRate, Limit, bucket_after

NO_LIMIT = Limit(BucketKey(), EvictionRate(1))
"""The queue of pods whose taints have no rate; they wait only for the limit of the cluster."""
NOT_FIRST = datetime.max.replace(tzinfo=UTC)
"""Another pod is first; this one will be requeued."""


class EvictionTimes(Protocol):
    """The evictions of the last hour before this process started; slower rates are rare."""

    def times(self, now: datetime, bucket: BucketKey | None = None) -> Iterable[datetime]:
        """Return when pods were evicted because of the taints of a bucket, or at all."""
        ...


class _Tokens(msgspec.Struct, frozen=True):
    """The tokens that a pod holds until it was evicted, or is not."""

    limits: tuple[Limit, ...]
    at: datetime


class EvictionRateLimiter:
    """Grants tokens for evictions."""

    def __init__(
        self,
        requeue: Callable[[Key], None],
        wait: Callable[[Key, datetime], None],
        *,
        past: EvictionTimes,
        max_per_minute: int | None = None,
    ) -> None:
        """`wait` is called with the pod that is first now, and when it may get a token."""
        self._requeue = requeue
        self._wait = wait
        self._past = past
        self._max_per_minute = max_per_minute
        self._cap: Cap | None = None
        self._buckets: dict[Limit, Bucket] = {}
        # The first pod is needed often, and a plain dict skips all deleted entries.
        self._queues: dict[Limit, OrderedDict[Key, None]] = {}
        self._limits: dict[Key, tuple[Limit, ...]] = {}
        """The queues that a pod is in."""
        self._tokens: dict[Key, _Tokens] = {}

    def take(self, key: Key, limits: Sequence[Limit], now: datetime) -> datetime | None:
        """Take tokens for a pod under these limits, or return when one may be available.

        A pod keeps its tokens until `evicted` or `release`: an eviction that is retried costs one.
        """
        if key in self._tokens:
            return None
        if self._cap is None and self._max_per_minute is not None:
            self._cap = Cap(self._max_per_minute, self._past.times(now))
        queues = tuple(limits) or (NO_LIMIT,)
        if queues == (NO_LIMIT,) and self._cap is None:
            self._leave_queues(key)
            return None
        self._join_queues(key, queues)
        at = self._first_token(key, queues, now)
        if at > now:
            return at
        self._grant(key, queues, now)
        return None

    def evicted(self, key: Key) -> None:
        """Note that a pod was evicted: its token is used."""
        self._tokens.pop(key, None)
        self._leave_queues(key)

    def release(self, key: Key) -> None:
        """Note that a pod is not evicted, at least not now: others may have its token."""
        tokens = self._tokens.pop(key, None)
        if tokens is not None:
            self._put_back(tokens)
        self._leave_queues(key)

    @property
    def size(self) -> int:
        """Return how many buckets are kept."""
        return len(self._buckets)

    def _first_token(self, key: Key, queues: Iterable[Limit], now: datetime) -> datetime:
        at = NOT_FIRST
        for limit in queues:
            if next(iter(self._queues[limit])) == key:
                at = min(at, self._bucket(limit, now).opens_at())
        return at if self._cap is None else max(at, self._cap.opens_at())

    def _grant(self, key: Key, limits: tuple[Limit, ...], now: datetime) -> None:
        for limit in limits:
            if limit is not NO_LIMIT:
                # The bucket of a slower rate may owe tokens, which its other pods then wait for.
                self._buckets[limit] = self._bucket(limit, now).take(now)
        if self._cap is not None:
            self._cap.take(now)
        self._tokens[key] = _Tokens(limits, now)
        self._leave_queues(key, now)

    def _put_back(self, tokens: _Tokens) -> None:
        for limit in tokens.limits:
            bucket = self._buckets.get(limit)
            if bucket is not None:
                self._buckets[limit] = bucket.put_back()
        if self._cap is not None:
            self._cap.put_back(tokens.at)
        # The first pods may now be evicted earlier; with a cap, those of every queue.
        for limit, queue in self._queues.items():
            if self._cap is not None or limit in tokens.limits:
                self._requeue_first(queue)

    def _join_queues(self, key: Key, queues: tuple[Limit, ...]) -> None:
        if self._limits.get(key) == queues:
            return
        for limit in set(self._limits.get(key, ())) - set(queues):
            self._leave_queue(key, limit)
        for limit in queues:
            self._queues.setdefault(limit, OrderedDict())[key] = None
        self._limits[key] = queues

    def _leave_queues(self, key: Key, now: datetime | None = None) -> None:
        for limit in self._limits.pop(key, ()):
            self._leave_queue(key, limit, now)

    def _leave_queue(self, key: Key, limit: Limit, now: datetime | None = None) -> None:
        """Remove a pod from a queue; with the time, only if its tokens have been taken."""
        queue = self._queues[limit]
        was_first = next(iter(queue)) == key
        del queue[key]
        if not queue:
            del self._queues[limit]
        elif was_first:
            self._requeue_first(queue, now)

    def _requeue_first(self, queue: Mapping[Key, None], now: datetime | None = None) -> None:
        first = next(iter(queue), None)
        if first is None:
            return
        limits = self._limits[first]
        if now is None or len(limits) > 1 or self._cap is not None:
            # Pods of other queues may take what it waits for, or it what they wait for.
            self._requeue(first)
            return
        at = self._first_token(first, limits, now)
        if at > now:
            self._wait(first, at)
        else:
            self._requeue(first)

    def _bucket(self, limit: Limit, now: datetime) -> Bucket:
        if limit is NO_LIMIT:
            return Bucket(limit.rate)
        bucket = self._buckets.get(limit)
        if bucket is None:
            self._sweep(now)
            bucket = self._buckets[limit] = self._new_bucket(limit, now)
        return bucket

    def _new_bucket(self, limit: Limit, now: datetime) -> Bucket:
        """Return a bucket that counts earlier evictions: at another rate, or by another process."""
        for other in [known for known in self._buckets if known.bucket == limit.bucket]:
            if limit.bucket.is_rule:
                return self._buckets.pop(other).at_rate(limit.rate, now)
        return bucket_after(limit.rate, self._past.times(now, limit.bucket))

    def _sweep(self, now: datetime) -> None:
        idle = [
            limit
            for limit, bucket in self._buckets.items()
            if limit not in self._queues and bucket.is_full(now)
        ]
        for limit in idle:
            del self._buckets[limit]
