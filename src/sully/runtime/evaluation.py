"""Evaluates expressions for decisions: in a thread, and at most half of the time.

A decision is synchronous and takes its cost budget in slices (`cel/costs/budget.py`). What
it could not evaluate within a slice is evaluated here, beside the event loop. One evaluation
runs at a time, and after it there is a pause of the same length: threads share the interpreter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from sully.machinery.cel import UnfinishedError
from sully.runtime.clock import Clock

UNITS_PER_SECOND: Final = 5_000_000
"""An expression that takes longer than its units allow is charged for its CPU time."""


class Evaluator:
    """Evaluates for all of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._busy = asyncio.Lock()

    async def resume(self, unfinished: UnfinishedError, took: float = 0.0) -> None:
        """Evaluate what a decision waits for, pause, and begin the next slice of its budget.

        `took` is how many seconds the last slice took.
        """
        if unfinished.work is None:
            await self._clock.sleep(took)
        else:
            async with self._busy:
                await self._evaluate(unfinished, unfinished.work)
        unfinished.budget.resume()

    async def _evaluate(self, unfinished: UnfinishedError, work: Callable[[], None]) -> None:
        budget = unfinished.budget
        before = budget.left
        took = await asyncio.to_thread(_timed, work)
        budget.charge(max(int(took * UNITS_PER_SECOND) - (before - budget.left), 0))
        await self._clock.sleep(took)


def _timed(work: Callable[[], None]) -> float:
    """Return the CPU time that work takes, in seconds."""
    began = time.thread_time()
    work()
    return time.thread_time() - began
