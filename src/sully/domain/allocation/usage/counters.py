"""Counters that devices of a pool share: partitions of one card consume the same memory.

What is left of a counter is its total less what allocated devices consume, on any node. `Draw` is
what one device consumes; `Balance` is the state of a pool during one attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sully.api.resource.types import Device, ResourceSlice
from sully.machinery.formats.quantity import parse_quantity

Totals = Mapping[str, Mapping[str, int]]
"""Nano units by counter set and counter."""


class Draw(msgspec.Struct, frozen=True):
    """What a device consumes of one counter set."""

    counter_set: str
    amounts: tuple[tuple[str, int], ...]
    groups: frozenset[str] = frozenset()
    """Consumers of a counter set must share a group; those without share it with each other."""


class Lack(msgspec.Struct, frozen=True):
    """What of a counter set is missing to allocate a device."""

    counter_set: str
    counter: str = ""
    """Empty: there is enough, but the consumers of the set are not compatible."""
    left: int = 0
    needed: int = 0


def draws_of(device: Device) -> tuple[Draw, ...]:
    """Return what a device consumes of counters."""
    return tuple(
        Draw(
            consumed.counter_set,
            tuple(
                (name, parse_quantity(counter.value).nanos)
                for name, counter in sorted(consumed.counters.items())
            ),
            frozenset(consumed.compatibility_groups),
        )
        for consumed in device.consumes_counters
    )


class InvalidPool(msgspec.Struct, frozen=True):
    """Why the devices of a pool cannot be allocated: its slices contradict each other."""

    message: str


def totals_of(slices: Iterable[ResourceSlice]) -> Totals | InvalidPool:
    """Return the counters of a pool."""
    totals: dict[str, dict[str, int]] = {}
    for slice_ in slices:
        for counter_set in slice_.spec.shared_counters:
            if counter_set.name in totals:
                return InvalidPool(f"duplicate counter set name {counter_set.name}")
            totals[counter_set.name] = {
                name: parse_quantity(counter.value).nanos
                for name, counter in counter_set.counters.items()
            }
    return totals


def dangling(draws: Iterable[Draw], totals: Totals) -> str:
    """Return which counter of a device its pool does not have; empty if it has all."""
    for draw in draws:
        counters = totals.get(draw.counter_set)
        if counters is None:
            return f"counter set {draw.counter_set} not found"
        for name, _ in draw.amounts:
            if name not in counters:
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
        """Take what a device consumes, if there is enough; report whether it was taken."""
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
        return all(self._suffices(draw) and self._is_compatible(draw) for draw in draws)

    def lack(self, draws: tuple[Draw, ...]) -> Lack | None:
        """Return what a device lacks first; None if there is enough."""
        for draw in draws:
            left = self._left[draw.counter_set]
            for name, amount in draw.amounts:
                if left[name] < amount:
                    return Lack(draw.counter_set, name, left[name], amount)
            if not self._is_compatible(draw):
                return Lack(draw.counter_set)
        return None

    def _suffices(self, draw: Draw) -> bool:
        left = self._left[draw.counter_set]
        return all(left[name] >= amount for name, amount in draw.amounts)

    def _is_compatible(self, draw: Draw) -> bool:
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
