"""The records of evictions, and the counts that follow from them.

A record is created before its pod is deleted, so an eviction that was started is known after a
crash, and counts survive restarts. A record is open while it is unknown whether its pod was
evicted: it is closed when the pod is deleted, and withdrawn when the pod stays. A request that is
not answered may have been executed: so a record may exist that was not confirmed, and a pod may be
deleted that the cache shows as running. What a record contains is `domain/eviction/records.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from sully.api.sully.types import EvictedPod, EvictedPodOwner
from sully.client.transport import Key
from sully.domain.claims.pods import Pod, still_runs
from sully.domain.devices.rules import group_of
from sully.domain.eviction.judge import Evict, Rules, Verdict, rules_in
from sully.domain.eviction.partial_records import PartialEvictionCause, PartialEvictionRecord
from sully.domain.eviction.rates import BucketKey
from sully.evictor.effects import RecordEviction
from sully.views.devices.exposures import Exposures

_REMEMBERED = timedelta(hours=1)
"""How long evictions count for rates after a restart."""


def _no_totals() -> Mapping[str, int]:
    return {}


class RecordSources(msgspec.Struct, frozen=True):
    """The records on the server, as caches have them when the process starts."""

    records: Callable[[], Iterable[PartialEvictionRecord]]
    totals: Callable[[], Mapping[str, int]] = _no_totals
    """How many pods each rule evicted by its TaintRecord, by uid: more than there are
    EvictionRecords, which are deleted after a while, or with their namespace."""


class OpenEvictionRecord(msgspec.Struct):
    """A record whose pod may or may not be evicted yet."""

    uid: str
    rules: Rules
    confirmed: bool = False
    """The server answered to this process that it exists; otherwise it may exist."""
    sent: bool = False
    """The deletion was requested; if the pod is deleted now, that is why."""
    ours: bool = True
    """It was created by this process."""


class _Known(msgspec.Struct):
    """What is recorded, and what this process has added to it."""

    open: dict[Key, OpenEvictionRecord] = msgspec.field(default_factory=dict)
    before: Counter[str] = msgspec.field(default_factory=Counter)
    """How many pods rules had evicted when the process started, by uid."""
    recent: list[tuple[datetime, tuple[PartialEvictionCause, ...]]] = msgspec.field(
        default_factory=list
    )


class EvictionRecords:
    """Counts evictions, and knows which are under way; without sources only those of its own."""

    def __init__(self, exposures: Exposures, sources: RecordSources | None = None) -> None:
        self._exposures = exposures
        self._sources = sources
        self._loaded: _Known | None = None
        self._since_start: Counter[str] = Counter()
        self._completed: Counter[str] = Counter()
        """Evictions that earlier processes started and this one saw complete."""

    @property
    def enabled(self) -> bool:
        """Report whether evictions are recorded."""
        return self._sources is not None

    # -- counting ---------------------------------------------------------------------------------

    def evicted(self, rule: str, now: datetime) -> int:
        """Return how many pods a rule, by its uid, has evicted."""
        before = self._known(now).before[rule]
        return before + self._since_start[rule] + self._completed[rule]

    def evicted_since_start(self, rule: str) -> int:
        """Return how many pods a rule has evicted since this process started."""
        return self._since_start[rule]

    def times(self, now: datetime, bucket: BucketKey | None = None) -> Iterator[datetime]:
        """Yield when pods were evicted shortly before the start, for a bucket or for any."""
        for moment, causes in self._known(now).recent:
            if bucket is None or any(self._is_of(cause, bucket) for cause in causes):
                yield moment

    # -- one eviction -----------------------------------------------------------------------------

    def open(self, key: Key, now: datetime) -> OpenEvictionRecord | None:
        """Return the open record of a pod of this name, if there is one."""
        return self._known(now).open.get(key) if self._sources is not None else None

    def requested(self, key: Key, now: datetime, *, sent: bool = True) -> None:
        """Note that the deletion of a pod is requested, or that it was not."""
        record = self.open(key, now)
        if record is not None:
            record.sent = sent

    def confirm(self, key: Key, now: datetime) -> None:
        """Note that the server has created a record."""
        self._known(now).open[key].confirmed = True

    def close(self, key: Key, now: datetime) -> None:
        """Note that the pod of an open record was evicted."""
        if self._sources is not None:
            self._known(now).open.pop(key, None)

    def withdrawn(self, key: Key, uid: str, now: datetime) -> None:
        """Note that a record was deleted."""
        known = self._known(now).open
        if key in known and known[key].uid == uid:
            del known[key]

    def count(self, rules: Rules, *, ours: bool = True) -> None:
        """Count a pod that rules evicted, in this process or in an earlier one."""
        counter = self._since_start if ours else self._completed
        counter.update(uid for _, uid in rules)

    def missing(self, key: Key, pod: Pod, verdict: Verdict, now: datetime) -> RecordEviction | None:
        """Open the record of an eviction; None if there is one, or evictions are not recorded."""
        record = self.open(key, now)
        recorded = record is not None and record.uid == pod.metadata.uid and record.confirmed
        if recorded or not self.enabled or not isinstance(verdict, Evict):
            return None
        return self.create(key, pod, verdict, now)

    def create(self, key: Key, pod: Pod, verdict: Evict, now: datetime) -> RecordEviction:
        """Open the record of a pod that is evicted now."""
        owner, metadata = pod.metadata.controller(), pod.metadata
        before = self.open(key, now)
        sent = before is not None and before.uid == metadata.uid and before.sent
        rules = rules_in(verdict.because)
        self._known(now).open[key] = OpenEvictionRecord(metadata.uid, rules, sent=sent)
        evicted = EvictedPod(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            node=pod.spec.node_name,
            owner=EvictedPodOwner(kind=owner.kind, name=owner.name) if owner is not None else None,
        )
        claims = tuple(claim.metadata.name for claim in self._exposures.usage.claims_of(pod))
        return RecordEviction(key, evicted, verdict.because, claims, verdict.since, now)

    # -- what was recorded before -----------------------------------------------------------------

    def _known(self, now: datetime) -> _Known:
        # Loaded when needed: before that the caches may not be synced.
        if self._loaded is None:
            self._loaded = self._load(self._sources, now) if self._sources else _Known()
        return self._loaded

    def _load(self, sources: RecordSources, now: datetime) -> _Known:
        loaded, under_way = _Known(), Counter[str]()
        for record in sources.records():
            key, uid = Key(record.metadata.namespace, record.spec.pod.name), record.metadata.name
            rules = frozenset((cause.name, cause.uid) for cause in record.rules())
            if still_runs(self._exposures.usage.pod(key), uid):
                loaded.open[key] = OpenEvictionRecord(uid, rules, sent=True, ours=False)
                under_way.update(rule for _, rule in rules)
                continue
            loaded.before.update(rule for _, rule in rules)
            if record.spec.evicted_time > now - _REMEMBERED:
                loaded.recent.append((record.spec.evicted_time, record.spec.causes))
        for rule, total in sources.totals().items():
            # A total also counts records whose pods have not been deleted.
            loaded.before[rule] = max(loaded.before[rule], total - under_way[rule])
        return loaded

    def _is_of(self, cause: PartialEvictionCause, bucket: BucketKey) -> bool:
        if (cause.kind == "DeviceTaintRule") != bucket.is_rule:
            return False
        if bucket.group:
            rule = self._exposures.inventory.rule(cause.name)
            if rule is None or rule.metadata.uid != cause.uid:
                return False
            return group_of(rule) == bucket.group
        if bucket.uid:
            return cause.uid == bucket.uid
        return BucketKey(key=cause.key, value=cause.value, effect=cause.effect) == bucket
