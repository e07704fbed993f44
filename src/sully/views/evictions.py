"""The progress of the evictions of each rule: which pods are pending, and when the last is evicted.

For `sully evictions`. Pending and terminating pods are found in pods and claims as the controller
does it (devices/exposures.py), so they are also right where another controller evicts. How many
were evicted only that controller knows, and that of Kubernetes only since it was started. Its limit
of evictions per minute is a flag that clients cannot see, so times do not account for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from sully.api.resource.annotations import CREATED_BY, DESCRIPTION
from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import EvictionRecord, TaintRecord, rules_of
from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.devices.rules import sourced
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.eviction.judge import eviction_time
from sully.domain.eviction.rates import Bucket, BucketKey, EvictionRate, bucket_key
from sully.domain.eviction.status import EvictedCount, evicted_count
from sully.views.devices.exposures import Exposures
from sully.views.devices.name_index import Names

_RateKey = tuple[BucketKey, EvictionRate | None]
"""What rules have in common that share an eviction rate, and the rate."""
State = Literal[
    "looping", "evicting", "waiting", "terminating", "paused", "done", "unknown", "inactive"
]


class EvictionProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The evictions of one rule."""

    rule: DeviceTaintRule
    pending: Mapping[Key, datetime]
    """The pods that have yet to be evicted, and from when on they do not tolerate the taint."""
    rate: EvictionRate | None = None
    """How fast the evictor evicts them; None: no limit of the rule, or the evictor ignores it."""
    times: Mapping[Key, datetime] = msgspec.field(default_factory=dict)
    """When each of them is evicted at the rate of the rule, which it may share with others."""
    terminating: Mapping[Key, datetime]
    """The evicted pods that still terminate, and when their grace period ends."""
    evicted: int
    """How many pods were evicted."""
    complete: bool = True
    """False: there may have been more, because the eviction controller keeps no records.

    If there is no pod, nothing is known about how many.
    """
    visible: bool = True
    """False: the user may not list pods or claims, so pending pods are not known."""
    devices: int
    """How many devices it taints."""
    state: State
    paused: str | None = None
    finish: datetime | None = None
    """When the last pod is evicted, if nothing changes; None: no pod is pending, or it is paused.

    Of terminating pods it is the end of their grace period.
    """

    @property
    def author(self) -> str:
        """Return the user who created the rule, where the server records it."""
        return self.rule.metadata.annotations.get(CREATED_BY, "")

    @property
    def description(self) -> str:
        """Return why the taint was set."""
        description = self.rule.spec.taint.description
        return description or self.rule.metadata.annotations.get(DESCRIPTION, "")


def progress_of(
    rules: Iterable[DeviceTaintRule],
    exposures: Exposures,
    records: Cache[TaintRecord],
    now: datetime,
    *,
    has_records: bool = True,
    visible: bool = True,
) -> Iterator[EvictionProgress]:
    """Yield the progress of the rules that evict pods, by name.

    `has_records`: the evictor writes records; `visible`: the user may list pods and claims.
    """
    evicted = {record.spec.rule.uid: record.status.evicted for record in records.values()}
    rules_progress: list[EvictionProgress] = []
    for rule in sorted(rules, key=lambda rule: rule.metadata.name):
        if rule.spec.taint.effect in exposures.policy.effects:
            recorded = evicted.get(rule.metadata.uid, 0)
            counted = evicted_count(rule.status.conditions, recorded, has_records=has_records)
            rules_progress.append(_progress(rule, exposures, counted, visible=visible))
    by_rate: dict[_RateKey, list[EvictionProgress]] = {}
    for progress in rules_progress:
        by_rate.setdefault(_rate_key(progress), []).append(progress)
    times = {key: _times(shared, key[1], now) for key, shared in by_rate.items()}
    for progress in rules_progress:
        yield _with_state(replace(progress, times=times[_rate_key(progress)]), now)


def _rate_key(progress: EvictionProgress) -> _RateKey:
    return bucket_key(sourced(progress.rule)), progress.rate


