"""Departures summed up: whose pods leave, from when to when, and what becomes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sully.domain.planning.report import Departure, Fate


@dataclass(frozen=True, slots=True)
class Group:
    """The pods of one owner that leave."""

    namespace: str
    owner: str
    departures: tuple[Departure, ...]

    @property
    def first(self) -> float:
        """Return after how many seconds the first leaves."""
        return min(each.after for each in self.departures)

    @property
    def last(self) -> float:
        """Return after how many seconds the last leaves."""
        return max(each.after for each in self.departures)

    @property
    def fates(self) -> dict[Fate, int]:
        """Count what becomes of them."""
        found = Counter(each.landing.fate for each in self.departures)
        return {fate: found[fate] for fate in Fate if found[fate]}

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return where they land, by name."""
        found = {each.landing.node for each in self.departures if each.landing.fate is Fate.LANDS}
        return tuple(sorted(found))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the different reasons for which some find no place."""
        return tuple(sorted({each.landing.why for each in self.departures if each.landing.why}))


def grouped(departures: Iterable[Departure]) -> tuple[Group, ...]:
    """Group departures by namespace and owner, in order of those."""
    found: dict[tuple[str, str], list[Departure]] = {}
    for each in departures:
        found.setdefault((each.namespace, each.owner), []).append(each)
    return tuple(Group(*key, tuple(found[key])) for key in sorted(found))
