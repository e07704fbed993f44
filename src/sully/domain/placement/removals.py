"""Which clusters were removed because of their health, and which wait for budget.

Keeps the state around `removal_budget.grant`. Once a cluster may be removed from one placement, it
may be removed from all until it is healthy again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sully.domain.placement.removal_budget import Grant, RemovalBucket, grant


class Removals:
    """The budget in use; without a limit every cluster may be removed."""

    def __init__(self, per_minute: int | None) -> None:
        self._bucket = RemovalBucket(per_minute) if per_minute is not None else None
        self._granted: frozenset[str] = frozenset()

    def copy(self) -> Removals:
        """Return one that can be changed without changing this."""
        other = Removals(None)
        other._bucket, other._granted = self._bucket, self._granted
        return other

    @property
    def limited(self) -> bool:
        """Report whether there is a budget."""
        return self._bucket is not None

    @property
    def granted(self) -> frozenset[str]:
        """Return the clusters that may be removed."""
        return self._granted

    def ask(self, removable: Iterable[str], now: datetime) -> Grant | None:
        """Grant removals, and return which clusters are currently held."""
        waiting = sorted(name for name in removable if name not in self._granted)
        if self._bucket is None or not waiting:
            return None
        granted = grant(self._bucket, waiting, now)
        self._bucket = granted.bucket
        self._granted = self._granted.union(granted.granted)
        return granted

    def recovered(self, name: str) -> None:
        """Note that a cluster is healthy again, so its next removal needs a new token."""
        if name in self._granted:
            self._granted = self._granted.difference((name,))
