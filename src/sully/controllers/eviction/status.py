"""Writes the status of rules: how many pods will be and were evicted, and what a rule would do.

The first report comes immediately after a rule was created or changed. After that Kubernetes waits
ten seconds after each eviction; we report immediately, but at most once a second, so that whoever
waits for the end of an eviction knows within a second. What is reported is put together in
conditions.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sully.api.resource.types import DeviceTaintRule
from sully.client.events import EventRecorder, reference
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.eviction.conditions import (
    ReportedStatus,
    find,
    fitting,
    reported,
    selector_problem,
    written,
)
from sully.controllers.eviction.previews import Previews
from sully.controllers.eviction.requests import Requests
from sully.controllers.framework import DONE, Result, Watch
from sully.domain.devices.taints import NONE
from sully.domain.eviction.judge import Rules
from sully.domain.eviction.status import (
    CONDITION,
    EVICTED,
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
from sully.runtime.clock import Clock
from sully.views.devices.changes import InventoryChange
from sully.views.devices.exposures import Exposures, Problem
from sully.views.kinds import RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTiming:
    """How soon after an eviction the status follows, and how often at most."""

    delay: timedelta
    interval: timedelta


AS_KUBERNETES = StatusTiming(delay=timedelta(seconds=10), interval=timedelta(seconds=10))
PROMPT = StatusTiming(delay=timedelta(0), interval=timedelta(seconds=1))


@dataclass(slots=True)
class _State:
    """What is known of a rule since the controller started."""

    uid: str
    look_at: datetime | None = None
    """When to look at it next; None when nothing happened since the last look."""
    seen: int = 0
    """The generation that was last looked at."""
    reported: ReportedStatus | None = None
    reported_at: datetime | None = None
    times: dict[str, datetime] = field(default_factory=dict)
    warned: frozenset[str] = frozenset()


class RuleStatuses:
    """Writes the conditions of rules; a controller of its own, so that no pod delays them."""

    name = "device-taint-rule-status"

    def __init__(
        self,
        exposures: Exposures,
        records: EvictionRecords,
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
        manager: str,
    ) -> None:
        self._exposures = exposures
        self._records = records
        self._clock = clock
        self._ours = exposures.policy.compat.reports_on_rules
        self._timing = PROMPT if self._ours else AS_KUBERNETES
        self._transport = transport
        self._recorder = recorder
        self._options = WriteOptions(field_manager=manager, force=True)
        self._states: dict[str, _State] = {}
        self._requests = Requests()
        self._previews = Previews(self._clock)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for rules and what they select, and for pods that they evict."""
        yield Watch(self._exposures.inventory, self._touched)
        yield Watch(self._requests, lambda key: (key,))
        if self._ours:
            yield Watch(self._exposures.usage, lambda _: self._previews.touched())

    def _touched(self, change: InventoryChange) -> Iterator[Key]:
        for changed in change.rules:
            for rule in (changed.old, changed.new):
                if rule is not None:
                    yield Key("", rule.metadata.name)
            if self._ours:
                self._previews.follow(changed)
            if changed.new is not None:
                self._of(changed.new).look_at = self._clock.now()
        if not change.rules:
            for rule in self._exposures.inventory.content_rules():
                self._look_later(rule.metadata.name, self._of(rule))
        yield from self._previews.touched()

    def concern(self, rules: Rules) -> None:
        """Note that the number of pods that rules evicted or will evict has changed."""
        for name, uid in rules:
            self._look_later(name, self._state(name, uid))

    def lags(self, rules: Rules) -> bool:
        """Report whether one of these rules was created or changed, and has not reported since."""
        for name, uid in rules:
            rule = self._exposures.inventory.rule(name)
            if rule is not None and self._state(name, uid).seen != rule.metadata.generation:
                return True
        return False

    async def reconcile(self, key: Key) -> Result:
        """Write the status of a rule if it is time and there is something new to report."""
        if not key.name:
            return self._look_at_previews()
        rule = self._exposures.inventory.rule(key.name)
        if rule is None:
            self._states.pop(key.name, None)
            return DONE
        state = self._of(rule)
        if state.look_at is None:
            return DONE
        now = self._clock.now()
        state.look_at = max(state.look_at, self._quiet_until(rule, state, now))
        if now < state.look_at:
            return Result(requeue_after=state.look_at - now)
        state.look_at = None
        try:
            await self._look(rule, state, now)
        except BaseException:
            state.look_at = now
            raise
        return DONE

    def _look_at_previews(self) -> Result:
        """Have all rules with a preview looked at, but not too often."""
        wait = self._previews.wait()
        if wait:
            return Result(requeue_after=wait)
        for name in self._previews.due():
            rule = self._exposures.inventory.rule(name)
            if rule is not None:
                self._look_later(name, self._of(rule))
        return DONE

    def _look_later(self, name: str, state: _State) -> None:
        later = self._clock.now() + self._timing.delay
        state.look_at = min(state.look_at, later) if state.look_at is not None else later
        self._requests.add(Key("", name))

    def _of(self, rule: DeviceTaintRule) -> _State:
        return self._state(rule.metadata.name, rule.metadata.uid)

    def _state(self, name: str, uid: str) -> _State:
        state = self._states.get(name)
        if state is None or state.uid != uid:
            # Another rule has the name now.
            state = self._states[name] = _State(uid)
        return state

    def _quiet_until(self, rule: DeviceTaintRule, state: _State, now: datetime) -> datetime:
        """Return until when nothing more is reported about this generation of a rule."""
        known, progress = state.reported or reported(rule), find(rule, CONDITION)
        last = state.reported_at or (progress.last_transition_time if progress else None)
        if last is None or known is None or known.generation != rule.metadata.generation:
            return now
        return last + self._timing.interval

    async def _look(self, rule: DeviceTaintRule, state: _State, now: datetime) -> None:
        state.seen = rule.metadata.generation
        before = state.reported or reported(rule)
        new = ReportedStatus(rule.metadata.generation, fitting(rule, self._reports(rule, state)))
        if new != before:
            body = {
                "metadata": {"name": rule.metadata.name, "uid": rule.metadata.uid},
                "status": {"conditions": written(rule, new, before, state.times, now)},
            }
            await self._transport.apply(RULES, body, self._options, "status")
            state.reported_at = now
        state.reported = new

    def _reports(self, rule: DeviceTaintRule, state: _State) -> Iterator[tuple[str, Report | None]]:
        yield CONDITION, self._progress(rule, state)
        if not self._ours:
            return
        yield EVICTED, evicted(self._records.evicted(state.uid, self._clock.now()))
        yield PAUSED, paused(self._exposures.pause_reason(rule))
        problems = list(self._exposures.problems(rule))
        self._warn(rule, state, problems)
        yield SELECTOR_PROBLEM, selector_problem(problems)
        if rule.spec.taint.effect == NONE:
            yield PREVIEW, self._previews.of(rule, self._exposures)

    def _progress(self, rule: DeviceTaintRule, state: _State) -> Report:
        effect, generation = rule.spec.taint.effect, rule.metadata.generation
        if (
            effect == NONE
            and state.reported is not None
            and state.reported.generation == generation
        ):
            # The text promises not to be updated.
            return state.reported.reports[CONDITION]
        effects, number = (
            self._exposures.policy.effects,
            self._records.evicted_since_start(state.uid),
        )
        if effect not in (NONE, *effects):
            # Nothing is counted of what nothing is reported about.
            return report(effect, Counts(evicted=number))
        return report(effect, self._exposures.counts(rule, evicted=number), effects)

    def _warn(self, rule: DeviceTaintRule, state: _State, problems: list[Problem]) -> None:
        texts = frozenset(problem.choice.problem for problem in problems if problem.choice.own)
        for text in sorted(texts - state.warned):
            self._recorder.event(reference(RULES, rule), "Warning", "CELRuntimeError", text)
        state.warned = texts
