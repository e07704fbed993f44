"""Counters that devices of a pool share: partitions of one card draw on the same memory.

What is left of a counter is its total less what devices in use draw, wherever in the cluster they
are used. `Draw` is one device's part; `Balance` is the state of a pool during one attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sully.api.resource.types import Device, ResourceSlice
from sully.machinery.quantity import parse_quantity

Totals = Mapping[str, Mapping[str, int]]
"""Nano units by counter set and counter."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What a device takes out of one counter set."""

    counter_set: str
    amounts: tuple[tuple[str, int], ...]
    groups: frozenset[str] = frozenset()
    """Users of a counter set must have a group in common; those without keep to themselves."""


@dataclass(frozen=True, slots=True)
class Lack:
    """What of a counter set is missing to give a device away."""

    counter_set: str
    counter: str = ""
    """Empty: there is enough, but the users of the set do not go together."""
    left: int = 0
    needed: int = 0


def draws_of(device: Device) -> tuple[Draw, ...]:
    """Return what a device takes out of counters."""
    return tuple(
        Draw(
            each.counter_set,
            tuple(
                (name, parse_quantity(counter.value).nanos)
                for name, counter in sorted(each.counters.items())
            ),
            frozenset(each.compatibility_groups),
        )
        for each in device.consumes_counters
    )


def totals_of(slices: Iterable[ResourceSlice]) -> Totals | str:
    """Return the counters of a pool, or what is wrong with them."""
    totals: dict[str, dict[str, int]] = {}
    for slice_ in slices:
        for given in slice_.spec.shared_counters:
            if given.name in totals:
                return f"duplicate counter set name {given.name}"
            totals[given.name] = {
                name: parse_quantity(counter.value).nanos
                for name, counter in given.counters.items()
            }
    return totals


def dangling(draws: Iterable[Draw], totals: Totals) -> str:
    """Say what a device refers to that its pool lacks; empty if all is well."""
    for draw in draws:
        known = totals.get(draw.counter_set)
        if known is None:
            return f"counter set {draw.counter_set} not found"
        for name, _ in draw.amounts:
            if name not in known:
                return f"counter {name} not found in counter set {draw.counter_set}"
    return ""


class Balance:
    """What is left of the counters of a pool; may go below zero by what is in use already."""

    def __init__(self, totals: Totals, in_use: Iterable[tuple[Draw, ...]]) -> None:
        self._left = {name: dict(counters) for name, counters in totals.items()}
        self._groups: dict[str, list[frozenset[str]]] = {}
        for draws in in_use:
            self._apply(draws)

    def take(self, draws: tuple[Draw, ...]) -> bool:
        """Take what a device draws, unless there is not enough; say whether it was taken."""
        if not self.allows(draws):
            return False
        self._apply(draws)
        return True

    def give(self, draws: tuple[Draw, ...]) -> None:
        """Give back what was taken last."""
        for draw in draws:
            left = self._left[draw.counter_set]
            for name, amount in draw.amounts:
                left[name] += amount
            self._groups[draw.counter_set].pop()

    def allows(self, draws: tuple[Draw, ...]) -> bool:
        """Report whether there is enough for a device."""
        return all(self._suffices(draw) and self._goes_with_others(draw) for draw in draws)

    def lack(self, draws: tuple[Draw, ...]) -> Lack | None:
        """Say what a device lacks first; None if there is enough."""
        for draw in draws:
            left = self._left[draw.counter_set]
            for name, amount in draw.amounts:
                if left[name] < amount:
                    return Lack(draw.counter_set, name, left[name], amount)
            if not self._goes_with_others(draw):
                return Lack(draw.counter_set)
        return None

    def _suffices(self, draw: Draw) -> bool:
        left = self._left[draw.counter_set]
        return all(left[name] >= amount for name, amount in draw.amounts)

    def _goes_with_others(self, draw: Draw) -> bool:
        others = self._groups.get(draw.counter_set)
        if not others:
            return True
        if not draw.groups:
            return not any(others)
        return bool(draw.groups.intersection(*others))

    def _apply(self, draws: tuple[Draw, ...]) -> None:
        for draw in draws:
            left = self._left.get(draw.counter_set)
            if left is None:
                continue
            for name, amount in draw.amounts:
                left[name] = left.get(name, 0) - amount
            self._groups.setdefault(draw.counter_set, []).append(draw.groups)
