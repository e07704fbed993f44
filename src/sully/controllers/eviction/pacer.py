"""Who may leave now, and who waits in line: the paces of taints, and the cap over all.

Each limit has a line of pods. Only the first of a line has to wait for a moment; whoever gets a
token wakes the next, so a thousand pods that are due together cost no more than one after the
other. A pod under several taints stands in the line of each, and the first token that comes up is
the one it takes. The arithmetic is `domain/pacing.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from sully.client.transport import Key
from sully.domain.eviction.rates import Bucket, Cap, Limit, Source, bucket_after

NO_LIMIT = Limit(Source(), 0)
"""The line of those whose taints do not limit them; they wait only for the cap."""
NOT_YET = timedelta.max
"""Someone else is first; the pod will be woken."""


class Past(Protocol):
    """Tells when pods left within the last minute before this process began."""

    def times(self, source: Source | None = None) -> Iterable[datetime]:
        """Return when they left because of a source, or at all."""
        ...


@dataclass(frozen=True, slots=True)
class _Grant:
    """A token that a pod holds until it left, or did not."""

    limit: Limit
    at: datetime


class Pacer:
    """Hands out leave to leave."""

    def __init__(
        self, wake: Callable[[Key], None], *, past: Past, max_per_minute: int | None = None
    ) -> None:
        self._wake = wake
        self._past = past
        self._most = max_per_minute
        self._cap: Cap | None = None
        self._buckets: dict[Limit, Bucket] = {}
        # Who is first is asked all the time, and a plain dict goes over all who were before it.
        self._lines: dict[Limit, OrderedDict[Key, None]] = {}
        self._places: dict[Key, tuple[Limit, ...]] = {}
        self._granted: dict[Key, _Grant] = {}

    def ask(self, key: Key, limits: Sequence[Limit], now: datetime) -> timedelta:
        """Return how long a pod has to wait under these limits; zero lets it go.

        What was granted stays so until `left` or `stays`: an eviction that has to be tried again
        costs one token.
        """
        if key in self._granted:
            return timedelta(0)
        if self._cap is None and self._most is not None:
            self._cap = Cap(self._most, self._past.times())
        wanted = tuple(limits) or (NO_LIMIT,)
        if wanted == (NO_LIMIT,) and self._cap is None:
            self._leave(key)
            return timedelta(0)
        self._stand(key, wanted)
        at, limit = self._first_chance(key, wanted, now)
        if at is None or limit is None:
            return NOT_YET
        if at > now:
            return at - now
        self._grant(key, limit, now)
        return timedelta(0)

    def left(self, key: Key) -> None:
        """Note that a pod left: its token is spent."""
        self._granted.pop(key, None)
        self._leave(key)

    def stays(self, key: Key) -> None:
        """Note that a pod does not leave, at least not now: others may have its token."""
        grant = self._granted.pop(key, None)
        if grant is not None:
            self._refund(grant)
        self._leave(key)

    @property
    def size(self) -> int:
        """Return how many buckets are kept."""
        return len(self._buckets)

    def _first_chance(
        self, key: Key, wanted: Iterable[Limit], now: datetime
    ) -> tuple[datetime | None, Limit | None]:
        chances = [
            (self._bucket(limit, now).opens_at(), limit)
            for limit in wanted
            if next(iter(self._lines[limit])) == key
        ]
        if not chances:
            return None, None
        at, limit = chances[0]
        if len(chances) > 1:
            # Of those that are open now the fastest: it will have another token first.
            at, limit = min(chances, key=lambda each: (max(each[0], now), -each[1].rate))
        return (at if self._cap is None else max(at, self._cap.opens_at())), limit

    def _grant(self, key: Key, limit: Limit, now: datetime) -> None:
        if limit is not NO_LIMIT:
            self._buckets[limit] = self._bucket(limit, now).take(now)
        if self._cap is not None:
            self._cap.take(now)
        self._granted[key] = _Grant(limit, now)
        self._leave(key)

    def _refund(self, grant: _Grant) -> None:
        bucket = self._buckets.get(grant.limit)
        if bucket is not None:
            self._buckets[grant.limit] = bucket.put_back()
        if self._cap is not None:
            self._cap.put_back(grant.at)
        # Whoever waits may go earlier than it was told; with a cap, anyone may.
        for limit, line in self._lines.items():
            if self._cap is not None or limit == grant.limit:
                self._wake_first(line)

    def _stand(self, key: Key, wanted: tuple[Limit, ...]) -> None:
        if self._places.get(key) == wanted:
            return
        for limit in set(self._places.get(key, ())) - set(wanted):
            self._step_out(key, limit)
        for limit in wanted:
            self._lines.setdefault(limit, OrderedDict())[key] = None
        self._places[key] = wanted

    def _leave(self, key: Key) -> None:
        for limit in self._places.pop(key, ()):
            self._step_out(key, limit)

    def _step_out(self, key: Key, limit: Limit) -> None:
        line = self._lines[limit]
        was_first = next(iter(line)) == key
        del line[key]
        if not line:
            del self._lines[limit]
        elif was_first:
            self._wake_first(line)

    def _wake_first(self, line: Mapping[Key, None]) -> None:
        first = next(iter(line), None)
        if first is not None:
            self._wake(first)

    def _bucket(self, limit: Limit, now: datetime) -> Bucket:
        if limit is NO_LIMIT:
            return Bucket(1)
        found = self._buckets.get(limit)
        if found is None:
            self._sweep(now)
            found = self._buckets[limit] = self._new_bucket(limit, now)
        return found

    def _new_bucket(self, limit: Limit, now: datetime) -> Bucket:
        """Return a bucket that knows what left before: under another rate, or another process."""
        for other in [each for each in self._buckets if each.source == limit.source]:
            if limit.source.is_rule:
                return self._buckets.pop(other).at_rate(limit.rate, now)
        return bucket_after(limit.rate, self._past.times(limit.source))

    def _sweep(self, now: datetime) -> None:
        idle = [
            limit
            for limit, bucket in self._buckets.items()
            if limit not in self._lines and bucket.is_full(now)
        ]
        for limit in idle:
            del self._buckets[limit]
