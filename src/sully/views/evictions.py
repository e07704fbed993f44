"""How far the eviction by each rule has come: who is still to leave, and when that ends.

For `sully evictions`. Who is to leave or on the way out is worked out from pods and claims as the
controller does it (exposures.py), so it is also right where another controller evicts. How many are
gone only that controller knows, and Kubernetes' own forgets when it restarts: then we say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from sully.api.resource.annotations import CREATED_BY, DESCRIPTION
from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import EvictionRecord, TaintRecord
from sully.client.collection import Copy
from sully.client.transport import Key
from sully.domain.evictionstatus import Tally, tally
from sully.domain.pacing import BURST, Bucket
from sully.views.exposures import Exposures

State = Literal["evicting", "waiting", "leaving", "paused", "done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A rule at work."""

    rule: DeviceTaintRule
    pending: Mapping[Key, datetime]
    """The pods that still have to leave, and from when on."""
    leaving: Mapping[Key, datetime]
    """The pods that were made to leave and are not gone yet, and when their grace ends."""
    evicted: int
    """How many were made to leave."""
    complete: bool = True
    """False: there may have been more, for whoever evicts here keeps no records."""
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
    records: Copy[TaintRecord],
    now: datetime,
    *,
    kept: bool = True,
) -> Iterator[Progress]:
    """Yield the rules that make pods leave, by name; `kept`: the server has records."""
    known = {each.spec.rule.uid: each.status.evicted for each in records.values()}
    for rule in sorted(rules, key=lambda each: each.metadata.name):
        if rule.spec.taint.effect in exposures.terms.effects:
            recorded = known.get(rule.metadata.uid, 0)
            counted = tally(rule.status.conditions, recorded, kept=kept)
            yield _progress(rule, exposures, counted, now)


def _progress(
    rule: DeviceTaintRule, exposures: Exposures, counted: Tally, now: datetime
) -> Progress:
    pending = dict(sorted(exposures.due(rule).items()))
    leaving = dict(sorted(exposures.leaving(rule).items()))
    evicted = counted.at_least(len(leaving))
    progress = Progress(
        rule=rule,
        pending=pending,
        leaving=leaving,
        evicted=evicted,
        complete=counted.complete,
        devices=exposures.counts(rule, evicted=evicted).published,
        state="done",
        paused=exposures.pause_reason(rule),
    )
    return _judged(progress, now, begun=evicted)


def _judged(progress: Progress, now: datetime, *, begun: int) -> Progress:
    """Say how a rule stands with these pods, and when that ends."""
    pending, last = progress.pending.values(), None
    state: State = "done"
    if progress.paused is not None:
        state = "paused"
    elif pending:
        state = "evicting" if min(pending) <= now else "waiting"
        last = finish(pending, progress.rule, now, begun=begun)
    elif progress.leaving:
        state = "leaving"
        last = max(progress.leaving.values())
    return replace(progress, state=state, finish=last if last is None or last >= now else None)


def only_in(
    namespace: str, progress: Progress, records: Iterable[EvictionRecord], now: datetime
) -> Progress:
    """Return how far a rule has come with the pods of one namespace."""
    pending, leaving = (
        {key: at for key, at in pods.items() if key.namespace == namespace}
        for pods in (progress.pending, progress.leaving)
    )
    uid = progress.rule.metadata.uid
    left = sum(uid in each.rules() for each in records if each.metadata.namespace == namespace)
    here = replace(progress, pending=pending, leaving=leaving, evicted=max(left, len(leaving)))
    return _judged(here, now, begun=progress.evicted)


def finish(
    dues: Iterable[datetime], rule: DeviceTaintRule, now: datetime, *, begun: int
) -> datetime | None:
    """Return when the last of these leaves at the pace of a rule."""
    rate = rule.spec.taint.evictions_per_second
    last: datetime | None = None
    if rate is None:
        return max((max(due, now) for due in dues), default=None)
    bucket = Bucket(rate)
    if begun:
        # Those that left have used up the first ones, which may go at once.
        bucket = replace(bucket, full_at=now + BURST * bucket.interval)
    for due in sorted(dues):
        last = max(due, now, bucket.opens_at())
        bucket = bucket.take(last)
    return last
