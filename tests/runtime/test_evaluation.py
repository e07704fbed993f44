"""Evaluations beside the event loop."""

from __future__ import annotations

import asyncio
import threading

from sully.machinery.cel import CostBudget, UnfinishedError
from sully.runtime.evaluation import UNITS_PER_SECOND, Evaluator
from sully.testing.clock import FakeClock


async def finish(clock: FakeClock, *going: asyncio.Task[None]) -> None:
    """Let time pass until everybody is done."""
    while not all(task.done() for task in going):
        await asyncio.sleep(0.001)
        clock.advance(1)
    await asyncio.gather(*going)


async def test_work_is_done_in_a_thread_and_the_next_slice_begins() -> None:
    clock, budget = FakeClock(), CostBudget(1000, per_slice=100)
    budget.charge(100)
    threads: list[threading.Thread] = []
    unfinished = UnfinishedError(budget, lambda: threads.append(threading.current_thread()))

    await finish(clock, asyncio.create_task(Evaluator(clock).resume(unfinished)))

    assert threads != [threading.main_thread()]
    assert budget.run(lambda spending: spending.limit) == 100


async def test_slow_work_is_charged_for_its_processor_time() -> None:
    clock, budget = FakeClock(), CostBudget(100 * UNITS_PER_SECOND)

    def slow() -> None:
        sum(range(3_000_000))

    unfinished = UnfinishedError(budget, slow)

    await finish(clock, asyncio.create_task(Evaluator(clock).resume(unfinished)))

    assert budget.left < budget.units - UNITS_PER_SECOND // 1000


async def test_one_evaluation_at_a_time() -> None:
    clock = FakeClock()
    evaluator = Evaluator(clock)
    working: list[int] = []
    most: list[int] = []

    def work() -> None:
        working.append(1)
        most.append(len(working))
        working.pop()

    going = [
        asyncio.create_task(evaluator.resume(UnfinishedError(CostBudget(), work))) for _ in range(5)
    ]
    await finish(clock, *going)

    assert most == [1] * 5
