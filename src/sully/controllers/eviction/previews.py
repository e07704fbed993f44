"""When to look again at what rules with effect None would do.

Almost any change may matter to them, so they are looked at together, at most once a second, and
less often where looking takes long: previews must not slow down what they are about.
"""

from __future__ import annotations

from datetime import timedelta

from sully.api.resource.types import DeviceTaintRule
from sully.client.transport import Key
from sully.domain.devices.taints import NONE
from sully.domain.eviction.preview import preview
from sully.domain.eviction.status import Report
from sully.runtime.clock import Clock
from sully.views.devices.changes import RuleChange
from sully.views.devices.exposures import Exposures

ALL = Key("", "")
"""Stands for all previews in the queue of rules."""
INTERVAL = 1.0
SHARE = 20
"""Of so many seconds at most one is spent on previews."""


class Previews:
    """The rules with a preview."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: set[str] = set()
        self._next = 0.0
        self._spent = 0.0

    def follow(self, change: RuleChange) -> None:
        """Note which rules have a preview."""
        for rule in (change.old, change.new):
            if rule is not None:
                self._rules.discard(rule.metadata.name)
        if change.new is not None and change.new.spec.taint.effect == NONE:
            self._rules.add(change.new.metadata.name)

    def touched(self) -> tuple[Key, ...]:
        """Return what to look at after a change."""
        return (ALL,) if self._rules else ()

    def wait(self) -> timedelta:
        """Return how long to wait before the next previews."""
        return timedelta(seconds=max(0.0, self._next - self._clock.monotonic()))

    def due(self) -> list[str]:
        """Return the rules to look at now."""
        rest = max(INTERVAL, self._spent * SHARE)
        self._next, self._spent = self._clock.monotonic() + rest, 0.0
        return sorted(self._rules)

    def of(self, rule: DeviceTaintRule, exposures: Exposures) -> Report:
        """Report what a rule would do."""
        began = self._clock.monotonic()
        report = preview(exposures.preview(rule))
        self._spent += self._clock.monotonic() - began
        return report
