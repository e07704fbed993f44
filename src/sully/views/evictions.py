"""How far the eviction by each rule has come: who is still to leave, and when that ends.

For `sully evictions`. Who is to leave or on the way out is worked out from pods and claims as the
controller does it (exposures.py), so it is also right where another controller evicts. How many are
gone only that controller knows, and Kubernetes' own forgets when it restarts: then we say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from sully.api.resource.annotations import CREATED_BY, DESCRIPTION
from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import EvictionRecord, TaintRecord, rules_of
from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.devices.rules import sourced
from sully.domain.eviction.judge import eviction_time
from sully.domain.eviction.rates import BURST, Bucket, Source, source_of
from sully.domain.eviction.status import EvictedCount, evicted_count
from sully.views.devices.exposures import Exposures
from sully.views.devices.name_index import Names

_Pace = tuple[Source, int | None]
State = Literal["evicting", "waiting", "leaving", "paused", "done", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A rule at work."""

    rule: DeviceTaintRule
    pending: Mapping[Key, datetime]
    """The pods that still have to leave, and from when on."""
    times: Mapping[Key, datetime] = field(default_factory=dict)
    """When each of them leaves at the pace that the rule has, alone or with others."""
    leaving: Mapping[Key, datetime]
    """The pods that were made to leave and are not gone yet, and when their grace ends."""
    evicted: int
    """How many were made to leave."""
    complete: bool = True
    """False: there may have been more, for whoever evicts here keeps no records."""
    seen: bool = True
    """False: whoever asks may not see pods or claims, so nobody can say who has to leave."""
    devices: int
    """How many devices it is on."""
    state: State
    paused: str | None = None
    finish: datetime | None = None
    """When the last one will have left, if nothing changes; None: nobody has to, or may.

    Of pods on their way out it is the end of their grace.
    """

    @property
    def author(self) -> str:
        """Return who made the rule, where the server says so."""
        return self.rule.metadata.annotations.get(CREATED_BY, "")

    @property
    def description(self) -> str:
        """Return why it is there."""
        said = self.rule.spec.taint.description
        return said or self.rule.metadata.annotations.get(DESCRIPTION, "")


def progress_of(
    rules: Iterable[DeviceTaintRule],
    exposures: Exposures,
    records: Cache[TaintRecord],
    now: datetime,
    *,
    kept: bool = True,
    seen: bool = True,
) -> Iterator[Progress]:
    """Yield the rules that make pods leave, by name.

    `kept`: the server has records; `seen`: whoever asks may see pods and claims.
    """
    known = {each.spec.rule.uid: each.status.evicted for each in records.values()}
    found: list[Progress] = []
    for rule in sorted(rules, key=lambda each: each.metadata.name):
        if rule.spec.taint.effect in exposures.policy.effects:
            recorded = known.get(rule.metadata.uid, 0)
            counted = evicted_count(rule.status.conditions, recorded, has_records=kept)
            found.append(_progress(rule, exposures, counted, seen=seen))
    lines: dict[_Pace, list[Progress]] = {}
    for each in found:
        lines.setdefault(_pace(each.rule), []).append(each)
    times = {pace: _times(together, pace[1], now) for pace, together in lines.items()}
    for each in found:
        yield _judged(replace(each, times=times[_pace(each.rule)]), now)


def _pace(rule: DeviceTaintRule) -> _Pace:
    """Return what rules have in common that share a pace, and how fast that is."""
    return source_of(sourced(rule)), rule.spec.taint.evictions_per_second


def _progress(
    rule: DeviceTaintRule, exposures: Exposures, counted: EvictedCount, *, seen: bool
) -> Progress:
    pending = dict(sorted(exposures.due(rule).items()))
    leaving = dict(sorted(exposures.leaving(rule).items()))
    evicted = counted.at_least(len(leaving))
    return Progress(
        rule=rule,
        pending=pending,
        leaving=leaving,
        evicted=evicted,
        complete=counted.complete,
        seen=seen,
        devices=exposures.published(rule),
        state="done",
        paused=exposures.pause_reason(rule),
    )


def _times(together: Sequence[Progress], rate: int | None, now: datetime) -> dict[Key, datetime]:
    """Return when pods leave because of rules that share a pace; a pod leaves only once."""
    line: dict[Key, datetime] = {}
    for each in together:
        for key, due in each.pending.items() if each.paused is None else ():
            line[key] = min(due, line.get(key, due))
    return in_line(line, rate, now, begun=any(each.evicted for each in together))


def _judged(progress: Progress, now: datetime) -> Progress:
    """Say how a rule stands with these pods, and when that ends."""
    pending, last = progress.pending.values(), None
    state: State = "done"
    if progress.paused is not None:
        state = "paused"
    elif not progress.seen:
        state = "unknown"
    elif pending:
        state = "evicting" if min(pending) <= now else "waiting"
        last = max(progress.times[key] for key in progress.pending)
    elif progress.leaving:
        state = "leaving"
        last = max(progress.leaving.values())
    return replace(progress, state=state, finish=last if last is None or last >= now else None)


def others_due(exposures: Exposures) -> set[Key]:
    """Return the pods that must leave because of taints that drivers or patches set."""
    effects, now = exposures.policy.effects, exposures.now()
    found: set[Key] = set()
    for held in exposures.usage.held(Names()):
        device = exposures.inventory.device(held.device)
        for each in device.taints if device is not None else ():
            if each.taint.effect not in effects or each.origin.kind == "DeviceTaintRule":
                continue
            due = eviction_time(
                each.taint, held.result.tolerations, now=now, policy=exposures.policy
            )
            if due is not None:
                found.update(map(key_of, exposures.running(held.claim)))
    return found


def left_in(namespace: str, records: Iterable[EvictionRecord]) -> Counter[str]:
    """Count the pods of a namespace that were made to leave, by the uids of rules."""
    return Counter(
        uid for each in records if each.metadata.namespace == namespace for uid in rules_of(each)
    )


def only_in(namespace: str, progress: Progress, left: Mapping[str, int], now: datetime) -> Progress:
    """Return how far a rule has come with the pods of one namespace, of which so many left."""
    pending, leaving = (
        {key: at for key, at in pods.items() if key.namespace == namespace}
        for pods in (progress.pending, progress.leaving)
    )
    evicted = max(left.get(progress.rule.metadata.uid, 0), len(leaving))
    here = replace(progress, pending=pending, leaving=leaving, evicted=evicted)
    return _judged(here, now)


def in_line(
    dues: Mapping[Key, datetime], rate: int | None, now: datetime, *, begun: bool
) -> dict[Key, datetime]:
    """Return when each pod leaves at a pace, those first that have to leave first."""
    if rate is None:
        return {key: max(due, now) for key, due in dues.items()}
    bucket = Bucket(rate)
    if begun:
        # Those that left have used up the first ones, which may go at once.
        bucket = Bucket(rate, full_at=now + BURST * bucket.interval)
    times: dict[Key, datetime] = {}
    for due, key in sorted((due, key) for key, due in dues.items()):
        times[key] = max(due, now, bucket.opens_at())
        bucket = bucket.take(times[key])
    return times
