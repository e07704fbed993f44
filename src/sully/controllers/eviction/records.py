"""The memory of evictions: a record for each pod that is made to leave, written before it goes.

So an eviction that was begun is found again after a crash, and counts do not begin anew with each
process. A record is open while nobody knows whether its pod left: it is closed when the pod goes,
and withdrawn when the pod stays. What a record says is `domain/history.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sully.api.sully.types import EvictedPod, EvictedPodOwner
from sully.client.informers.informer import Informer
from sully.client.transport import TRANSIENT, Key, Transport
from sully.controllers.kinds import EVICTION_RECORDS, Cause, PastEviction
from sully.domain.claims.pods import Pod
from sully.domain.devices.rules import group_of
from sully.domain.eviction.judge import Evict, Reason
from sully.domain.eviction.rates import MINUTE, Source
from sully.domain.eviction.records import record
from sully.machinery.errors import (
    AlreadyExists,
    ApiError,
    NotFound,
)
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.views.devices.exposures import Exposures

log = get_logger("eviction")

Rules = frozenset[tuple[str, str]]
"""Rules by name and uid."""


def rules_in(reasons: tuple[Reason, ...]) -> Rules:
    """Return the rules among the reasons why a pod leaves."""
    return frozenset(
        (each.taint.origin.name, each.rule) for each in reasons if each.rule is not None
    )


@dataclass(slots=True)
class Open:
    """A record of which nobody knows yet whether its pod left."""

    uid: str
    rules: Rules
    sent: bool = False
    """The deletion was asked for; if the pod goes now, it goes because of that."""
    ours: bool = True
    """It was written by this process."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What the records say that were there when this process began."""

    open: dict[Key, Open]
    counts: dict[str, int]
    """How many pods left, by the uid of the rule."""
    recent: tuple[tuple[datetime, tuple[Cause, ...]], ...]


class Records:
    """Writes records, and knows what older ones say; without a cache it does neither."""

    def __init__(
        self,
        transport: Transport,
        past: Informer[PastEviction] | None,
        exposures: Exposures,
        clock: Clock,
    ) -> None:
        self._transport = transport
        self._past = past
        self._usage = exposures.usage
        self._inventory = exposures.inventory
        self._clock = clock

    def evicted_by(self, rule: str) -> int:
        """Return how many pods had left because of a rule when this process began."""
        return self._found.counts.get(rule, 0)

    def times(self, source: Source | None = None) -> Iterator[datetime]:
        """Yield when pods left, shortly before this process began, because of a source or any."""
        for moment, causes in self._found.recent:
            if source is None or any(self._is_of(each, source) for each in causes):
                yield moment

    def open(self, key: Key) -> Open | None:
        """Return the open record of a pod of this name, if there is one."""
        return self._found.open.get(key)

    def close(self, key: Key) -> None:
        """Note that a pod left."""
        self._found.open.pop(key, None)

    async def write(self, key: Key, pod: Pod, verdict: Evict) -> None:
        """Write down that a pod is made to leave now."""
        if self._past is None:
            return
        known = self._found.open.get(key)
        if known is not None and known.uid == pod.metadata.uid:
            return
        self._found.open[key] = Open(pod.metadata.uid, rules_in(verdict.because))
        try:
            await self._transport.create(EVICTION_RECORDS, self._body(pod, verdict))
        except AlreadyExists:
            return
        except TRANSIENT:
            del self._found.open[key]
            raise
        except ApiError as error:
            # A namespace that goes away takes nothing new, but its pods must still leave.
            log.warning("eviction not recorded", pod=str(key), error=str(error))

    async def withdraw(self, key: Key) -> None:
        """Take a record back, because its pod stays or went by itself."""
        known = self._found.open.get(key)
        if known is None:
            return
        # Should this fail, and the pod go later, that is not our doing.
        known.sent = False
        with suppress(NotFound):
            await self._transport.delete(EVICTION_RECORDS, Key(key.namespace, known.uid))
        self._found.open.pop(key, None)

    def _body(self, pod: Pod, verdict: Evict) -> object:
        owner, metadata = pod.metadata.controller(), pod.metadata
        left = EvictedPod(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            node=pod.spec.node_name,
            owner=EvictedPodOwner(kind=owner.kind, name=owner.name) if owner is not None else None,
        )
        claims = (claim.metadata.name for claim in self._usage.claims_of(pod))
        now = self._clock.now()
        return record(left, verdict.because, due=verdict.since, now=now, claims=claims)

    @cached_property
    def _found(self) -> _Found:
        found, since = _Found({}, {}, ()), self._clock.now() - MINUTE
        recent = []
        for each in self._past.values() if self._past is not None else ():
            key, uid = Key(each.metadata.namespace, each.spec.pod.name), each.metadata.name
            rules = frozenset((cause.name, cause.uid) for cause in each.rules())
            if self._is_here(key, uid):
                found.open[key] = Open(uid, rules, sent=True, ours=False)
                continue
            for _, rule in rules:
                found.counts[rule] = found.counts.get(rule, 0) + 1
            if each.spec.evicted_time > since:
                recent.append((each.spec.evicted_time, each.spec.causes))
        return _Found(found.open, found.counts, tuple(recent))

    def _is_here(self, key: Key, uid: str) -> bool:
        pod = self._usage.pod(key)
        return pod is not None and pod.metadata.uid == uid and not pod.leaving

    def _is_of(self, cause: Cause, source: Source) -> bool:
        if (cause.kind == "DeviceTaintRule") != source.is_rule:
            return False
        if source.group:
            rule = self._inventory.rule(cause.name)
            if rule is None or rule.metadata.uid != cause.uid:
                return False
            return group_of(rule) == source.group
        if source.uid:
            return cause.uid == source.uid
        return Source(key=cause.key, value=cause.value, effect=cause.effect) == source
