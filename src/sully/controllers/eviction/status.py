"""Keeps the status of rules: how many pods must leave, and how many left.

The first word comes at once after a rule was made or changed. After that Kubernetes waits ten
seconds after each eviction before it speaks again; we speak at once, but at most once a second, so
that whoever waits for the end of an eviction knows within a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sully.api.resource.types import DeviceTaintRule
from sully.client.events import EventRecorder, reference
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.framework import DONE, Result, Watch
from sully.domain.eviction import EVICTING, Reason
from sully.domain.evictionstatus import CONDITION, Counts, Report, report
from sully.domain.taints import NONE
from sully.machinery.meta import Condition
from sully.machinery.timestamps import format_time
from sully.runtime.clock import Clock
from sully.views.changes import Change
from sully.views.exposures import Exposures, Problem
from sully.views.kinds import RULES

SELECTOR_PROBLEM = "sully.dev/SelectorProblem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How soon after an eviction the status follows, and how often at most."""

    delay: timedelta
    interval: timedelta


REFERENCE = Pace(delay=timedelta(seconds=10), interval=timedelta(seconds=10))
PROMPT = Pace(delay=timedelta(0), interval=timedelta(seconds=1))


@dataclass(frozen=True, slots=True)
class _Said:
    """What a status says of one generation of a rule."""

    generation: int
    report: Report
    trouble: Report | None = None


@dataclass(slots=True)
class _State:
    """What is known of a rule since the controller started."""

    uid: str
    evicted: int = 0
    look_at: datetime | None = None
    """When to look at it next; None when nothing happened since the last look."""
    said: _Said | None = None
    said_at: datetime | None = None
    warned: frozenset[str] = frozenset()


