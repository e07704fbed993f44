"""Thousands of watchers of one event: they are woken in turns with others."""

import asyncio

from sully.store.events import TURN, EventLog


async def test_other_callbacks_run_between_waiters() -> None:
    log = EventLog()
    count = 3 * TURN + 1
    waiters = [log.waiter() for _ in range(count)]
    woken: list[int] = []

    log.wake()
    while len(woken) < 4:
        woken.append(sum(waiter.done() for waiter in waiters))
        await asyncio.sleep(0)

    assert woken == [TURN, 2 * TURN, 3 * TURN, count]


async def test_a_waiter_that_is_cancelled_between_turns() -> None:
    log = EventLog()
    waiters = [log.waiter() for _ in range(2 * TURN)]

    log.wake()
    for waiter in waiters:
        waiter.cancel()
    again = log.waiter()
    log.wake()

    await again
    assert all(waiter.done() for waiter in waiters)
