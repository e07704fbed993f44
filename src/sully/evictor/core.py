"""The evictor: takes events, keeps the pods to be evicted, and returns effects.

One eviction is a sequence of effects, each of which waits for its answer:

    ReadPod -> RecordEviction -> MarkPod -> DeletePod          no budget is asked
    CommitEviction                                             the same in one transaction
    ReadPod -> TryEviction -> RecordEviction -> EvictPod       only as budgets allow

Before each write (the record, the mark, the deletion) the pod is checked again, because the
cluster may have changed while the answer was awaited. An effect that fails is not answered; the
next `PodChanged` starts over, with the rate token and the record that exist already. With an
authoritative cache, as in plans, there is nothing to read, record or mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from sully.client.transport import Key
from sully.domain.claims.pods import Pod, still_runs
from sully.domain.eviction.judge import KEEP, Evict, Hold, Keep, Verdict, Wait, rules_in
from sully.domain.eviction.pod_events import EvictionStep
from sully.evictor.checks import RATE_LIMITED, Delayed, DueEviction, EvictionChecks, Passed
from sully.evictor.effects import (
    Announce,
    CommitEviction,
    CountEviction,
    DeletePod,
    Effect,
    EvictPod,
    MarkPod,
    ReadPod,
    RefreshCache,
    ReportProgress,
    Requeue,
    RequeueAt,
    SkipPod,
    TryEviction,
    WithdrawRecord,
)
from sully.evictor.events import (
    Answer,
    BudgetChanged,
    CacheConfirmed,
    CommitRejected,
    Event,
    EvictionAllowed,
    EvictionCommitted,
    EvictionRecorded,
    EvictionRefused,
    PodChanged,
    PodDeleted,
    PodMarked,
    PodNotFound,
    PodRead,
    RecordWithdrawn,
    Requeued,
    RulesReported,
)
from sully.evictor.freshness import Freshness
from sully.evictor.pending import PendingEviction
from sully.evictor.records import EvictionRecords, RecordSources
from sully.evictor.settings import EvictionOptions
from sully.views.devices.exposures import Exposures


class Evictor:
    """Decides about evictions: `step` takes every event."""

    def __init__(
        self,
        exposures: Exposures,
        options: EvictionOptions,
        *,
        sources: RecordSources | None = None,
        caches: Sequence[Freshness] = (),
    ) -> None:
        self._exposures = exposures
        self._options = options
        self._effects: list[Effect] = []
        self._pending: dict[Key, PendingEviction] = {}
        self._exempt: set[str] = set()
        self.records = EvictionRecords(exposures, sources if options.records else None)
        self._checks = EvictionChecks(
            options,
            past=self.records,
            caches=caches,
            requeue=lambda key: self._effects.append(Requeue(key)),
            wait=self._wait_for_token,
            refresh=lambda cache: self._effects.append(RefreshCache(cache)),
        )

    # -- state ------------------------------------------------------------------------------------

    @property
    def waiting_for_caches(self) -> int:
        """Return how many pods are due and wait until the server has confirmed the caches."""
        return self._checks.freshness.waiting

    def pending(self) -> Iterator[tuple[Key, PendingEviction]]:
        """Yield the pods that are to be evicted, by key."""
        for key in sorted(self._pending):
            yield key, self._pending[key]

    def is_pending(self, key: Key) -> bool:
        """Report whether a pod of this name is to be evicted."""
        return key in self._pending

    def concerns(self, key: Key, now: datetime) -> bool:
        """Report whether a change of a pod matters: most run and end without a taint."""
        if key in self._pending or self.records.open(key, now) is not None:
            return True
        pod = self._exposures.usage.pod(key)
        return pod is not None and self._may_evict(pod) and self._exposures.is_tainted(pod)

    def verdict(self, pod: Pod, now: datetime) -> Verdict:
        """Return whether and when a pod is to be evicted, whatever delays that."""
        return self._exposures.judge(pod, now) if self._may_evict(pod) else KEEP

    def _may_evict(self, pod: Pod) -> bool:
        # Nothing more can be done to a pod that is terminating.
        ignored = self._options.compat.ignores_finished_pods
        if pod.is_terminating and ignored:
            return False
        return not self._exposures.was_evicted(pod)

    def exempt(self, uid: str) -> None:
        """Never evict a pod; `SkipPod` is returned when it is due.

        For plans, which could not end if a replacement were evicted and replaced again and again.
        """
        self._exempt.add(uid)

    def clear_exemptions(self) -> None:
        """Evict all pods again that are due."""
        self._exempt.clear()

    # -- events -----------------------------------------------------------------------------------

    def step(self, event: Event, now: datetime) -> list[Effect]:
        """Take an event, and return what is to be done."""
        match event:
            case PodChanged(key):
                self._pod_changed(key, now)
            case Requeued(key):
                self._requeued(key, now)
            case BudgetChanged(old, new):
                self._checks.budget_changed(old, new)
            case CacheConfirmed(cache):
                self._checks.freshness.confirmed(cache)
            case RecordWithdrawn(key, uid):
                self.records.withdrawn(key, uid, now)
            case _:
                self._answered(event.key, event, now)
        if not self._effects:
            return []
        effects, self._effects = self._effects, []
        return effects

    def _pod_changed(self, key: Key, now: datetime) -> None:
        pod = self._exposures.usage.pod(key)
        pending = self._pending.get(key)
        if pending is not None and (pod is None or pod.metadata.uid != pending.uid):
            self._forget(key)
        self._settle_record(key, pod, now)
        if pod is not None:
            self._judge(key, pod, now)

    def _requeued(self, key: Key, now: datetime) -> None:
        pending = self._pending.get(key)
        if pending is not None and isinstance(pending.decision, DueEviction):
            # As time passes no reason is removed; only more of them become due.
            self._check(key, pending, now)
        else:
            self._pod_changed(key, now)

    def _answered(self, key: Key, event: Answer, now: datetime) -> None:
        """Take the next step of an eviction."""
        pending = self._pending.get(key)
        if pending is None or not isinstance(pending.decision, DueEviction):
            return
        verdict = pending.decision.verdict
        match event:
            case PodDeleted():
                self._evicted(key, pending, verdict, now)
            case EvictionCommitted() | RulesReported() | CommitRejected():
                self._tried(key, pending, event, now)
            case PodRead():
                self._read(key, verdict, event, now)
            case EvictionAllowed():
                self._record(key, self._check_again(key, pending, now), now)
            case EvictionRecorded():
                self.records.confirm(key, now)
                self._mark(key, self._check_again(key, pending, now), now)
            case PodMarked():
                self._delete(key, self._check_again(key, pending, now), now)
            case EvictionRefused():
                self._withdraw(key, now)
                self._delay(key, pending, self._checks.refuse(event, verdict, now))
            case PodNotFound():
                record = self.records.open(key, now)
                if record is not None and pending.read is not None:
                    # Otherwise it may be an earlier request of ours that deleted it.
                    record.sent = False
                    self._withdraw(key, now)
                self._gone(key, pending)

    # -- deciding ---------------------------------------------------------------------------------

    def _judge(self, key: Key, pod: Pod, now: datetime) -> None:
        verdict = self.verdict(pod, now)
        if isinstance(verdict, Keep):
            self._keep(key, pod, now)
            return
        if isinstance(verdict, Evict) and pod.metadata.uid in self._exempt:
            self._forget(key)
            self._effects.append(SkipPod(key))
            return
        self._check(key, self._plan(key, pod, verdict), now)

    def _plan(self, key: Key, pod: Pod, verdict: Hold | Wait | Evict) -> PendingEviction:
        before = self._pending.get(key)
        decision = DueEviction(verdict, self._options) if isinstance(verdict, Evict) else verdict
        pending = self._pending[key] = PendingEviction(pod, decision)
        if before is None:
            self._report(pending)
        elif not pending.reports_as(before):
            self._report(pending, before)
        return pending

    def _check(self, key: Key, pending: PendingEviction, now: datetime) -> None:
        answer = self._checks.check(key, pending.decision, now)
        if isinstance(answer, Delayed):
            if not isinstance(pending.decision, DueEviction):
                # It was due when its record was created, and an eviction may never follow.
                self._withdraw(key, now)
            self._delay(key, pending, answer)
        else:
            self._start(key, pending, now, within_budget=answer.within_budget)

    def _delay(self, key: Key, pending: PendingEviction, delayed: Delayed) -> None:
        pending.delayed = delayed
        if delayed.until is not None:
            self._effects.append(RequeueAt(key, delayed.until))

    def _wait_for_token(self, key: Key, until: datetime) -> None:
        """Let a pod wait for its token that is first at a rate now.

        A taint that has become due meanwhile may have a faster rate. A controller requeues only the
        pod that it reconciles for a time.
        """
        pending = self._pending.get(key) if self._options.authoritative_cache else None
        decision = pending.decision if pending is not None else None
        if pending is not None and isinstance(decision, DueEviction) and decision.all_due:
            self._delay(key, pending, Delayed(RATE_LIMITED, until))
        else:
            self._effects.append(Requeue(key))

    def _keep(self, key: Key, pod: Pod, now: datetime) -> None:
        pending = self._forget(key)
        if not pod.is_terminating:
            self._withdraw(key, now)
            if pending is not None:
                self._effects.append(Announce(key, pending.uid, EvictionStep.CANCELLED))

    def _forget(self, key: Key) -> PendingEviction | None:
        pending = self._pending.pop(key, None)
        if pending is not None:
            self._checks.release(key)
            self._checks.freshness.forget(key)
            self._report(pending)
        return pending

    # -- one eviction -----------------------------------------------------------------------------

    def _start(
        self, key: Key, pending: PendingEviction, now: datetime, *, within_budget: bool
    ) -> None:
        pending.delayed = pending.read = None
        reasons = pending.verdict.because
        if self._in_transaction(pending, within_budget=within_budget):
            self._record(key, Passed(within_budget=False), now)
        elif not self._options.authoritative_cache:
            self._effects.append(ReadPod(key, pending.uid, rules_in(reasons)))
        elif within_budget:
            self._effects.append(EvictPod(key, pending.uid, reasons, None))
        else:
            self._effects.append(DeletePod(key, pending.uid, reasons))

    def _read(self, key: Key, verdict: Evict, read: PodRead, now: datetime) -> None:
        pending = self._pending[key]
        if read.terminating:
            # Another client deleted it. Kubernetes counts that as well.
            if not self._options.compat.ignores_finished_pods:
                self._evicted(key, pending, verdict, now)
            else:
                self._gone(key, pending)
            return
        pending.read = read
        passed = self._check_again(key, pending, now)
        if passed is not None and passed.within_budget:
            self._effects.append(TryEviction(key, pending.uid, read))
        else:
            self._record(key, passed, now)

    def _check_again(self, key: Key, before: PendingEviction, now: datetime) -> Passed | None:
        """Decide once more about a pod whose eviction is under way; None: it is not evicted now."""
        pod = self._exposures.usage.pod(key)
        if pod is None or pod.metadata.uid != before.uid:
            self._withdraw(key, now)
            self._forget(key)
            return None
        verdict = self.verdict(pod, now)
        if isinstance(verdict, Keep):
            self._keep(key, pod, now)
            return None
        if pod is before.pod and verdict == before.verdict:
            pending = before
        else:
            pending = self._plan(key, pod, verdict)
            pending.read, pending.reported = before.read, before.reported
            pending.separate = before.separate
        answer = self._checks.check(key, pending.decision, now)
        if isinstance(answer, Passed):
            return answer
        self._withdraw(key, now)
        self._delay(key, pending, answer)
        return None

    def _record(self, key: Key, passed: Passed | None, now: datetime) -> None:
        """Record the eviction of a pod that passed the checks, unless that is done.

        It is marked and deleted in the same transaction if the API can.
        """
        pending = self._pending.get(key)
        if passed is None or pending is None:
            return
        record = self.records.missing(key, pending.pod, pending.verdict, now)
        if self._in_transaction(pending, within_budget=passed.within_budget):
            self.records.requested(key, now)
            rules = frozenset() if pending.reported else rules_in(pending.verdict.because)
            version = pending.pod.metadata.resource_version
            self._effects.append(CommitEviction(key, pending.uid, version, record, rules))
        elif record is not None:
            self._effects.append(record)
        else:
            self._mark(key, passed, now)

    def _tried(
        self,
        key: Key,
        pending: PendingEviction,
        event: EvictionCommitted | RulesReported | CommitRejected,
        now: datetime,
    ) -> None:
        """Take the answer to a transaction."""
        verdict = pending.verdict
        if isinstance(event, EvictionCommitted) and isinstance(verdict, Evict):
            self._effects.append(Announce(key, pending.uid, EvictionStep.STARTED))
            self._evicted(key, pending, verdict, now)
            return
        self.records.requested(key, now, sent=False)
        if isinstance(event, RulesReported):
            pending.reported = True
            self._record(key, self._check_again(key, pending, now), now)
        else:
            # The pod may have changed since it was cached, or its record may not be allowed.
            pending.separate = True
            self._effects.append(ReadPod(key, pending.uid, rules_in(verdict.because)))

    def _in_transaction(self, pending: PendingEviction, *, within_budget: bool) -> bool:
        """Report whether a pod is evicted by one transaction.

        Not if its budgets are asked, and not if a rate limits it: a transaction that arrives after
        this process has ended would not be in the records that the next one counts.
        """
        if not self._options.transactions or within_budget or pending.separate:
            return False
        decision = pending.decision
        limited = isinstance(decision, DueEviction) and decision.limits
        return not limited and self._options.max_per_minute is None

    def _mark(self, key: Key, passed: Passed | None, now: datetime) -> None:
        """Mark a pod that passed, or delete it if it is marked or its budgets are asked.

        The pod was checked again for this after its record was written: a pod that is kept must
        not get the condition DisruptionTarget, which owners act on and which nothing removes soon,
        and a pod that budgets now decide about gets it from the eviction subresource.
        """
        pending = self._pending.get(key)
        if passed is None or pending is None:
            return
        self._effects.append(Announce(key, pending.uid, EvictionStep.STARTED))
        if not passed.within_budget and pending.read is not None and not pending.read.marked:
            self._effects.append(MarkPod(key, pending.uid))
        else:
            self._delete(key, passed, now)

    def _delete(self, key: Key, passed: Passed | None, now: datetime) -> None:
        """Delete a pod that passed the checks."""
        pending = self._pending.get(key)
        if passed is None or pending is None:
            return
        self.records.requested(key, now)
        uid, reasons = pending.uid, pending.verdict.because
        if passed.within_budget:
            self._effects.append(EvictPod(key, uid, reasons, pending.read))
        else:
            self._effects.append(DeletePod(key, uid, reasons))

    def _evicted(self, key: Key, pending: PendingEviction, verdict: Evict, now: datetime) -> None:
        del self._pending[key]
        self._exposures.note_evicted(pending.uid)
        self._checks.evicted(key)
        if not self._options.authoritative_cache:
            self.records.close(key, now)
            self.records.count(rules_in(verdict.because))
            self._effects.append(CountEviction(key, (now - verdict.since).total_seconds()))
        self._report(pending)

    def _gone(self, key: Key, pending: PendingEviction) -> None:
        """Note that another client deleted a pod."""
        self._exposures.note_evicted(pending.uid)
        self._forget(key)

    # -- records ----------------------------------------------------------------------------------

    def _settle_record(self, key: Key, pod: Pod | None, now: datetime) -> None:
        """Close or withdraw the open record of a pod that was deleted meanwhile."""
        record = self.records.open(key, now)
        if record is None or still_runs(pod, record.uid):
            return
        if not record.sent:
            self._withdraw(key, now)
            return
        self.records.close(key, now)
        self.records.count(record.rules, ours=record.ours)
        if record.ours:
            self._effects.append(CountEviction(key, 0.0))
        self._effects.append(ReportProgress(record.rules))

    def _withdraw(self, key: Key, now: datetime) -> None:
        record = self.records.open(key, now)
        if record is not None:
            record.confirmed = False
            withdraw = WithdrawRecord(key, record.uid, record.sent)
            if withdraw not in self._effects:
                self._effects.append(withdraw)

    def _report(self, *changed: PendingEviction) -> None:
        # A plan reports at its end, and counts by itself.
        if not self._options.authoritative_cache:
            reasons = (reason for pending in changed for reason in pending.reasons)
            self._effects.append(ReportProgress(rules_in(reasons)))
