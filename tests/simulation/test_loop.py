"""The simulated event loop: time jumps, and a killed process never runs again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator

import pytest

from simulator.clock import START, SimulatedClock
from simulator.loop import Process, SimulatedLoop, StuckError

NewLoop = Callable[..., SimulatedLoop]


@pytest.fixture
def new_loop() -> Iterator[NewLoop]:
    loops: list[SimulatedLoop] = []

    def new(seed: int = 1) -> SimulatedLoop:
        loops.append(SimulatedLoop(random.Random(seed), reorder=0.5))
        return loops[-1]

    yield new
    for loop in loops:
        loop.forget()


def test_a_day_takes_no_time(new_loop: NewLoop) -> None:
    loop = new_loop()

    loop.run_until_complete(asyncio.sleep(86400.0))

    assert loop.time() == 86400.0


def test_a_loop_that_waits_for_nothing_is_stuck(new_loop: NewLoop) -> None:
    loop = new_loop()

    with pytest.raises(StuckError):
        loop.run_until_complete(loop.create_future())


def test_a_killed_process_does_not_even_clean_up(new_loop: NewLoop) -> None:
    loop = new_loop()
    process = Process("one", loop, machine="one", clock=SimulatedClock(loop))
    done: list[str] = []

    async def work() -> None:
        try:
            done.append("began")
            await asyncio.sleep(1.0)
            done.append("went on")
        finally:
            done.append("cleaned up")

    async def main() -> None:
        process.spawn(work())
        await asyncio.sleep(0.5)
        process.kill()
        await asyncio.sleep(5.0)

    loop.run_until_complete(main())

    assert done == ["began"]


def test_the_order_of_tasks_follows_from_the_seed(new_loop: NewLoop) -> None:
    def order(seed: int) -> list[int]:
        loop, seen = new_loop(seed), []

        async def work(number: int) -> None:
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(number)

        async def main() -> None:
            await asyncio.gather(*(work(number) for number in range(5)))

        loop.run_until_complete(main())
        return seen

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(10)}) > 1


def test_a_clock_drifts_and_jumps(new_loop: NewLoop) -> None:
    loop = new_loop()
    clock = SimulatedClock(loop, rate=1.5)

    loop.run_until_complete(clock.sleep(3.0))
    clock.step(-10.0)

    assert loop.time() == pytest.approx(2.0)
    assert clock.monotonic() == pytest.approx(3.0)
    assert (clock.now() - START).total_seconds() == pytest.approx(-7.0)
    assert clock.stepped_at == loop.time()


def test_a_suspended_process_continues_later(new_loop: NewLoop) -> None:
    loop = new_loop()
    process = Process("one", loop, machine="one", clock=SimulatedClock(loop))
    times: list[float] = []

    async def work() -> None:
        while True:
            times.append(loop.time())
            await asyncio.sleep(1.0)

    async def main() -> None:
        process.spawn(work())
        await asyncio.sleep(1.5)
        process.suspend()
        await asyncio.sleep(60.0)
        process.resume()
        await asyncio.sleep(1.2)

    loop.run_until_complete(main())

    assert times == [0.0, 1.0, 61.5, 62.5]
    assert process.resumed_at == 61.5
