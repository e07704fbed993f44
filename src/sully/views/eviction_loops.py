"""Eviction loops that run, and the rules that they are due to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sully.api.resource.types import DeviceTaintRule
from sully.client.transport import Key
from sully.domain.eviction.running_loops import RunningLoop, evictions_in, running_loops
from sully.views.devices.exposures import Exposures
from sully.views.kinds import CONSUMER_PODS, EVICTION_RECORDS, RULES
from sully.views.snapshot.kinds import EVICTION_EVENTS
from sully.views.snapshot.snapshot import Snapshot


def loops_in(snapshot: Snapshot) -> tuple[RunningLoop, ...]:
    """Return the owners whose pods are evicted again and again."""
    events = snapshot.of(EVICTION_EVENTS).values()
    records = snapshot.of(EVICTION_RECORDS).values()
    return running_loops(
        evictions_in(events, records), snapshot.of(CONSUMER_PODS).values(), snapshot.taken
    )


class LoopWithRules(NamedTuple):
    """An eviction loop that runs, and the names of the rules that it is due to."""

    loop: RunningLoop
    rules: tuple[str, ...]


def loops_with_rules(snapshot: Snapshot) -> list[LoopWithRules]:
    """Return the loops that run, with the rules that they are due to."""
    rules, exposures = snapshot.of(RULES).values(), snapshot.exposures
    return [
        LoopWithRules(loop, tuple(x.metadata.name for x in rules_of_loop(loop, rules, exposures)))
        for loop in loops_in(snapshot)
    ]


def rules_of_loop(
    loop: RunningLoop, rules: Iterable[DeviceTaintRule], exposures: Exposures
) -> list[DeviceTaintRule]:
    """Return the rules that a loop is due to, by name.

    They are recorded, or evict pods of the owner now. In the moments in which no replacement has
    a device yet, it is the only rule that evicts pods at all.
    """
    evicting = [
        rule
        for rule in sorted(rules, key=lambda rule: rule.metadata.name)
        if rule.spec.taint.effect in exposures.policy.effects
        and exposures.pause_reason(rule) is None
    ]
    if loop.rules:
        return [rule for rule in evicting if rule.metadata.uid in loop.rules]
    keys = {Key(loop.namespace, name) for name in loop.pods}
    of_owner = [
        rule
        for rule in evicting
        if keys & (exposures.due(rule).keys() | exposures.terminating(rule).keys())
    ]
    return of_owner or (evicting if len(evicting) == 1 else [])
