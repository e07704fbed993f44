"""Shortens a failing history: leaves out operations as long as the same promise is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simulator.operations import Operation, Plan
from simulator.world import Outcome, run

MAX_RUNS = 120
"""A run takes about a second."""


def shrink(outcome: Outcome, progress: Callable[[int, int], None] = lambda *_: None) -> Outcome:
    """Return a run of the shortest history found that breaks the same promise."""
    promise = outcome.violations[0].promise
    best = outcome
    runs = 0
    size = max(1, len(best.plan.operations) // 2)
    while size and runs < MAX_RUNS:
        start, shortened = 0, False
        while start < len(best.plan.operations) and runs < MAX_RUNS:
            candidate = run(_without(best.plan, start, size))
            runs += 1
            if candidate.violations and candidate.violations[0].promise == promise:
                best, shortened = candidate, True
                progress(runs, len(best.plan.operations))
            else:
                start += size
        if not shortened:
            size //= 2
    return best


def _without(plan: Plan, start: int, count: int) -> Plan:
    operations: tuple[Operation, ...] = plan.operations
    return replace(plan, operations=operations[:start] + operations[start + count :])
