"""Waits for the evictions of rules and shows their progress, from their status and records.

Where another controller evicts, its status is late and less detailed, so the pods themselves are
watched. progress_bar.py draws it.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TextIO

import msgspec

from sully.cli.change.progress_bar import BarState, ProgressBar
from sully.cli.change.recorded_counts import (
    FEW,
    RecordedCounts,
    count_records,
    evicted_total,
    recorded_counts,
)
from sully.cli.client.evictor import sully_evicts_at
from sully.cli.client.options import server_flags
from sully.cli.client.session import Session
from sully.client.transport import TRANSIENT, Key
from sully.domain.devices.rules import rule_rate
from sully.domain.eviction.status import EVICTION_IN_PROGRESS, PAUSED, parse_kubernetes_message
from sully.machinery.errors import Forbidden, NotFound
from sully.machinery.formats.plurals import number_of
from sully.views.kinds import CLAIMS, CONSUMER_PODS, RULES
from sully.views.snapshot.kinds import DEVICES
from sully.views.snapshot.loading import list_all

if TYPE_CHECKING:
    from sully.api.resource.eviction_rate import EvictionRate
    from sully.api.resource.types import DeviceTaintRule
    from sully.views.devices.exposures import Exposures

POLL_SECONDS = 0.5
"""The status is written at most once a second."""
OUTAGE = timedelta(minutes=1)
"""How long the server may be unreachable; a restart takes less."""


def state_of(
    rules: "Sequence[DeviceTaintRule]", recorded: RecordedCounts, before: int = 0
) -> BarState:
    """Read the status of rules and their recorded counts, without the pods evicted `before`."""

    observed, pending, reported, paused = True, 0, 0, False
    current: list[DeviceTaintRule] = []
    rate = rule_rate(rules[0]) if rules else None
    for rule in rules:
        conditions = {condition.type: condition for condition in rule.status.conditions}
        progress = conditions.get(EVICTION_IN_PROGRESS)
        if progress is None or progress.observed_generation != rule.metadata.generation:
            observed = False
            continue
        current.append(rule)
        counts = parse_kubernetes_message(rule.status.conditions)
        pending += counts.pending
        reported += counts.since_start
        paused = paused or PAUSED in conditions
    evicted = max(0, evicted_total(current, recorded) - before)
    unreported = max(0, evicted - max(0, reported - before))
    return BarState(
        observed,
        pending,
        evicted,
        paused,
        rate=rate,
        deleted=not rules,
        counted_twice=min(pending, unreported),
    )


class FollowedEviction(msgspec.Struct, frozen=True):
    """The rules that evict pods, and what was planned for them."""

    names: Sequence[str]
    rate: "EvictionRate | None"
    """None: no limit."""
    ends: datetime | None = None
    """When the last pod is evicted by the plan: pods may tolerate the taint for a while."""
    pods: "Mapping[Key, str]" = msgspec.field(default_factory=dict)
    """The pods evicted by the plan, with their uids."""
    group: str = ""
    """The label that only these rules have; empty if there is none."""
    before: int = 0
    """How many pods the rules had evicted before they were changed."""
    expires: bool = False
    """Whether the rules expire, and the plan considers every pod."""
    undo: str = ""
    """The command that undoes the change, where deleting the rules is not enough."""


Poll = Callable[[], Awaitable[BarState]]


async def follow(session: Session, eviction: FollowedEviction, out: TextIO = sys.stdout) -> bool:
    """Show progress until no more pods are to be evicted; report whether all of the plan were.

    Ctrl-C only stops waiting.
    """

    bar = ProgressBar(session, eviction, out)
    ours = True
    try:
        ours = await sully_evicts_at(session)
        if ours:
            return await watch(session, bar, lambda: _by_status(session, eviction))
        return await _by_pods(session, eviction, bar)
    except (asyncio.CancelledError, *TRANSIENT):
        flags = server_flags(session.options)
        bar.finish(still_evicting(eviction, pausable=ours, flags=flags))
        raise
    finally:
        bar.close()


async def watch(session: Session, bar: ProgressBar, poll: Poll) -> bool:
    """Show progress until it is over; report whether all pods of the plan were evicted."""
    while True:
        state = await _through_outages(session, bar, poll)
        bar.show(state)
        if state.over:
            bar.finish(outcome(state))
            return not state.remaining
        await session.clock.sleep(POLL_SECONDS)


def outcome(state: BarState) -> str:
    some = f", {state.terminating} still terminating" if state.terminating else ""
    rest = f", {number_of(state.remaining, 'pod')} not evicted" if state.remaining else ""
    if state.deleted:
        return f"The rule was deleted or has expired{rest}."
    if state.tolerating:
        rest += f", {number_of(state.tolerating, 'pod')} tolerating the taint until it expires"
    return f"{number_of(state.evicted, 'pod')} evicted{some}{rest}."


async def _through_outages(session: Session, bar: ProgressBar, poll: Poll) -> BarState:

    until = session.clock.now() + OUTAGE
    while True:
        try:
            return await poll()
        except TRANSIENT:
            if session.clock.now() > until:
                raise
            bar.wait()
            await session.clock.sleep(POLL_SECONDS)


async def _by_status(session: Session, eviction: FollowedEviction) -> BarState:
    rules = await _rules(session, eviction.names)
    recorded = await recorded_counts(session, rules)
    state = state_of(rules, recorded, eviction.before)
    if state.over and recorded is not None:
        # A TaintRecord is up to a second late.
        recorded = await count_records(session, recorded, eviction.pods)
        state = state_of(rules, recorded, eviction.before)
    state = without_tolerating(state, eviction)
    return await with_remaining(session, eviction, state)


def without_tolerating(state: BarState, eviction: FollowedEviction) -> BarState:
    """Return the progress without pods that tolerate the taint for longer than it lasts.

    The status counts them as pending, but they are never evicted.
    """
    done = state.observed and not state.paused and state.evicted >= len(eviction.pods)
    tolerating = state.pending if eviction.expires and done else 0
    return replace(state, pending=state.pending - tolerating, tolerating=tolerating)


async def with_remaining(session: Session, eviction: FollowedEviction, state: BarState) -> BarState:
    """Find out, when it is over, which pods of the plan still exist."""

    if not state.over:
        return state
    namespaces = sorted({key.namespace for key in eviction.pods})
    try:
        pods = [
            pod
            for name in namespaces
            for pod in await list_all(session.transport, CONSUMER_PODS, name)
        ]
    except Forbidden:
        return state
    uids = set(eviction.pods.values())
    existing = [pod for pod in pods if pod.metadata.uid in uids and not pod.is_terminal]
    terminating = sum(pod.is_terminating for pod in existing)
    remaining = len(existing) - terminating
    if remaining and state.tolerating:
        # Other pods were evicted instead, so it is not over.
        return replace(state, pending=state.tolerating, tolerating=0)
    return replace(state, terminating=max(state.terminating, terminating), remaining=remaining)


async def _by_pods(session: Session, eviction: FollowedEviction, bar: ProgressBar) -> bool:
    from sully.cli.client.watching import acting_here, exposures_of, watch_kinds

    async with watch_kinds(session, DEVICES, needed=(RULES,)) as caches:
        if caches.gap(CONSUMER_PODS) is not None or caches.gap(CLAIMS) is not None:
            # Without access to pods there is only the status.
            return await watch(session, bar, lambda: _by_status(session, eviction))
        plane = await acting_here(session)
        tracker = PodTracker(exposures_of(session, caches, plane), eviction.pods)

        async def poll() -> BarState:
            rules = map(tracker.exposures.inventory.rule, eviction.names)
            state = tracker.state([rule for rule in rules if rule is not None])
            return await with_remaining(session, eviction, without_tolerating(state, eviction))

        return await watch(session, bar, poll)


class PodTracker:
    """The pods that rules evict, from the pods themselves."""

    def __init__(self, exposures: "Exposures", planned: "Mapping[Key, str]") -> None:
        self.exposures = exposures
        self._seen = {uid: key for key, uid in planned.items()}
        """By uid; with those of the plan, because the controller may be faster."""

    def state(self, rules: "Sequence[DeviceTaintRule]") -> BarState:
        pending: set[Key] = set()
        for rule in rules:
            due = self.exposures.due(rule)
            pending.update(due)
            self._note((*due, *self.exposures.terminating(rule)))
        deleted = terminating = 0
        for uid, key in self._seen.items():
            pod = self.exposures.usage.pod(key)
            if pod is None or pod.metadata.uid != uid:
                deleted += 1
            elif pod.is_terminating:
                # It may have released its devices already.
                terminating += 1
        rate = self.exposures.rate(rules[0]) if rules else None
        return BarState(
            True,
            len(pending),
            deleted + terminating,
            paused=False,
            terminating=terminating,
            rate=rate,
            deleted=not rules,
        )

    def _note(self, keys: "Iterable[Key]") -> None:
        for key in keys:
            pod = self.exposures.usage.pod(key)
            if pod is not None:
                self._seen[pod.metadata.uid] = key


async def _rules(session: Session, names: Sequence[str]) -> "list[DeviceTaintRule]":

    if len(names) > FEW:
        selected = set(names)
        listed = await list_all(session.transport, RULES)
        return [rule for rule in listed if rule.metadata.name in selected]
    rules = []
    for name in names:
        try:
            rules.append(await session.transport.get(RULES, Key("", name)))
        except NotFound:
            # It was deleted, and evicts no more pods.
            continue
    return rules


def still_evicting(eviction: FollowedEviction, *, pausable: bool, flags: str = "") -> str:
    """Return what continues after Ctrl-C, and how to stop it; not every server supports pauses.

    The `flags` name the server.
    """
    from sully.cli.change.aftermath import delete_command, rule_arguments

    names, group = eviction.names, eviction.group
    which = f"{len(names)} rules remain" if len(names) > 1 else f"The rule {names[0]} remains"
    rules = rule_arguments(names, group)
    pause = (
        f"  to pause:   sully evictions pause {rules}{flags}\n"
        f"  to resume:  sully evictions resume {rules}{flags}\n"
        if pausable
        else ""
    )
    undo = eviction.undo or f"{delete_command(names, group)}{flags}"
    return (
        f"{which}, and evictions continue.\n"
        f"  to watch:   sully evictions --watch{flags}\n"
        f"{pause}"
        f"  to {'undo' if pausable else 'stop'}:    {undo}"
    )
