from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from sully.runtime.clock import Clock, SystemClock
from sully.testing.clock import NOON, FakeClock


def test_the_system_clock_shows_utc_and_goes_forward() -> None:
    clock: Clock = SystemClock()
    before = datetime.now(UTC)

    assert before <= clock.now() <= datetime.now(UTC)
    assert clock.now().tzinfo is UTC
    assert clock.monotonic() <= clock.monotonic()


async def test_a_negative_sleep_returns() -> None:
    await SystemClock().sleep(-1)
    await FakeClock().sleep(-1)


async def test_a_fake_clock_moves_only_by_hand() -> None:
    clock = FakeClock()
    clock.advance(90)

    assert clock.now() == NOON + timedelta(seconds=90)
    assert clock.monotonic() == 90


async def test_sleepers_wake_in_order_when_their_time_has_come() -> None:
    clock = FakeClock()
    woken: list[int] = []

    async def sleep(seconds: int) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    tasks = [asyncio.ensure_future(sleep(seconds)) for seconds in (30, 10, 20)]
    await clock.sleepers(3)

    clock.advance(9)
    await asyncio.sleep(0)
    assert woken == []
    clock.advance(11)
    await asyncio.sleep(0)
    assert woken == [10, 20]
    clock.advance(10)
    await asyncio.gather(*tasks)
    assert woken == [10, 20, 30]


async def test_a_cancelled_sleeper_does_not_count() -> None:
    clock = FakeClock()
    task = asyncio.ensure_future(clock.sleep(5))
    await clock.sleepers()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert clock.sleeping == 0
    clock.advance(10)


async def test_a_fake_clock_reports_when_the_next_sleeper_wakes() -> None:
    clock = FakeClock()
    assert clock.next_wake is None
    async with asyncio.TaskGroup() as tasks:
        for seconds in (5, 2):
            tasks.create_task(clock.sleep(seconds))
        await clock.sleepers(2)
        assert clock.next_wake == 2
        clock.advance(3)
        assert clock.next_wake == 2
        clock.advance(2)
