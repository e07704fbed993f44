"""Pods that have, or had, a node: why they run, will be evicted, or were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from sully.api.core.pods.conditions import DEVICE_TAINT, DISRUPTION_TARGET
from sully.api.sully.types import EvictionRecord
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.eviction.judge import (
    KEEP,
    Evict,
    EvictingTaint,
    Hold,
    Keep,
    Verdict,
    Wait,
    needs_budget,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.workloads import selector_of
from sully.explain.causes import Finding, Note, PodFacts, Source, note
from sully.explain.explanation import tables
from sully.explain.facts.devices.allocations import (
    cause_sources,
    device_table,
    had_taints,
    record_table,
)
from sully.explain.facts.devices.controllers import removal_conditions
from sully.explain.facts.devices.inactive import inactive_notes
from sully.explain.facts.pods.loops import (
    evicted_in_loop,
    loop_membership,
    loop_origins,
    loops_with_pod,
)
from sully.explain.facts.pods.pending import find_pending
from sully.explain.reader import Reader
from sully.explain.sources import origins_of
from sully.explain.trials.scheduler import claim_keys
from sully.views.snapshot.kinds import BUDGETS, NODES, PODS

_MAX_TAINTS: Final = 3


def find_pod(reader: Reader, key: Key) -> Finding | None:
    """Find out about a pod, also about one that was evicted; None if it is unknown."""
    pod = reader.snapshot.get(PODS, key)
    if pod is None:
        records = reader.evictions(lambda x: (x.spec.pod.namespace, x.spec.pod.name) == key)
        return _evicted(reader, records) if records else _evicted_in_loop(reader, key)
    previous = (*loops_with_pod(reader, pod), *_previous(reader, pod))
    if pod.spec.node_name or not pod.is_active:
        return _BoundPod(reader, pod).find(previous)
    return find_pending(reader, pod, previous)


def _evicted(reader: Reader, records: Sequence[EvictionRecord]) -> Finding:
    """Return why a pod that is gone was evicted; the last one of the name comes first."""
    spec = records[-1].spec
    return Finding(
        kind="Pod",
        namespace=spec.pod.namespace,
        name=spec.pod.name,
        cause="Evicted",
        reason="EvictedByTaint",
        facts=PodFacts(
            owner=_owner_text(records[-1]),
            node=spec.pod.node,
            at=spec.evicted_time,
            count=len(records),
            sources=cause_sources(spec.causes, reader.sources),
            taints=had_taints(spec.causes, reader.sources),
        ),
        because=tuple(f"{cause.kind}/{cause.name}" for cause in spec.causes),
        details=tables(record_table(reversed(records))),
    )


def _evicted_in_loop(reader: Reader, key: Key) -> Finding | None:
    """Return that a pod was evicted in a loop, where only events show it."""
    evicted = evicted_in_loop(reader, key)
    if evicted is None:
        return None
    eviction, loop = evicted
    return Finding(
        kind="Pod",
        namespace=key.namespace,
        name=key.name,
        cause="EvictedInLoop",
        reason="EvictedByTaint",
        facts=PodFacts(owner=loop.owner.replace("/", " "), at=eviction.time),
        also=(loop_membership(reader, loop, loop.owner),),
        because=loop_origins(reader, loop),
    )


def _owner_text(record: EvictionRecord) -> str:
    owner = record.spec.pod.owner
    return f"{owner.kind} {owner.name}" if owner is not None else ""


def _previous(reader: Reader, pod: Pod) -> Iterator[Note]:
    """Yield the evictions of pods of the same owner, or of the same name if it has no owner."""
    owner, metadata = pod.owner, pod.metadata

    def precedes(record: EvictionRecord) -> bool:
        old, created = record.spec.pod, metadata.creation_timestamp
        if old.namespace != metadata.namespace or old.uid == metadata.uid:
            return False
        # Times of pods are in whole seconds.
        if created is not None and record.spec.evicted_time.replace(microsecond=0) > created:
            return False
        if owner is None or old.owner is None:
            return owner is None and old.owner is None and old.name == metadata.name
        return (old.owner.kind, old.owner.name) == (owner.kind, owner.name)

    if records := reader.evictions(precedes):
        last = records[-1].spec
        yield note(
            "PreviousEvictions",
            pod=f"{last.pod.namespace}/{last.pod.name}",
            owner=_owner_text(records[-1]),
            count=len(records),
            several=len(records) > 1,
            at=last.evicted_time,
            sources=cause_sources(last.causes, reader.sources),
        )


class _BoundPod:
    def __init__(self, reader: Reader, pod: Pod) -> None:
        self.reader = reader
        self.pod = pod
        self.node = pod.spec.node_name
        usage = reader.snapshot.usage
        self._user = usage.pod(key_of(pod))
        claims = list(usage.claims_of(self._user)) if self._user is not None else []
        self._held = {key_of(claim) for claim in claims}
        self.allocated = reader.allocated(*claims)
        records = reader.evictions(lambda record: record.spec.pod.uid == pod.metadata.uid)
        self.record = records[-1] if records else None

    def find(self, previous: tuple[Note, ...]) -> Finding:
        record, finding = self.record, self._cause()
        evictions = (record_table((record,)),) if record is not None else ()
        details = tables(device_table(self.allocated, self.reader), *evictions)
        inactive = inactive_notes(self.reader, (x.device for x in self.allocated))
        return replace(finding, also=(*previous, *inactive), details=details)

    def _finding(self, cause: str, facts: PodFacts | None = None, **more: Any) -> Finding:
        metadata = self.pod.metadata
        return Finding(
            kind="Pod",
            namespace=metadata.namespace,
            name=metadata.name,
            cause=cause,
            facts=facts or PodFacts(node=self.node),
            **more,
        )

    @property
    def verdict(self) -> Verdict:
        exposures = self.reader.exposures
        return exposures.judge(self._user, exposures.now()) if self._user is not None else KEEP

    def _cause(self) -> Finding:
        phase, end = self.pod.status.phase, self.pod.metadata.deletion_timestamp
        if self.pod.is_terminal:
            return self._finding("Finished", PodFacts(phase=phase), reason=phase)
        if end is not None:
            return self._terminating(end)
        match self.verdict:
            case Keep():
                return self._not_evicted()
            case Hold(because):
                return self._paused(because)
            case Wait(until, because, _):
                return self._evicted_later(until, because)
            case Evict() as verdict:
                return self._due(verdict)

    # -- not evicted ------------------------------------------------------------------------------

    def _not_evicted(self) -> Finding:
        node, snapshot = self.node, self.reader.snapshot
        # Where nodes cannot be seen, it is not known whether one exists.
        if snapshot.gap(NODES) is None and snapshot.get(NODES, Key("", node)) is None:
            return self._finding("NodeNotFound", because=(f"Node/{node}",))
        unreserved = tuple(str(key) for key in claim_keys(self.pod) if key not in self._held)
        if unreserved:
            because = tuple(f"ResourceClaim/{claim}" for claim in unreserved)
            facts = PodFacts(node=node, claims=unreserved)
            return self._finding("ClaimNotReserved", facts, because=because)
        if not self.allocated:
            return self._finding("NoDevicesHeld", reason="NoDevices")
        facts = PodFacts(node=node, devices=tuple(str(x.device) for x in self.allocated))
        if self.reader.hides_taints:
            return self._finding("TaintsNotVisible", facts)
        taints = [taint for allocated in self.allocated for taint in allocated.taints]
        if not taints:
            return self._finding("NotTainted", facts)
        evicting = [x for x in taints if x.taint.effect in self.reader.policy.effects]
        facts = replace(
            facts,
            tolerated=bool(evicting),
            sources=self.reader.sources.of_all(origins_of(evicting or taints)),
            taints=tuple(self._has_taints())[:_MAX_TAINTS],
        )
        return self._finding("TaintsDoNotEvict", facts, because=origins_of(taints))

    def _has_taints(self) -> Iterator[Note]:
        for allocated in self.allocated:
            for taint in allocated.taints:
                fact = self.reader.sources.sourced(taint)
                yield note("DeviceHasTaint", device=str(allocated.device), taint=fact)

    # -- evicted ----------------------------------------------------------------------------------

    def _evicting(
        self, cause: str, because: Sequence[EvictingTaint], *, stop: bool = False, **facts: Any
    ) -> Finding:
        """Return a finding with the taints that evict, or would, and their sources."""
        sources, origins = self.reader.sources, origins_of(reason.taint for reason in because)
        taints = [
            note("DeviceHasTaint", device=str(x.device), taint=sources.sourced(x.taint))
            for x in because[:_MAX_TAINTS]
        ]
        if len(because) > _MAX_TAINTS:
            taints.append(note("MoreTaintsEvict", count=len(because) - _MAX_TAINTS))
        return self._finding(
            cause,
            PodFacts(
                node=self.node, sources=sources.of_all(origins), taints=tuple(taints), **facts
            ),
            because=origins,
            remedies=(self._stop(because),) if stop else (),
        )

    def _source(self, reason: EvictingTaint) -> Source:
        return self.reader.sources.of(str(reason.taint.origin))

    def _stop(self, because: Sequence[EvictingTaint]) -> Note:
        rules = [reason.taint.origin.name for reason in because if reason.rule is not None]
        if len(rules) < len(because):
            rules = []
        pausable = bool(rules) and self.reader.snapshot.control_plane.evictor == "Sully"
        removals = removal_conditions(map(self._source, because)) if rules else ()
        return note(
            "StopEviction",
            removals=list(removals),
            rules=list(dict.fromkeys(rules)),
            pausable=pausable,
        )

    def _paused(self, because: Sequence[EvictingTaint]) -> Finding:
        reasons = (self._source(reason).paused for reason in because)
        why = next((text for text in reasons if text not in (None, "true")), None)
        rule = because[0].taint.origin.name
        removals = tuple(removal_conditions(map(self._source, because)))
        return self._evicting(
            "EvictionPaused", because, why=why or "", rule=rule, removals=removals
        )

    def _evicted_later(self, until: datetime, because: Sequence[EvictingTaint]) -> Finding:
        lasting = [reason for reason in because if not self._expires_first(reason)]
        if not lasting:
            return self._evicting("TaintExpiresFirst", because)
        until = min(reason.due or until for reason in lasting)
        starts = any(reason.taint.taint.time_added == until for reason in lasting)
        cause = "TaintStartsLater" if starts else "ToleratedTemporarily"
        return self._evicting(cause, lasting, stop=True, until=until)

    def _expires_first(self, reason: EvictingTaint) -> bool:
        end = self._source(reason).until
        return end is not None and reason.due is not None and end <= reason.due

    def _due(self, verdict: Evict) -> Finding:
        because = verdict.due(self.reader.now) or verdict.because
        facts: dict[str, Any] = {"stop": True, "due": verdict.since}
        if needs_budget(because):
            budgets = dict(self._budgets())
            facts |= {"budgets": tuple(budgets), "allowed": any(budgets.values())}
            return self._evicting("WaitingForDisruptionBudget", because, **facts)
        rates = [reason.taint.rate for reason in because]
        limits = [rate for rate in rates if rate is not None]
        honored = self.reader.snapshot.control_plane.honors_rates
        if honored and limits and len(limits) == len(rates):
            fastest = max(limits, key=lambda rate: rate.per_second)
            return self._evicting("EvictionRateLimited", because, **facts, rate=str(fastest))
        return self._evicting("EvictionDue", because, **facts)

    def _budgets(self) -> Iterator[tuple[str, bool]]:
        """Yield the PodDisruptionBudgets that select the pod, and whether they allow disruption."""
        metadata, budgets = self.pod.metadata, self.reader.snapshot.of(BUDGETS)
        for key in sorted(budgets.keys()):
            budget = budgets.get(key)
            if budget is None or key.namespace != metadata.namespace:
                continue
            if selector_of(budget).matches(metadata.labels):
                yield str(key), budget.status.disruptions_allowed > 0

    # -- being deleted ----------------------------------------------------------------------------

    def _terminating(self, end: datetime) -> Finding:
        """Return why a pod is being deleted; the time in a pod is when its grace period ends."""
        ends: dict[str, Any] = {"ends" if end > self.reader.now else "overdue": end}
        if self.record is not None:
            causes, sources = self.record.spec.causes, self.reader.sources
            facts = PodFacts(
                sources=cause_sources(causes, sources), taints=had_taints(causes, sources), **ends
            )
            because = tuple(f"{cause.kind}/{cause.name}" for cause in causes)
            return self._finding("EvictedByTaint", facts, because=because)
        condition = self.pod.condition(DISRUPTION_TARGET)
        # An eviction that was announced once and did not happen is not a reason.
        if condition is None or condition.status != "True" or not condition.reason:
            return self._finding("Deleted", PodFacts(**ends))
        if condition.reason != DEVICE_TAINT:
            facts = PodFacts(message=condition.message or condition.reason, **ends)
            return self._finding("Disrupted", facts, reason=condition.reason)
        if isinstance(verdict := self.verdict, Evict):
            due = verdict.due(self.reader.now) or verdict.because
            return self._evicting("EvictedByTaint", due, **ends)
        because = origins_of(taint for x in self.allocated for taint in x.taints)
        facts = PodFacts(taints=tuple(self._has_taints()), **ends)
        return self._finding("EvictedByTaint", facts, because=because)
