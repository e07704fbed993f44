"""How often decisions name each cluster: for Balance, kept while decisions come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

PlacementKey = tuple[str, str]
"""Namespace and name of a placement."""

NOTHING: Mapping[str, int] = {}


class DecidedClusters(msgspec.Struct, frozen=True):
    """The clusters of one PlacementDecision, and its placement; without a label it has none."""

    owner: PlacementKey | None
    clusters: tuple[str, ...]


class DecisionCounts:
    """Counts of clusters over all decisions, and those of each placement."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], DecidedClusters] = {}
        self._counts: dict[str, int] = {}
        self._levels: dict[int, int] = {}
        """How many clusters have a count."""
        self._own: dict[PlacementKey, Counter[str]] = {}

    def copy(self) -> DecisionCounts:
        """Return one that can be changed without changing this."""
        other = DecisionCounts()
        other._entries = self._entries.copy()
        other._counts = self._counts.copy()
        other._levels = self._levels.copy()
        other._own = {key: own.copy() for key, own in self._own.items()}
        return other

    def count(self, name: str) -> int:
        """Return how often decisions name a cluster."""
        return self._counts.get(name, 0)

    def own(self, key: PlacementKey) -> Mapping[str, int]:
        """Return how often the decisions of a placement name each cluster."""
        return self._own.get(key, NOTHING)

    def others(self, key: PlacementKey) -> dict[str, int]:
        """Return how often the decisions of all other placements name each cluster."""
        own = self.own(key)
        counts = ((name, count - own.get(name, 0)) for name, count in self._counts.items())
        return {name: count for name, count in counts if count}

    def most(self, key: PlacementKey) -> int:
        """Return the highest count that the decisions of other placements come to."""
        own = self.own(key)
        mine = Counter(self._counts[name] for name in own)
        best = max((self._counts[name] - times for name, times in own.items()), default=0)
        for level in sorted(self._levels, reverse=True):
            if level <= best:
                break
            if self._levels[level] > mine[level]:
                return level
        return best

    def entry(self, at: tuple[str, str]) -> DecidedClusters | None:
        """Return the decision at a key."""
        return self._entries.get(at)

    def entries(self, key: PlacementKey) -> dict[tuple[str, str], DecidedClusters]:
        """Return the decisions of a placement, by the keys of the objects."""
        return {at: entry for at, entry in self._entries.items() if entry.owner == key}

    def put(self, at: tuple[str, str], entry: DecidedClusters | None) -> set[str]:
        """Update a decision, or delete it; return the clusters whose count changed."""
        old = self._entries.pop(at, None)
        if entry is not None:
            self._entries[at] = entry
        if old == entry:
            return set()
        delta = Counter(entry.clusters if entry is not None else ())
        delta.subtract(old.clusters if old is not None else ())
        self._update_own(old, -1)
        self._update_own(entry, 1)
        changed = {name for name, by in delta.items() if by}
        for name in changed:
            self._shift(name, delta[name])
        return changed

    def _update_own(self, entry: DecidedClusters | None, sign: int) -> None:
        if entry is None or entry.owner is None:
            return
        own = self._own.setdefault(entry.owner, Counter())
        _add(own, entry.clusters, sign)
        if not own:
            del self._own[entry.owner]

    def _shift(self, name: str, by: int) -> None:
        before = self._counts.get(name, 0)
        after = before + by
        if before:
            self._levels[before] -= 1
            if not self._levels[before]:
                del self._levels[before]
        if after:
            self._counts[name] = after
            self._levels[after] = self._levels.get(after, 0) + 1
        else:
            self._counts.pop(name, None)


def _add(own: Counter[str], names: Iterable[str], sign: int) -> None:
    for name in names:
        own[name] += sign
        if not own[name]:
            del own[name]
