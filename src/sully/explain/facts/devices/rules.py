"""DeviceTaintRules: which pods they evict, which they prevent scheduling of, or why none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import EvictionRecord, TaintRecord, rules_of
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.capabilities.inaction import Subject, inaction_of
from sully.domain.devices.rules import UNKNOWN
from sully.domain.devices.taints import BUDGET_EFFECTS, NONE, PREFERENCE_EFFECTS, blocks
from sully.domain.eviction.preview import preview
from sully.domain.eviction.records import EXPIRY
from sully.domain.eviction.status import evicted_count
from sully.domain.scheduling.diagnosis import Diagnosis
from sully.domain.scheduling.objects import Pod
from sully.domain.tolerations import taint_text
from sully.explain.causes import Finding, Note, RuleFacts, note
from sully.explain.explanation import Table, tables
from sully.explain.facts.devices.controllers import stop_step
from sully.explain.facts.devices.inactive import advice, stale_status, whole_inaction
from sully.explain.facts.devices.selectors import mismatch, undecided
from sully.explain.facts.pods.loops import LOOP, loop_note, loop_remedies, loops_of_rule
from sully.explain.facts.pods.pending import current_diagnosis, recorded_diagnosis
from sully.explain.reader import Reader
from sully.explain.sources import of_rule
from sully.explain.text import selector_text, time_text
from sully.explain.trials.scheduler import SchedulerCopy, resolve_claims
from sully.machinery.formats.timestamps import format_time
from sully.views.kinds import RULES
from sully.views.snapshot.kinds import PODS

_MAX_JUDGED: Final = 200
"""Pending pods that are judged once more; equal ones are judged together."""
_MAX_ROWS: Final = 50
_DONE: Final = ("PodsTerminating", "Completed", "AllPodsTolerate", "NoPodsAffected")


class AffectedPod(msgspec.Struct, frozen=True, order=True):
    """A pod that a rule evicts; due when it is evicted, or when its grace period ends."""

    due: datetime
    pod: str
    node: str = ""
    device: str = ""


def find_rule(reader: Reader, key: Key) -> Finding | None:
    """Find out about a rule, also about one that was deleted; None if it is unknown."""
    rule = reader.snapshot.get(RULES, key)
    records = reader.taint_records(key.name)
    if rule is not None:
        return _Rule(reader, rule, records).find()
    return _deleted(reader, records[-1]) if records else None


def blocked_pods(reader: Reader, name: str) -> Iterator[str]:
    """Yield the Pending pods that a rule prevents scheduling of.

    What the scheduler wrote down may be half a minute old, so the pods are judged again, unless
    there are too many. Devices with the taint may be only a part of what a pod lacks, so it is
    judged once more without the rule.
    """
    pods = sorted(reader.snapshot.of(PODS).values(), key=key_of)
    pending = [pod for pod in pods if not pod.spec.node_name and not pod.is_terminal]
    trial = _RemovalTrial(reader, name)
    for index, pod in enumerate(pending):
        judged = index < _MAX_JUDGED
        diagnosis = current_diagnosis(reader, pod) if judged else recorded_diagnosis(pod)
        if diagnosis is not None and trial.blocks(pod, diagnosis, judged=judged):
            yield pod.label


class _RemovalTrial:
    """Whether Pending pods would be scheduled without a rule."""

    def __init__(self, reader: Reader, name: str) -> None:
        self._reader = reader
        self._origin = f"{RULES.kind}/{name}"
        self._copies: dict[frozenset[str], SchedulerCopy] = {}

    def blocks(self, pod: Pod, diagnosis: Diagnosis, *, judged: bool) -> bool:
        """Report whether a pod is Pending because of the rule, alone or together with others."""
        origins = {taint.origin for request in diagnosis.short for taint in request.taints}
        if self._origin not in origins:
            return False
        if self._reader.scheduler is None or not judged:
            # It cannot be tried, so what the scheduler wrote down has to do.
            return True
        if self._is_scheduled(pod, {self._origin}):
            return True
        rules = {origin for origin in origins if origin.startswith(f"{RULES.kind}/")}
        if not self._is_scheduled(pod, rules):
            return False
        # Several rules taint its devices. One that is enough by itself is the cause.
        return not any(self._is_scheduled(pod, {other}) for other in rules - {self._origin})

    def _is_scheduled(self, pod: Pod, rules: set[str]) -> bool:
        names = frozenset(rules)
        if names not in self._copies:
            keys = [Key("", origin.partition("/")[2]) for origin in names]
            self._copies[names] = SchedulerCopy(self._reader.snapshot.without(RULES, *keys))
        copy = self._copies[names]
        return bool(copy.attempt(pod, resolve_claims(pod, copy.snapshot).claims).node)


class _Rule:
    def __init__(self, reader: Reader, rule: DeviceTaintRule, records: list[TaintRecord]) -> None:
        self.reader = reader
        self.rule = rule
        self.source = of_rule(rule)
        uid = rule.metadata.uid
        self.record = next((x for x in records if x.spec.rule.uid == uid), None)
        self.evictions = reader.evictions(lambda record: uid in rules_of(record))
        self.inactive = whole_inaction(reader, Subject.RULES)
        self.pods, self.terminating = ([], []) if self.inactive else self._affected()
        recorded = max(len(self.evictions), self.record.status.evicted if self.record else 0)
        counted = evicted_count(
            rule.status.conditions, recorded, has_records=reader.snapshot.records_evictions
        )
        self.complete = counted.complete
        """False: more pods may have been evicted than are recorded."""
        evicted = counted.at_least(len(self.terminating))
        self.counts = reader.exposures.counts(rule, evicted=evicted)
        problems = [(x.device, x.choice) for x in reader.exposures.problems(rule)]
        self.loops = tuple(loops_of_rule(reader, rule))
        self.undecided = undecided(problems)
        self.unrecorded = any(choice == UNKNOWN for _, choice in problems)

    def find(self) -> Finding:
        cause, more = self._cause()
        rule, source, counts = self.rule, self.source, self.counts
        facts = RuleFacts(
            name=rule.metadata.name,
            by=source.by,
            program=source.program,
            created=source.since,
            why=source.why,
            taint=taint_text(rule.spec.taint),
            selector=selector_text(rule.spec.device_selector),
            finalizers=tuple(rule.metadata.finalizers),
            unrecorded=self.unrecorded,
            devices=counts.published,
            allocated=counts.allocated,
            effect=rule.spec.taint.effect,
            pausable=has_pauses(self.reader),
            stop=stop_step(source),
            terminating=len(self.terminating),
            evicted=counts.evicted,
            complete=self.complete,
        )
        return Finding(
            kind=RULES.kind,
            name=rule.metadata.name,
            cause=cause,
            facts=replace(facts, **more),
            since=rule.metadata.deletion_timestamp,
            also=tuple(self._also(cause)),
            remedies=loop_remedies(self.loops) if cause == LOOP else (),
            details=tables(
                self._selection(),
                self._pending_table(),
                self._pod_table("Terminating pods", "grace ends", self.terminating),
                _changes(self.record),
                _evictions(self.evictions),
            ),
        )

    def _affected(self) -> tuple[list[AffectedPod], list[AffectedPod]]:
        """Return the pods that do not tolerate the rule: to be evicted, and terminating."""
        exposures = self.reader.exposures
        due: dict[Key, AffectedPod] = {}
        terminating: dict[Key, AffectedPod] = {}
        for held, at in exposures.not_tolerated(self.rule):
            for pod in filter(exposures.counts_as_running, exposures.usage.consumers(held.claim)):
                key, end = key_of(pod), pod.metadata.deletion_timestamp
                affected = AffectedPod(end or at, str(key), pod.spec.node_name, str(held.device))
                if end is None:
                    due[key] = min(affected, due.get(key, affected))
                elif at <= self.reader.now:
                    terminating[key] = min(affected, terminating.get(key, affected))
        return sorted(due.values()), sorted(terminating.values())

    def _cause(self) -> tuple[str, dict[str, Any]]:
        """Return the cause, and the facts that only it needs."""
        rule, counts, effect = self.rule, self.counts, self.rule.spec.taint.effect
        if rule.metadata.deletion_timestamp is not None:
            return "Deleted", {}
        if (inactive := self.inactive) is not None:
            return "FeatureDisabled", {"inactive": inactive.reason, "enable": advice(inactive)}
        if rule.spec.device_selector is None:
            return "NoSelector", {}
        if not counts.published and not counts.allocated:
            reason = mismatch(self.reader, rule.spec.device_selector)
            return "SelectorFails" if self.undecided else "NoDevice", {"mismatch": reason}
        if effect in self.reader.policy.effects:
            return self._evicting()
        if effect == NONE:
            return "NoEffect", {"preview": preview(self.reader.exposures.preview(rule)).message}
        if blocks(rule.spec.taint):
            return "PreventsScheduling", {}
        return "PreferNoSchedule" if effect in PREFERENCE_EFFECTS else "UnknownEffect", {}

    def _evicting(self) -> tuple[str, dict[str, Any]]:
        until, paused, taint = self.source.until, self.source.paused, self.rule.spec.taint
        if paused is not None:
            why = paused if paused != "true" else ""
            return "EvictionPaused", {"paused": why, "pods": self.counts.pods}
        if self.loops:
            return LOOP, {"loops": tuple(map(loop_note, self.loops))}
        pods = [pod for pod in self.pods if until is None or until > pod.due]
        if self.pods and not pods:
            return "TaintExpiresFirst", {"pods": len(self.pods)}
        if not pods:
            return self._done()
        if due := sum(pod.due <= self.reader.now for pod in pods):
            rate = self.reader.snapshot.exposures.rate(self.rule)
            return "PodsToBeEvicted", {
                "pods": len(pods),
                "due": 0 if due == len(pods) else due,
                "rate": str(rate) if rate is not None else None,
                "budgets": taint.effect in BUDGET_EFFECTS,
            }
        first = min(pods)
        cause = "TaintStartsLater" if first.due == taint.time_added else "ToleratedTemporarily"
        return cause, {"pods": len(pods), "first": first.pod, "at": first.due}

    def _done(self) -> tuple[str, dict[str, Any]]:
        if self.terminating:
            last = max(self.terminating).due
            ends = "ends" if last > self.reader.now else "overdue"
            return "PodsTerminating", {"pods": len(self.terminating), ends: last}
        if self.counts.evicted:
            return "Completed", {}
        return "AllPodsTolerate" if self.counts.allocated else "NoPodsAffected", {}

    def _also(self, cause: str) -> Iterator[Note]:
        if self.inactive is not None:
            yield from stale_status(self.rule)
            return
        partly = inaction_of(self.reader.snapshot.control_plane, Subject.RULES)
        if partly is not None:
            yield note("PartlyInactive", why=partly.text)
        if not self.complete and cause in _DONE:
            yield note("NotRecorded")
        yield from self.undecided
        if pods := list(blocked_pods(self.reader, self.rule.metadata.name)):
            yield note("BlockedPods", pods=pods)
        if (until := self.source.until) is not None:
            yield note("Expires", at=until, overdue=until <= self.reader.now)

    # -- details ----------------------------------------------------------------------------------

    def _selection(self) -> Table:
        if self.inactive is not None:
            return Table("Selection", ("what", "number"), ())
        counts, terminating = self.counts, len(self.terminating)
        rows = (
            ("published devices", str(counts.published)),
            ("allocated devices", str(counts.allocated)),
            *self._pending_rows(),
            *((("terminating pods", str(terminating)),) if terminating else ()),
            ("pods evicted", self._evicted()),
        )
        return Table("Selection", ("what", "number"), rows)

    def _pending_rows(self) -> Iterator[tuple[str, str]]:
        effect, pods = self.rule.spec.taint.effect, str(self.counts.pods)
        if effect == NONE:
            yield "pods that NoExecute would evict", pods
        elif effect in self.reader.policy.effects:
            paused = self.source.paused is not None
            yield "pods to be evicted when resumed" if paused else "pods to be evicted", pods

    def _evicted(self) -> str:
        evicted = self.counts.evicted
        if self.complete:
            return str(evicted)
        return f"at least {evicted}" if evicted else "unknown"

    def _pending_table(self) -> Table:
        if self.source.paused is None:
            return self._pod_table("Pods to be evicted", "due", self.pods)
        # No pod is due while the rule is paused.
        pods = self._pod_table("Pods to be evicted when resumed", "due", self.pods)
        return Table(pods.title, pods.columns[:-1], tuple(row[:-1] for row in pods.rows))

    def _pod_table(self, title: str, when: str, pods: Iterable[AffectedPod]) -> Table:
        now = self.reader.now
        rows = [(x.pod, x.node, x.device, time_text(x.due, now)) for x in pods]
        shown = rows[:_MAX_ROWS]
        if len(rows) > _MAX_ROWS:
            shown.append((f"and {len(rows) - _MAX_ROWS} more", "", "", ""))
        return Table(title, ("pod", "node", "device", when), tuple(shown))


def has_pauses(reader: Reader) -> bool:
    """Report whether evictions can be paused: only Sully's evictor honors it."""
    return reader.snapshot.control_plane.honors_pauses