class Requests:
    """A source of keys that a controller asks for by itself."""

    def __init__(self) -> None:
        self._asked: list[Callable[[Key], None]] = []

    def add(self, key: Key) -> None:
        """Have a key looked at."""
        for add in self._asked:
            add(key)

    def enqueue(
        self, add: Callable[[Key], None], _: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys that are asked for to a queue."""
        self._asked.append(add)
        return lambda: self._asked.remove(add)


class RuleStatuses:
    """Writes the conditions of rules; a controller of its own, so that no pod delays them."""

    name = "device-taint-rule-status"

    def __init__(
        self,
        *,
        exposures: Exposures,
        transport: Transport,
        recorder: EventRecorder,
        clock: Clock,
        manager: str,
        pace: Pace = PROMPT,
    ) -> None:
        self._exposures = exposures
        self._transport = transport
        self._recorder = recorder
        self._clock = clock
        self._options = WriteOptions(field_manager=manager, force=True)
        self._pace = pace
        self._states: dict[str, _State] = {}
        self._requests = Requests()

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for rules and what they select, and for pods that leave because of them."""
        yield Watch(self._exposures.inventory, self._touched)
        yield Watch(self._requests, lambda key: (key,))

    def _touched(self, change: Change) -> Iterator[Key]:
        for each in change.rules:
            for rule in (each.old, each.new):
                if rule is not None:
                    yield Key("", rule.metadata.name)
            if each.new is not None:
                self._of(each.new).look_at = self._clock.now()
        if not change.rules:
            for rule in self._exposures.inventory.content_rules():
                self._look_later(rule.metadata.name, self._of(rule))

    def concern(self, reasons: Iterable[Reason]) -> None:
        """Note that a pod must leave, or need not any more, because of these rules."""
        for name, uid in _rules(reasons):
            self._look_later(name, self._state(name, uid))

    def evicted(self, reasons: Iterable[Reason]) -> None:
        """Count a pod that left because of these rules."""
        for name, uid in _rules(reasons):
            state = self._state(name, uid)
            state.evicted += 1
            self._look_later(name, state)

    async def reconcile(self, key: Key) -> Result:
        """Write the status of a rule if it is time and there is something new to say."""
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

    def _look_later(self, name: str, state: _State) -> None:
        later = self._clock.now() + self._pace.delay
        state.look_at = min(state.look_at, later) if state.look_at is not None else later
        self._requests.add(Key("", name))

    def _of(self, rule: DeviceTaintRule) -> _State:
        return self._state(rule.metadata.name, rule.metadata.uid)

    def _state(self, name: str, uid: str) -> _State:
        state = self._states.get(name)
        if state is None or state.uid != uid:
            # Another rule took the name: its story begins anew.
            state = self._states[name] = _State(uid)
        return state

    def _quiet_until(self, rule: DeviceTaintRule, state: _State, now: datetime) -> datetime:
        """Return until when nothing more is to be said about this generation of a rule."""
        said, found = state.said or _stands(rule), _condition(rule)
        spoken = state.said_at or (found.last_transition_time if found is not None else None)
        if spoken is None or said is None or said.generation != rule.metadata.generation:
            return now
        return spoken + self._pace.interval

    async def _look(self, rule: DeviceTaintRule, state: _State, now: datetime) -> None:
        said = self._report(rule, state)
        problems = list(self._exposures.problems(rule))
        self._warn(rule, state, problems)
        trouble = _trouble(problems)
        news = _Said(rule.metadata.generation, said, trouble)
        if news == (state.said or _stands(rule)):
            return
        conditions = [_written(CONDITION, said, rule, now)]
        if trouble is not None:
            conditions.append(_written(SELECTOR_PROBLEM, trouble, rule, now))
        body = {
            "metadata": {"name": rule.metadata.name, "uid": rule.metadata.uid},
            "status": {"conditions": conditions},
        }
        await self._transport.apply(RULES, body, self._options, "status")
        state.said, state.said_at = news, now

    def _report(self, rule: DeviceTaintRule, state: _State) -> Report:
        effect, generation = rule.spec.taint.effect, rule.metadata.generation
        if effect == NONE and state.said is not None and state.said.generation == generation:
            # The text promises not to be updated.
            return state.said.report
        if effect not in (NONE, *EVICTING):
            # Nothing is counted of what nothing is said about.
            return report(effect, Counts(evicted=state.evicted))
        return report(effect, self._exposures.counts(rule, evicted=state.evicted))

    def _warn(self, rule: DeviceTaintRule, state: _State, problems: list[Problem]) -> None:
        texts = frozenset(each.choice.problem for each in problems if each.choice.own)
        for text in sorted(texts - state.warned):
            self._recorder.event(reference(RULES, rule), "Warning", "CELRuntimeError", text)
        state.warned = texts


def _rules(reasons: Iterable[Reason]) -> set[tuple[str, str]]:
    return {
        (reason.taint.origin.name, reason.rule) for reason in reasons if reason.rule is not None
    }


def _condition(rule: DeviceTaintRule, type_: str = CONDITION) -> Condition | None:
    return next((each for each in rule.status.conditions if each.type == type_), None)


def _stands(rule: DeviceTaintRule) -> _Said | None:
    """Return what the status said before we started, in the form of what we would say."""
    found, trouble = _condition(rule), _condition(rule, SELECTOR_PROBLEM)
    if found is None:
        return None
    return _Said(
        found.observed_generation, _read(found), _read(trouble) if trouble is not None else None
    )


def _read(condition: Condition) -> Report:
    return Report(condition.status, condition.reason, condition.message)


def _trouble(problems: list[Problem]) -> Report | None:
    if not problems:
        return None
    first = problems[0]
    devices = "1 device" if len(problems) == 1 else f"{len(problems)} devices"
    text = f"{devices} not selected because of errors: {first.device}: {first.choice.problem}"
    return Report("True", "SelectorFailed", text)


def _written(type_: str, said: Report, rule: DeviceTaintRule, now: datetime) -> dict[str, Any]:
    return {
        "type": type_,
        "status": said.status,
        "reason": said.reason,
        "message": said.message,
        "observedGeneration": rule.metadata.generation,
        "lastTransitionTime": format_time(now),
    }
