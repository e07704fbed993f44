"""Pods that a budget keeps: they ask again as soon as it has room, first come, first served.

While a budget allows nothing it would tell all of them the same, so only as many are woken as may
go. The controller asks by the clock as well, but rarely: what is known here may be outdated.
Plans use the lines too (planning/departing.py), with budgets of their own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from sys import maxsize
from typing import NamedTuple

from sully.api.policy.protection import lets_unready_go
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.workloads import Selecting
from sully.domain.workloads.workloads import Budget


class Gate(NamedTuple):
    """Where pods wait that a budget keeps: it may let those go that are not ready."""

    budget: Key
    ready: bool | None
    """None for pods under several budgets: what room one of them has does not help."""


class Lines:
    """Pods in front of gates, each gate with a line of its own."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self._wake = wake
        self._lines: dict[Gate, OrderedDict[Key, None]] = {}
        self._waiting: dict[Key, tuple[Gate, ...]] = {}
        self._called: dict[Key, Gate] = {}
        """Who was woken, and has neither left nor been refused since."""

    def add(self, key: Key, gates: Iterable[Gate]) -> None:
        """Let a pod that was refused wait; one that does already keeps its place."""
        self._called.pop(key, None)
        # One without a place may get one the next time: what refused it was not known yet.
        if not self._waiting.get(key):
            self._waiting[key] = tuple(gates)
            for gate in self._waiting[key]:
                self._lines.setdefault(gate, OrderedDict())[key] = None

    def left(self, key: Key) -> None:
        """Note that a pod left, and took the room that it was woken for."""
        self._called.pop(key, None)
        self._step_out(key)

    def stays(self, key: Key) -> None:
        """Note that a pod need not leave, at least not now: the next may have its room."""
        gate = self._called.pop(key, None)
        self._step_out(key)
        if gate is not None:
            self.open(gate, 1)

    def open(self, gate: Gate, room: int) -> None:
        """Wake those who come first, as many as may go."""
        for key in list(islice(self._lines.get(gate, ()), room)):
            self._step_out(key)
            self._called[key] = gate
            self._wake(key)

    def _step_out(self, key: Key) -> None:
        for gate in self._waiting.pop(key, ()):
            line = self._lines[gate]
            del line[key]
            if not line:
                del self._lines[gate]


class Kept(Lines):
    """Lines in front of the budgets of a server; without a cache of them nobody is woken."""

    def __init__(self, wake: Callable[[Key], None], budgets: Informer[Budget] | None) -> None:
        super().__init__(wake)
        self._selecting = Selecting(budgets, "eviction") if budgets is not None else None
        if budgets is not None:
            budgets.on_change(self._changed)

    def refused(self, key: Key, labels: Mapping[str, str], *, ready: bool | None) -> None:
        """Let a pod wait for all budgets that count pods with these labels."""
        if self._selecting is not None:
            budgets = self._selecting.keys(key.namespace, labels)
            self.add(key, (Gate(each, ready) for each in budgets))

    def _changed(self, old: Budget | None, new: Budget | None) -> None:
        for ready in (False, True, None):
            self.open(Gate(key_of(new or old), ready), _room(old, new, ready=ready))


def _room(old: Budget | None, new: Budget | None, *, ready: bool | None) -> int:
    """Return how many pods a change of their budget may have set free."""
    if old is None or new is None:
        return maxsize
    before, now = old.status, new.status
    if before.observed_generation != now.observed_generation:
        # Somebody changed what it asks for, and it has been counted anew.
        return maxsize
    if ready is None:
        return 0
    if not ready and _lets_unready_go(new) and not _lets_unready_go(old):
        return maxsize
    # Each who leaves makes it less, and those who were woken for it are on their way.
    return now.disruptions_allowed if now.disruptions_allowed > before.disruptions_allowed else 0


def _lets_unready_go(budget: Budget) -> bool:
    status = budget.status
    return lets_unready_go(
        budget.spec.unhealthy_pod_eviction_policy,
        healthy=status.current_healthy,
        desired=status.desired_healthy,
    )