def inactive_progress(
    rules: Iterable[DeviceTaintRule], records: Cache[TaintRecord], *, has_records: bool = True
) -> Iterator[EvictionProgress]:
    """Yield the rules that would evict pods, where rules have no effect, by name."""
    evicted = {record.spec.rule.uid: record.status.evicted for record in records.values()}
    for rule in sorted(rules, key=lambda rule: rule.metadata.name):
        if rule.spec.taint.effect in EVICTING_EFFECTS:
            recorded = evicted.get(rule.metadata.uid, 0)
            counted = evicted_count(rule.status.conditions, recorded, has_records=has_records)
            yield EvictionProgress(
                rule=rule,
                pending={},
                terminating={},
                evicted=counted.at_least(0),
                complete=counted.complete,
                devices=0,
                state="inactive",
            )


def _progress(
    rule: DeviceTaintRule, exposures: Exposures, counted: EvictedCount, *, visible: bool
) -> EvictionProgress:
    pending = dict(sorted(exposures.due(rule).items()))
    terminating = dict(sorted(exposures.terminating(rule).items()))
    return EvictionProgress(
        rule=rule,
        pending=pending,
        rate=exposures.rate(rule),
        terminating=terminating,
        evicted=counted.at_least(len(terminating)),
        complete=counted.complete,
        visible=visible,
        devices=exposures.published(rule),
        state="done",
        paused=exposures.pause_reason(rule),
    )


def _times(
    shared: Sequence[EvictionProgress], rate: EvictionRate | None, now: datetime
) -> dict[Key, datetime]:
    """Return when the pods of rules that share a rate are evicted; each pod is evicted once."""
    due: dict[Key, datetime] = {}
    for progress in shared:
        for key, time in progress.pending.items() if progress.paused is None else ():
            due[key] = min(time, due.get(key, time))
    return eviction_times(due, rate, now, started=any(progress.evicted for progress in shared))


def _with_state(progress: EvictionProgress, now: datetime) -> EvictionProgress:
    """Set the state of a rule, and when its last pod is evicted."""
    pending, last = progress.pending.values(), None
    state: State = "done"
    if progress.paused is not None:
        state = "paused"
    elif not progress.visible:
        state = "unknown"
    elif pending:
        state = "evicting" if min(pending) <= now else "waiting"
        last = max(progress.times[key] for key in progress.pending)
    elif progress.terminating:
        state = "terminating"
        last = max(progress.terminating.values())
    return replace(progress, state=state, finish=last if last is None or last >= now else None)


def due_without_rules(exposures: Exposures) -> set[Key]:
    """Return the pods that are evicted because of taints that drivers or patches set."""
    effects, now = exposures.policy.effects, exposures.now()
    pods: set[Key] = set()
    for allocated in exposures.usage.allocated(Names()):
        device = exposures.inventory.device(allocated.device)
        for taint in device.taints if device is not None else ():
            if taint.taint.effect not in effects or taint.origin.kind == "DeviceTaintRule":
                continue
            tolerations = allocated.result.tolerations
            if (
                eviction_time(taint.taint, tolerations, now=now, policy=exposures.policy)
                is not None
            ):
                pods.update(map(key_of, exposures.running(allocated.claim)))
    return pods


def count_evicted(namespace: str, records: Iterable[EvictionRecord]) -> Counter[str]:
    """Count the evicted pods of a namespace, by the uids of rules."""
    return Counter(
        uid
        for record in records
        if record.metadata.namespace == namespace
        for uid in rules_of(record)
    )


def in_namespace(
    namespace: str, progress: EvictionProgress, evicted: Mapping[str, int], now: datetime
) -> EvictionProgress:
    """Return the progress of a rule for the pods of one namespace, with its `count_evicted`."""
    pending, terminating = (
        {key: time for key, time in pods.items() if key.namespace == namespace}
        for pods in (progress.pending, progress.terminating)
    )
    count = max(evicted.get(progress.rule.metadata.uid, 0), len(terminating))
    filtered = replace(progress, pending=pending, terminating=terminating, evicted=count)
    return filtered if progress.state == "inactive" else _with_state(filtered, now)


def eviction_times(
    due: Mapping[Key, datetime], rate: EvictionRate | None, now: datetime, *, started: bool
) -> dict[Key, datetime]:
    """Return when each pod is evicted at a rate, those first that are due first."""
    if rate is None:
        return {key: max(time, now) for key, time in due.items()}
    bucket = Bucket(rate)
    if started:
        # Evicted pods have used the burst.
        bucket = Bucket(rate, full_at=now + rate.burst * rate.interval)
    times: dict[Key, datetime] = {}
    for time, key in sorted((time, key) for key, time in due.items()):
        times[key] = max(time, now, bucket.opens_at())
        bucket = bucket.take(times[key])
    return times
