"""Feasible clusters in an order that survives most changes.

The rank of a cluster has a part that depends on it alone, and one that depends on how often other
placements decided for it. Clusters of one count stand in one level, in the order of the first part;
levels are only compared when the best clusters are requested. So a decision somewhere moves one
cluster from level to level, and a placement that wants ten looks at few more.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import NamedTuple


class Rank(NamedTuple):
    """The rank of a cluster: lower is better."""

    tier: int
    decided: int
    """How often decisions name it."""
    malus: int
    """The negative of what it scores by itself."""


Key = tuple[int, int, str]
"""A rank that can be compared with any other: tier, negative total, name."""


class Ranking:
    """Names in levels."""

    __slots__ = ("_levels", "_ranks")

    def __init__(self) -> None:
        self._ranks: dict[str, Rank] = {}
        self._levels: dict[tuple[int, int], list[tuple[int, str]]] = {}

    def __len__(self) -> int:
        """Return how many clusters are ranked."""
        return len(self._ranks)

    def __contains__(self, name: object) -> bool:
        """Report whether a cluster is ranked."""
        return name in self._ranks

    def copy(self) -> Ranking:
        """Return one that can be changed without changing this."""
        other = Ranking()
        other._ranks = self._ranks.copy()
        other._levels = {key: level.copy() for key, level in self._levels.items()}
        return other

    def rank(self, name: str) -> Rank:
        """Return where a cluster stands."""
        return self._ranks[name]

    def load(self, ranks: Mapping[str, Rank]) -> None:
        """Take these clusters instead of those that are here."""
        self._ranks = dict(ranks)
        levels: dict[tuple[int, int], list[tuple[int, str]]] = {}
        for name, (tier, count, malus) in ranks.items():
            level = levels.get((tier, count))
            if level is None:
                level = levels[tier, count] = []
            level.append((malus, name))
        for level in levels.values():
            level.sort()
        self._levels = levels

    def put(self, name: str, rank: Rank) -> None:
        """Set the rank of a cluster."""
        old = self._ranks.get(name)
        if old == rank:
            return
        if old is not None:
            self._take_out(name, old)
        self._ranks[name] = rank
        insort(self._levels.setdefault((rank.tier, rank.decided), []), (rank.malus, name))

    def drop(self, name: str) -> None:
        """Forget a cluster, if it is here."""
        old = self._ranks.pop(name, None)
        if old is not None:
            self._take_out(name, old)

    def best(
        self,
        number: int,
        score: Callable[[int], int],
        *,
        without: Container[str],
        also: Iterable[Key],
    ) -> list[str]:
        """Return the best clusters: `score` is what a count adds to a total.

        Some are ranked by other rules: those are left out here and come as keys, in order.
        """
        streams: list[Iterable[Key]] = [also]
        for (tier, count), level in self._levels.items():
            streams.append(_stream(level, tier, score(count), without))
        return [name for _, _, name in islice(merge(*streams), number)]

    def _take_out(self, name: str, rank: Rank) -> None:
        key = (rank.tier, rank.decided)
        level = self._levels[key]
        del level[bisect_left(level, (rank.malus, name))]
        if not level:
            del self._levels[key]


def _stream(
    level: list[tuple[int, str]], tier: int, score: int, without: Container[str]
) -> Iterator[Key]:
    for malus, name in level:
        if name not in without:
            yield tier, malus - score, name
