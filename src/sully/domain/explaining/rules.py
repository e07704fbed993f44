"""What a DeviceTaintRule does and why: whom it makes leave, what it keeps off, or why nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import EvictionRecord, TaintRecord
from sully.domain.devices.rules import UNKNOWN
from sully.domain.devices.taints import NO_EXECUTE_WITH_BUDGET, NONE, PREFER_NO_SCHEDULE, blocks
from sully.domain.eviction.judge import USUAL, Terms
from sully.domain.eviction.preview import Preview, preview
from sully.domain.eviction.records import EXPIRY
from sully.domain.eviction.status import Counts
from sully.domain.explaining.sources import of_rule
from sully.domain.explaining.story import Explanation, Table, tables
from sully.domain.explaining.wording import (
    are,
    ended,
    listed,
    mark,
    moment,
    number,
    quoted,
    since,
    which,
)
from sully.machinery.timestamps import format_time

_MOST_ROWS: Final = 50


@dataclass(frozen=True, slots=True, order=True)
class Leaver:
    """A pod that a rule makes leave."""

    due: datetime
    pod: str
    node: str = ""
    device: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFacts:
    """What is known of a rule."""

    rule: DeviceTaintRule
    now: datetime
    counts: Counts
    leavers: tuple[Leaver, ...] = ()
    leaving: tuple[Leaver, ...] = ()
    """Those that were made to leave and are not gone; due when their grace ends."""
    complete: bool = True
    """False: whoever evicts keeps no records, so more may have left than anybody knows of."""
    would: Preview | None = None
    """What it would do if it evicted, where it does not."""
    kept_off: tuple[str, ...] = ()
    """Pods without a node that it keeps off devices."""
    mismatch: str = ""
    """Which of its criteria no device meets."""
    problem: str = ""
    """Why it cannot tell of some devices whether it selects them, and of how many."""
    record: TaintRecord | None = None
    evictions: tuple[EvictionRecord, ...] = ()
    terms: Terms = USUAL


def explain_rule(facts: RuleFacts) -> Explanation:
    """Say what a rule does, and why not more."""
    return _selects_nothing(facts) or _without_eviction(facts) or _evicting(facts)


def _story(facts: RuleFacts, state: str, cause: str, *summary: str, **more: Any) -> Explanation:
    rule = facts.rule
    return Explanation(
        kind="DeviceTaintRule",
        name=rule.metadata.name,
        state=state,
        cause=cause,
        summary=(_what(facts), *summary, *_and_also(facts)),
        details=tables(
            _selection(facts),
            _leavers(facts),
            _on_their_way(facts),
            _changes(facts.record),
            _left(facts),
        ),
        **more,
    )


def _what(facts: RuleFacts) -> str:
    rule, source = facts.rule, of_rule(facts.rule)
    by = f" by {source.by}" if source.by else ""
    why = f", reason {quoted(source.why)}" if source.why else ""
    at = f" at {moment(source.since, facts.now)}" if source.since is not None else ""
    made = f", made{by}{at}" if by or at else ""
    aside = f"{made}{why}," if made or why else ""
    devices = which(rule.spec.device_selector)
    return f"Rule {rule.metadata.name}{aside} puts taint {mark(rule.spec.taint)} on {devices}."


def _and_also(facts: RuleFacts) -> Iterator[str]:
    if facts.problem:
        yield f"It cannot tell whether it selects some devices: {ended(facts.problem)}"
    if facts.kept_off:
        names = listed(facts.kept_off)
        count = len(facts.kept_off)
        yield f"{number(count, 'pod')} without a node {are(count)} kept off by it: {names}."
    until = of_rule(facts.rule).until
    if until is not None:
        ends = "should have ended" if until <= facts.now else "ends"
        yield f"It {ends} by itself at {moment(until, facts.now)}."


def _selects_nothing(facts: RuleFacts) -> Explanation | None:
    rule, counts = facts.rule, facts.counts
    if rule.metadata.deletion_timestamp is not None:
        at = since(rule.metadata.deletion_timestamp, facts.now)
        waits = listed(rule.metadata.finalizers)
        text = f"It is being deleted{at}" + (f" and waits for {waits}." if waits else ".")
        return _story(facts, "Deleting", "Deleted", text)
    if rule.spec.device_selector is None:
        help_ = "Give it a deviceSelector; {} stands for every device."
        text = "It has no deviceSelector, so it selects no device at all."
        return _story(facts, "Idle", "NoSelector", text, remedies=(help_,))
    if counts.published or counts.allocated:
        return None
    if facts.problem:
        help_ = "Correct the expression or name a class that exists."
        if UNKNOWN.problem in facts.problem:
            help_ = "Select devices whose slice is gone by driver, pool and device."
        return _story(facts, "Idle", "SelectorFails", "It selects no device.", remedies=(help_,))
    text = f"It selects no device: {facts.mismatch or 'none meets all of its criteria'}."
    help_ = "'sully devices' lists the devices there are."
    return _story(facts, "Idle", "NoDevice", text, remedies=(help_,))


def _without_eviction(facts: RuleFacts) -> Explanation | None:
    taint = facts.rule.spec.taint
    if taint.effect in facts.terms.effects:
        return None
    selected = f"It selects {_devices(facts)}"
    if taint.effect == NONE:
        would = f" With NoExecute: {preview(facts.would).message}" if facts.would else ""
        return _story(facts, "Preview", "NoEffect", f"{selected}, and does nothing.{would}")
    if blocks(taint):
        text = (
            f"{selected}. New pods get none of them unless they tolerate it; nobody has to leave."
        )
        return _story(facts, "Blocking", "KeepsNewPodsOff", text)
    if taint.effect == PREFER_NO_SCHEDULE:
        text = f"{selected}. New pods get other devices first, where the gate for that is on."
        return _story(facts, "Advising", "PreferNoSchedule", text)
    text = f"{selected}, but nobody knows the effect {taint.effect}, so it does nothing."
    return _story(facts, "Idle", "UnknownEffect", text)


def _devices(facts: RuleFacts) -> str:
    counts = facts.counts
    return f"{number(counts.published, 'published device')}, {counts.allocated} in use"


def _evicting(facts: RuleFacts) -> Explanation:
    selected = f"It selects {_devices(facts)}"
    paused = of_rule(facts.rule).paused
    name = facts.rule.metadata.name
    if paused is not None:
        why = f": {quoted(paused)}" if paused != "true" else ""
        count = facts.counts.pods
        text = f"{selected}, and eviction is paused{why}; {number(count, 'pod')} would have to go."
        help_ = f"Resume it with: sully evictions resume {name}"
        return _story(facts, "Paused", "EvictionPaused", text, remedies=(help_,))
    until = of_rule(facts.rule).until
    leavers = [each for each in facts.leavers if until is None or until > each.due]
    if facts.leavers and not leavers:
        pods = number(len(facts.leavers), "pod")
        text = f"{selected}. Nobody has to leave: it ends before the tolerations of {pods} do."
        return _story(facts, "Done", "TaintEndsFirst", text)
    if not leavers:
        return _done(facts, selected)
    due = [each for each in leavers if each.due <= facts.now]
    pause = f"sully evictions pause {name}, or " if facts.complete else ""
    help_ = f"To stop: {pause}delete the rule; who is gone stays gone."
    others = _others(facts)
    if due:
        count = len(leavers)
        some = "" if len(due) == count else f", {len(due)} of them"
        text = f"{selected}. {number(count, 'pod')} must leave{some} now{_pace(facts)}{others}."
        return _story(facts, "Evicting", "PodsMustLeave", text, remedies=(help_,))
    first = min(leavers)
    begins = first.due == facts.rule.spec.taint.time_added
    cause, when = ("TaintBegins", "at") if begins else ("ToleratedForNow", "tolerates it until")
    text = (
        f"{selected}. {number(len(leavers), 'pod')} must leave later; the first,"
        f" {first.pod}, {when} {moment(first.due, facts.now)}"
        f"{', from when on the taint counts' if begins else ''}{others}."
    )
    return _story(facts, "Evicting", cause, text, remedies=(help_,))


def _pace(facts: RuleFacts) -> str:
    taint = facts.rule.spec.taint
    rate = taint.evictions_per_second
    pace = f", at {number(rate, 'pod')} a second" if rate is not None else ""
    budgets = ", as PodDisruptionBudgets allow" if taint.effect == NO_EXECUTE_WITH_BUDGET else ""
    return f"{pace}{budgets}"


def _others(facts: RuleFacts) -> str:
    count = len(facts.leaving)
    return f"; {number(count, 'more pod')} {are(count)} on the way out" if count else ""


def _done(facts: RuleFacts, selected: str) -> Explanation:
    evicted, forgotten = facts.counts.evicted, tuple(_forgotten(facts))
    if facts.leaving:
        return _last_ones(facts, selected)
    if evicted:
        least = "" if facts.complete else "At least "
        text = (
            f"{selected}. {least}{number(evicted, 'pod')} left because of it, and nobody is to"
            " follow."
        )
        return _story(facts, "Done", "Completed", text, *forgotten)
    if facts.counts.allocated:
        text = f"{selected}, and everybody there tolerates it or holds no device any more."
        return _story(facts, "Done", "EverybodyTolerates", text, *forgotten)
    text = f"{selected}: there is nobody to evict."
    return _story(facts, "Done", "NobodyThere", text, *forgotten)


def _last_ones(facts: RuleFacts, selected: str) -> Explanation:
    count, last = len(facts.leaving), max(facts.leaving).due
    until = f"until {moment(last, facts.now)} at the latest"
    if last <= facts.now:
        until = f"which should have ended at {moment(last, facts.now)}"
    text = (
        f"{selected}. {number(count, 'pod')} {are(count)} on the way out because of it, {until};"
        " nobody else has to leave."
    )
    return _story(facts, "Evicting", "PodsLeaving", text, *_forgotten(facts))


def _forgotten(facts: RuleFacts) -> Iterator[str]:
    """Say that nobody knows how many left, where it is so."""
    if not facts.complete:
        yield (
            "How many were evicted so far is not recorded here: the controller that evicts counts"
            " only since it was started. Sully's own keeps records (sully install --evictor sully)."
        )


# -- gone -----------------------------------------------------------------------------------------


def explain_lifted(
    record: TaintRecord, evictions: tuple[EvictionRecord, ...], now: datetime
) -> Explanation:
    """Say what became of a rule that is gone."""
    spec, status = record.spec, record.status
    by = f" by {spec.created_by}" if spec.created_by else ""
    why = f", reason {quoted(status.description or spec.description)}"
    what = (
        f"Rule {spec.rule.name}, made{by} at {moment(spec.added_time, now)}"
        f"{why if status.description or spec.description else ''}, put taint"
        f" {mark(status.taint or spec.taint)} on"
        f" {which(status.device_selector or spec.device_selector)}."
    )
    expired = status.lifted_by == EXPIRY
    deleter = f" by {status.lifted_by}" if status.lifted_by else ""
    gone = "ended by itself" if expired else f"was deleted{deleter}"
    at = f" at {moment(status.lifted_time, now)}" if status.lifted_time is not None else ""
    return Explanation(
        kind="DeviceTaintRule",
        name=spec.rule.name,
        state="Lifted",
        cause="Expired" if expired else "Deleted",
        summary=(what, f"It {gone}{at}. {number(status.evicted, 'pod')} left because of it."),
        because=(f"TaintRecord/{record.metadata.name}",),
        details=tables(_changes(record), _evictions(evictions)),
    )


# -- details --------------------------------------------------------------------------------------


def _selection(facts: RuleFacts) -> Table:
    counts = facts.counts
    rows = (
        ("published devices", str(counts.published)),
        ("allocated devices", str(counts.allocated)),
        ("pods to leave", str(counts.pods)),
        *((("pods on the way out", str(len(facts.leaving))),) if facts.leaving else ()),
        ("pods evicted", str(counts.evicted) if facts.complete else f"at least {counts.evicted}"),
    )
    return Table("Selection", ("what", "number"), rows)


def _leavers(facts: RuleFacts) -> Table:
    return _pods("Pods that must leave", "due", facts.leavers, facts.now)


def _on_their_way(facts: RuleFacts) -> Table:
    return _pods("Pods on the way out", "grace ends", facts.leaving, facts.now)


def _pods(title: str, when: str, pods: tuple[Leaver, ...], now: datetime) -> Table:
    rows = [(each.pod, each.node, each.device, moment(each.due, now)) for each in sorted(pods)]
    shown = rows[:_MOST_ROWS]
    if len(rows) > _MOST_ROWS:
        shown.append((f"and {len(rows) - _MOST_ROWS} more", "", "", ""))
    return Table(title, ("pod", "node", "device", when), tuple(shown))


def _left(facts: RuleFacts) -> Table:
    return _evictions(facts.evictions)


def _evictions(evictions: tuple[EvictionRecord, ...]) -> Table:
    ordered = sorted(evictions, key=lambda each: each.spec.evicted_time, reverse=True)
    rows = tuple(
        (
            f"{each.spec.pod.namespace}/{each.spec.pod.name}",
            each.spec.pod.node,
            format_time(each.spec.evicted_time),
        )
        for each in ordered[:_MOST_ROWS]
    )
    return Table("Pods that left", ("pod", "node", "evicted"), rows)


def _changes(record: TaintRecord | None) -> Table:
    changes = record.status.changes if record is not None else ()
    rows = tuple((format_time(each.time), each.what) for each in changes)
    return Table("Changes", ("time", "what"), rows)
