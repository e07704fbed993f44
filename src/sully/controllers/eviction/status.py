"""Writes the status of rules: how many pods will be and were evicted, and what a rule would do.

The first report follows immediately after a rule is created or changed. After that Kubernetes waits
ten seconds after each eviction; we report immediately, but at most once a second, so that clients
that wait for the end of an eviction see it within a second. conditions.py has what is reported.

Rules with the effect None report what they would do. Almost any change may affect that, so these
previews are evaluated together, at most once a second, and less often where they take long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sully.api.resource.types import DeviceTaintRule
from sully.client.events import reference
from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Key
from sully.controllers.eviction.conditions import (
    ReportedStatus,
    crowding,
    encode_status,
    find,
    fitting,
    reported,
    selector_problem,
)
from sully.controllers.eviction.other_evictor import OtherEvictor
from sully.controllers.framework.conditions import encode_condition, preconditions
from sully.controllers.framework.controller import DONE, ControllerEnv, Result, Watch
from sully.controllers.framework.event_reasons import CEL_RUNTIME_ERROR
from sully.controllers.framework.sources import Channel, same_key
from sully.domain.devices.taints import NONE
from sully.domain.eviction.judge import Rules
from sully.domain.eviction.preview import preview
from sully.domain.eviction.status import (
    EVICTED,
    EVICTION_IN_PROGRESS,
    PAUSED,
    PREVIEW,
    SELECTOR_PROBLEM,
    Counts,
    Report,
    evicted,
    paused,
    report,
)
from sully.evictor.records import EvictionRecords
from sully.machinery.formats.timestamps import later
from sully.runtime.clock import Clock
from sully.views.devices.changes import InventoryChange, RuleChange
from sully.views.devices.exposures import Exposures, Problem
from sully.views.kinds import RULES

ALL_PREVIEWS = Key("", "")
"""The key of all previews in the queue of rules."""
PREVIEW_INTERVAL = 1.0
_NOW = timedelta(0)
PREVIEW_SHARE = 20
"""Previews take at most one of so many seconds."""


class Previews:
    """The rules with a preview, and when to evaluate them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: set[str] = set()
        self._next = 0.0
        self._spent = 0.0

    def follow(self, change: RuleChange) -> None:
        """Update which rules have a preview."""
        for rule in (change.old, change.new):
            if rule is not None:
                self._rules.discard(rule.metadata.name)
        if change.new is not None and change.new.spec.taint.effect == NONE:
            self._rules.add(change.new.metadata.name)

    def keys(self) -> tuple[Key, ...]:
        """Return the key to reconcile after a change."""
        return (ALL_PREVIEWS,) if self._rules else ()

    def wait(self) -> timedelta:
        """Return how long to wait before the next previews."""
        return timedelta(seconds=max(0.0, self._next - self._clock.monotonic()))

    def take_due(self) -> list[str]:
        """Return the rules to evaluate now."""
        pause = max(PREVIEW_INTERVAL, self._spent * PREVIEW_SHARE)
        self._next, self._spent = self._clock.monotonic() + pause, 0.0
        return sorted(self._rules)

    def report(self, rule: DeviceTaintRule, exposures: Exposures) -> Report:
        """Report what a rule would do."""
        started = self._clock.monotonic()
        condition = preview(exposures.preview(rule))
        self._spent += self._clock.monotonic() - started
        return condition


class StatusTiming(msgspec.Struct, frozen=True, kw_only=True):
    """How soon after an eviction the status is written, and at which least interval."""

    delay: timedelta
    interval: timedelta


AS_KUBERNETES = StatusTiming(delay=timedelta(seconds=10), interval=timedelta(seconds=10))
PROMPT = StatusTiming(delay=timedelta(0), interval=timedelta(seconds=1))


