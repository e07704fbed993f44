"""What passes over placements may spend on expressions, and when they are tried again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sully.api.cluster.types import Placement
from sully.client.transport import Key
from sully.controllers.evaluation import BACKOFF
from sully.machinery.cel import COST_BUDGET, SLICE, CostBudget


@dataclass(frozen=True, slots=True)
class _Exceeded:
    generation: int
    times: int
    until: datetime


class Passes:
    """The passes that are not finished, and those that came to no end."""

    def __init__(self, units: int = COST_BUDGET) -> None:
        self._units = units
        self._budgets: dict[Key, CostBudget] = {}
        self._exceeded: dict[Key, _Exceeded] = {}

    def budget(self, key: Key) -> CostBudget:
        """Return what is left for this pass over a placement."""
        return self._budgets.get(key) or CostBudget(self._units, per_slice=SLICE)

    def interrupted(self, key: Key, budget: CostBudget) -> None:
        """Go on with a pass later, with what is left."""
        self._budgets[key] = budget

    def ended(self, key: Key) -> None:
        """Note that a pass came to an end: the next one gets a new budget."""
        self._budgets.pop(key, None)

    def exceeded(self, key: Key, placement: Placement, now: datetime) -> datetime:
        """Return when a placement that exceeded its budget may try again."""
        known = self._exceeded.get(key)
        times = 1 + (known.times if known is not None else 0)
        until = now + timedelta(seconds=BACKOFF.delay(times))
        self._exceeded[key] = _Exceeded(placement.metadata.generation, times, until)
        return until

    def held(self, key: Key, placement: Placement, now: datetime) -> datetime | None:
        """Return until when a placement must wait; not once somebody has changed it."""
        known = self._exceeded.get(key)
        if known is None or known.until <= now:
            return None
        return known.until if known.generation == placement.metadata.generation else None

    def forget(self, key: Key) -> None:
        """Forget a placement that is gone."""
        self._budgets.pop(key, None)
        self._exceeded.pop(key, None)
