from __future__ import annotations

import asyncio

import pytest

from sully.runtime.backoff import Backoff
from sully.runtime.workqueue import Running, ShutDown, WorkQueue
from sully.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock, backoff=Backoff(base=1.0, cap=10.0, jitter=0.0))


async def settle() -> None:
    """Let every task run as far as it can; none of them waits for anything outside."""
    for _ in range(20):
        await asyncio.sleep(0)


async def take_all(queue: WorkQueue[str]) -> list[str]:
    keys = []
    while len(queue):
        keys.append(await queue.get())
        queue.done(keys[-1])
    return keys


async def test_keys_come_in_order_and_once(queue: WorkQueue[str]) -> None:
    for key in "abacab":
        queue.add(key)

    assert len(queue) == 3
    assert await take_all(queue) == ["a", "b", "c"]


async def test_a_key_in_work_is_not_handed_out_twice(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0

    queue.done("a")

    assert await take_all(queue) == ["a"]


async def test_a_worker_waits_for_a_key(queue: WorkQueue[str]) -> None:
    getting = asyncio.ensure_future(queue.get())
    await settle()
    assert not getting.done()

    queue.add("a")

    assert await getting == "a"


async def test_each_key_wakes_one_worker(queue: WorkQueue[str]) -> None:
    getting = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    await settle()
    queue.add("a")
    queue.add("b")
    await settle()

    assert sorted(task.result() for task in getting if task.done()) == ["a", "b"]
    queue.shut_down()
    await asyncio.gather(*getting, return_exceptions=True)


async def test_a_delayed_key_comes_when_its_time_has_come(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add_after("a", 60)
    getting = asyncio.ensure_future(queue.get())
    await clock.sleepers()
    clock.advance(59.9)
    await settle()
    assert not getting.done()

    clock.advance(0.1)

    assert await getting == "a"
    assert queue.delayed == 0


@pytest.mark.parametrize("seconds", [(10, 60), (60, 10), (60, 10, 30)], ids=str)
async def test_of_several_delays_the_earliest_counts_once(
    queue: WorkQueue[str], clock: FakeClock, seconds: tuple[float, ...]
) -> None:
    workers = [asyncio.ensure_future(queue.get()) for _ in range(2)]
    for delay in seconds:
        queue.add_after("a", delay)
        await settle()
    clock.advance(10)
    await settle()
    assert [task.result() for task in workers if task.done()] == ["a"]
    queue.done("a")

    clock.advance(60)
    await settle()

    assert sum(task.done() for task in workers) == 1
    queue.shut_down()
    await asyncio.gather(*workers, return_exceptions=True)


async def test_a_delay_of_nothing_is_now(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 0)

    assert await take_all(queue) == ["a"]


async def test_an_earlier_key_wakes_those_who_sleep_towards_a_later(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add_after("late", 100)
    getting = asyncio.ensure_future(queue.get())
    await clock.sleepers()
    queue.add_after("early", 5)
    await settle()

    clock.advance(5)

    assert await getting == "early"


async def test_failures_of_a_key_delay_it_longer_each_time(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    waits = []
    for _ in range(5):
        queue.add_after("a", 0)
        key = await queue.get()
        waits.append(queue.retry(key))
        queue.done(key)
        clock.advance(waits[-1])

    assert waits == pytest.approx([1, 2, 4, 8, 10])
    assert (queue.failures("a"), queue.failures("b")) == (5, 0)
    queue.forget("a")
    assert queue.retry("a") == 1


async def test_a_cancelled_worker_does_not_take_a_key_along(queue: WorkQueue[str]) -> None:
    cancelled, staying = (asyncio.ensure_future(queue.get()) for _ in range(2))
    await settle()
    queue.add("a")
    cancelled.cancel()
    await settle()

    assert await staying == "a"


async def test_one_worker_sleeps_for_all(queue: WorkQueue[str], clock: FakeClock) -> None:
    workers = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    for key, seconds in (("a", 60), ("b", 10), ("c", 30)):
        queue.add_after(key, seconds)
        await settle()
    assert clock.sleeping == 1

    for key in ("b", "c", "a"):
        clock.advance(20)
        await settle()
        assert [worker.result() for worker in workers if worker.done()] == [key]
        workers = [worker for worker in workers if not worker.done()]


@pytest.mark.parametrize("cancelled", range(3))
async def test_a_cancelled_sleeper_does_not_take_a_key_along(
    queue: WorkQueue[str], clock: FakeClock, cancelled: int
) -> None:
    queue.add_after("late", 100)
    workers = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    await settle()
    queue.add("a")
    workers.pop(cancelled).cancel()
    await settle()
    assert [worker.result() for worker in workers if worker.done()] == ["a"]
    assert clock.sleeping == 1

    clock.advance(100)

    assert sorted(await asyncio.gather(*workers)) == ["a", "late"]
    assert clock.sleeping == 0


async def test_shutting_down_delivers_what_is_ready_and_drops_the_rest(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add("a")
    queue.add_after("b", 10)
    waiting = [asyncio.ensure_future(queue.get()) for _ in range(2)]
    await settle()
    drained = asyncio.ensure_future(queue.drained())

    queue.shut_down()
    queue.add("c")
    queue.add_after("d", 1)
    clock.advance(100)
    await settle()

    assert waiting[0].result() == "a"
    assert isinstance(waiting[1].exception(), ShutDown)
    assert not drained.done()
    queue.done("a")
    await drained
    with pytest.raises(ShutDown):
        await queue.get()


class Observer:
    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []

    def added(self) -> None:
        self.seen.append(("added", len(self.queue)))

    def started(self, waited: float) -> None:
        self.seen.append(("started", len(self.queue), waited))

    def finished(self, worked: float) -> None:
        self.seen.append(("finished", worked))

    def retried(self) -> None:
        self.seen.append(("retried",))

    def observe(self, queue: Running) -> None:
        self.queue = queue


async def test_an_observer_learns_what_happens(clock: FakeClock) -> None:
    observer = Observer()
    queue: WorkQueue[str] = WorkQueue(clock, observer=observer)
    queue.add("a")
    clock.advance(3)
    await queue.get()
    clock.advance(1)
    queue.add("b")
    await queue.get()
    clock.advance(3)
    assert (observer.queue.unfinished(), observer.queue.longest()) == (7.0, 4.0)
    queue.done("b")
    queue.retry("a")
    queue.done("a")

    assert (observer.queue.unfinished(), observer.queue.longest()) == (0.0, 0.0)
    assert observer.seen == [
        ("added", 1),
        ("started", 0, 3.0),
        ("added", 1),
        ("started", 0, 0.0),
        ("finished", 3.0),
        ("retried",),
        ("finished", 4.0),
    ]
