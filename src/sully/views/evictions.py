"""How far the eviction by each rule has come: who is still to leave, and when that ends.

For `sully evictions`. What is pending is worked out from pods and claims as the controller does it
(exposures.py), so it is also right for a server whose controller says less in its status.
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
from sully.domain.evictionstatus import EVICTED, evicted_before
from sully.domain.pacing import BURST, Bucket
from sully.views.exposures import Exposures

State = Literal["evicting", "waiting", "paused", "done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A rule at work."""

    rule: DeviceTaintRule
    pending: Mapping[Key, datetime]
    """The pods that still have to leave, and from when on."""
    evicted: int
    devices: int
    """How many devices it is on."""
    state: State
    paused: str | None = None
    finish: datetime | None = None
    """When the last one will have left, if nothing changes; None: nobody has to, or may."""

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
) -> Iterator[Progress]:
    """Yield the rules that make pods leave, by name."""
    known = {each.spec.rule.uid: each.status.evicted for each in records.values()}
    for rule in sorted(rules, key=lambda each: each.metadata.name):
        if rule.spec.taint.effect in exposures.terms.effects:
            evicted = max(known.get(rule.metadata.uid, 0), _said(rule))
            yield _progress(rule, exposures, evicted, now)


def _said(rule: DeviceTaintRule) -> int:
    """Return how many left according to the status of the rule itself."""
    found = next((each for each in rule.status.conditions if each.type == EVICTED), None)
    return evicted_before(found.message) if found is not None else 0


def _progress(rule: DeviceTaintRule, exposures: Exposures, evicted: int, now: datetime) -> Progress:
    pending = dict(sorted(exposures.due(rule).items()))
    paused = exposures.pause_reason(rule)
    state: State = "done"
    if paused is not None:
        state = "paused"
    elif pending:
        state = "evicting" if min(pending.values()) <= now else "waiting"
    return Progress(
        rule=rule,
        pending=pending,
        evicted=evicted,
        devices=exposures.counts(rule, evicted=evicted).published,
        state=state,
        paused=paused,
        finish=None if paused is not None else finish(pending.values(), rule, now, begun=evicted),
    )


def only_in(
    namespace: str, progress: Progress, records: Iterable[EvictionRecord], now: datetime
) -> Progress:
    """Return how far a rule has come with the pods of one namespace."""
    pending = {key: due for key, due in progress.pending.items() if key.namespace == namespace}
    uid = progress.rule.metadata.uid
    left = sum(uid in each.rules() for each in records if each.metadata.namespace == namespace)
    last = finish(pending.values(), progress.rule, now, begun=progress.evicted)
    state = progress.state if pending or progress.state == "paused" else "done"
    if progress.state == "paused":
        last = None
    return replace(progress, pending=pending, evicted=left, finish=last, state=state)


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