class _State(msgspec.Struct):
    """The state of a rule since the controller started."""

    uid: str
    is_due: bool = False
    """Whether it was created or changed, or time has come, since it was last evaluated."""
    due: datetime | None = None
    """When to evaluate it next, whatever is reported before; None: nothing to wait for."""
    observed_generation: int = 0
    """The generation that was last evaluated."""
    reported: ReportedStatus | None = None
    reported_at: datetime | None = None
    times: dict[str, datetime] = msgspec.field(default_factory=dict)
    warned: frozenset[str] = frozenset()


class RuleStatuses:
    """Writes the conditions of rules; a controller of its own, so that no pod delays them."""

    name = "device-taint-rule-status"

    def __init__(
        self,
        exposures: Exposures,
        records: EvictionRecords,
        env: ControllerEnv,
        field_manager: str,
        other: OtherEvictor | None = None,
    ) -> None:
        self._other = other
        self._exposures = exposures
        self._records = records
        self._transport, self._recorder, self._clock = env
        self._ours = exposures.policy.compat.reports_on_rules
        self._timing = PROMPT if self._ours else AS_KUBERNETES
        self._options = WriteOptions(field_manager=field_manager, force=True)
        self._states: dict[str, _State] = {}
        self._requeued: Channel[Key] = Channel()
        self._previews = Previews(self._clock)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for rules and what they select, and for pods that they evict."""
        yield Watch(self._exposures.inventory, self._affected)
        yield Watch(self._requeued, same_key)
        if self._ours:
            yield Watch(self._exposures.usage, lambda _: self._previews.keys())

    def _affected(self, change: InventoryChange) -> Iterator[Key]:
        for changed in change.rules:
            for rule in (changed.old, changed.new):
                if rule is not None:
                    yield Key("", rule.metadata.name)
            if self._ours:
                self._previews.follow(changed)
            if changed.new is not None:
                self._state_of(changed.new).is_due = True
        if not change.rules:
            for rule in self._exposures.inventory.content_rules():
                self._schedule(rule.metadata.name, self._state_of(rule))
        yield from self._previews.keys()

    def enqueue_rules(self, rules: Rules) -> None:
        """Report again on rules whose number of evicted or pending pods has changed."""
        for name, uid in rules:
            self._schedule(name, self._state(name, uid))

    def lags(self, rules: Rules) -> bool:
        """Report whether one of these rules changed, and its status was not computed since."""
        for name, uid in rules:
            rule = self._exposures.inventory.rule(name)
            if (
                rule is not None
                and self._state(name, uid).observed_generation != rule.metadata.generation
            ):
                return True
        return False

    async def reconcile(self, key: Key) -> Result:
        """Write the status of a rule if it is time and there is something new to report."""
        if not key.name:
            return self._schedule_previews()
        rule = self._exposures.inventory.rule(key.name)
        if rule is None:
            self._states.pop(key.name, None)
            return DONE
        state = self._state_of(rule)
        now = self._clock.now()
        if state.due is not None and state.due <= now:
            state.is_due, state.due = True, None
        if state.is_due:
            await self._evaluate(rule, state, now)
        return DONE if state.due is None else Result(requeue_after=max(state.due - now, _NOW))

    async def _evaluate(self, rule: DeviceTaintRule, state: _State, now: datetime) -> None:
        state.is_due = False
        earliest = self._not_before(rule, state, now)
        if now < earliest:
            state.due = earliest if state.due is None else min(state.due, earliest)
            return
        try:
            await self._sync(rule, state, now)
        except BaseException:
            state.is_due = True
            raise

    def _schedule_previews(self) -> Result:
        """Evaluate all rules with a preview, but not too often."""
        wait = self._previews.wait()
        if wait:
            return Result(requeue_after=wait)
        for name in self._previews.take_due():
            rule = self._exposures.inventory.rule(name)
            if rule is not None:
                self._schedule(name, self._state_of(rule))
        return DONE

    def _schedule(self, name: str, state: _State) -> None:
        later = self._clock.now() + self._timing.delay
        state.due = min(state.due, later) if state.due is not None else later
        self._requeued.send(Key("", name))

    def _state_of(self, rule: DeviceTaintRule) -> _State:
        return self._state(rule.metadata.name, rule.metadata.uid)

    def _state(self, name: str, uid: str) -> _State:
        state = self._states.get(name)
        if state is None or state.uid != uid:
            # The rule was recreated.
            state = self._states[name] = _State(uid)
        return state

    def _not_before(self, rule: DeviceTaintRule, state: _State, now: datetime) -> datetime:
        """Return when the status of this generation of a rule may be written again."""
        last_report, progress = state.reported or reported(rule), find(rule, EVICTION_IN_PROGRESS)
        last = state.reported_at or (progress.last_transition_time if progress else None)
        if (
            last is None
            or last_report is None
            or last_report.generation != rule.metadata.generation
        ):
            return now
        return later(last, self._timing.interval)

    async def _sync(self, rule: DeviceTaintRule, state: _State, now: datetime) -> None:
        state.observed_generation = rule.metadata.generation
        before = state.reported or reported(rule)
        new = ReportedStatus(rule.metadata.generation, fitting(rule, self._reports(rule, state)))
        # Where Kubernetes may evict, too, the status of each rule is written once after the start.
        if new != before or (self._other is not None and state.reported is None):
            await self._make_room(rule)
            body = {
                "metadata": {"name": rule.metadata.name, "uid": rule.metadata.uid},
                "status": {"conditions": encode_status(rule, new, before, state.times, now)},
            }
            written = await self._transport.apply(
                RULES.read_as(dict), body, self._options, "status"
            )
            if self._other is not None:
                await self._other.look_at(written)
            state.reported_at = now
        state.reported = new

    async def _make_room(self, rule: DeviceTaintRule) -> None:
        """Remove the oldest condition of other writers if theirs are all that a rule can have."""
        removed = crowding(rule) if self._ours else None
        if removed is None:
            return
        remaining = [encode_condition(one) for one in rule.status.conditions if one is not removed]
        patch = {**preconditions(rule.metadata), "status": {"conditions": remaining}}
        await self._transport.patch(RULES, key_of(rule), patch, subresource="status")
        text = f"Removed condition {removed.type}: {EVICTION_IN_PROGRESS} must be reported"
        self._recorder.event(reference(RULES, rule), "Warning", "TooManyConditions", text)

    def _reports(self, rule: DeviceTaintRule, state: _State) -> Iterator[tuple[str, Report | None]]:
        yield EVICTION_IN_PROGRESS, self._progress(rule, state)
        if not self._ours:
            return
        yield EVICTED, evicted(self._records.evicted(state.uid, self._clock.now()))
        yield PAUSED, paused(self._exposures.pause_reason(rule))
        problems = list(self._exposures.problems(rule))
        self._warn(rule, state, problems)
        yield SELECTOR_PROBLEM, selector_problem(problems)
        if rule.spec.taint.effect == NONE:
            yield PREVIEW, self._previews.report(rule, self._exposures)

    def _progress(self, rule: DeviceTaintRule, state: _State) -> Report:
        effect, generation = rule.spec.taint.effect, rule.metadata.generation
        if (
            self._ours
            and effect == NONE
            and state.reported is not None
            and state.reported.generation == generation
        ):
            # The text promises not to be updated. Kubernetes does if a report was already due.
            return state.reported.reports[EVICTION_IN_PROGRESS]
        effects = self._exposures.policy.effects
        number = self._records.evicted_since_start(state.uid)
        if effect not in (NONE, *effects):
            # The text has no counts.
            return report(effect, Counts(evicted=number))
        return report(effect, self._exposures.counts(rule, evicted=number), effects)

    def _warn(self, rule: DeviceTaintRule, state: _State, problems: list[Problem]) -> None:
        texts = frozenset(problem.choice.problem for problem in problems if problem.choice.own)
        for text in sorted(texts - state.warned):
            self._recorder.event(reference(RULES, rule), "Warning", CEL_RUNTIME_ERROR, text)
        state.warned = texts