def _deleted(reader: Reader, record: TaintRecord) -> Finding:
    spec, status = record.spec, record.status
    evictions = tuple(reader.evictions(lambda x: spec.rule.uid in rules_of(x)))
    expired = status.deleted_by == EXPIRY
    return Finding(
        kind=RULES.kind,
        name=spec.rule.name,
        cause="Expired" if expired else "RuleDeleted",
        reason="Expired" if expired else "Deleted",
        facts=RuleFacts(
            by=spec.created_by,
            created=spec.added_time,
            why=status.description or spec.description,
            taint=taint_text(status.taint or spec.taint),
            selector=selector_text(status.device_selector or spec.device_selector),
            past=True,
            deleted_by=status.deleted_by,
            at=status.deleted_time,
            evicted=max(status.evicted, len(evictions)),
            complete=reader.snapshot.records_evictions,
        ),
        because=(f"TaintRecord/{record.metadata.name}",),
        details=tables(_changes(record), _evictions(evictions)),
    )


def _evictions(evictions: Iterable[EvictionRecord]) -> Table:
    ordered = sorted(evictions, key=lambda record: record.spec.evicted_time, reverse=True)
    rows = tuple(
        (
            f"{record.spec.pod.namespace}/{record.spec.pod.name}",
            record.spec.pod.node,
            format_time(record.spec.evicted_time),
        )
        for record in ordered[:_MAX_ROWS]
    )
    return Table("Evicted pods", ("pod", "node", "evicted"), rows)


def _changes(record: TaintRecord | None) -> Table:
    changes = record.status.changes if record is not None else ()
    rows = tuple((format_time(change.time), change.what) for change in changes)
    return Table("Changes", ("time", "what"), rows)
