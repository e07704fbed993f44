"""How much of a resource clusters have, with the least and the most of it always at hand."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping

from sully.domain.placement.prioritizers import resource_score


class Amounts:
    """How much of a resource the feasible clusters have, with the least and the most at hand."""

    __slots__ = ("_amounts", "_order")

    def __init__(self) -> None:
        self._amounts: dict[str, float] = {}
        self._order: list[float] = []

    def copy(self) -> Amounts:
        """Return one that can be changed without changing this."""
        other = Amounts()
        other._amounts, other._order = self._amounts.copy(), self._order.copy()
        return other

    def load(self, amounts: Mapping[str, float]) -> None:
        """Take these amounts instead of those that are here."""
        self._amounts, self._order = dict(amounts), sorted(amounts.values())

    def put(self, name: str, amount: float | None) -> None:
        """Take the amount of a cluster as it is now; None: no amount."""
        old = self._amounts.pop(name, None)
        if old is not None:
            del self._order[bisect_left(self._order, old)]
        if amount is not None:
            self._amounts[name] = amount
            insort(self._order, amount)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the least and the most."""
        return (self._order[0], self._order[-1]) if self._order else None

    def score(self, name: str) -> int:
        """Score a cluster; one without an amount scores nothing."""
        amount = self._amounts.get(name)
        if amount is None:
            return 0
        return resource_score(amount, self._order[0], self._order[-1])
