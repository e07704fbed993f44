"""The worker loop: what comes back, when, to whom, and what is reported about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from sully.client.informers.outages import Outages
from sully.client.transport import Key, UnreachableError
from sully.controllers.framework.controller import DONE, REQUEUE, YIELD_AFTER, Result, Runner, Watch
from sully.machinery.errors import Conflict, Forbidden, InternalError, NotFound
from sully.runtime.backoff import Backoff
from sully.testing.clock import FakeClock

A, B, C = Key("", "a"), Key("", "b"), Key("", "c")
CALM = Backoff(base=1.0, cap=100.0, jitter=0.0)
TURNS = 30


@dataclass
class Bell:
    """A source of changes that a test rings."""

    rung: list[Callable[[str], None]] = field(default_factory=list)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[str], Iterable[Key]]
    ) -> Callable[[], None]:
        def ring(name: str) -> None:
            for key in to_keys(name):
                add(key)

        self.rung.append(ring)
        return lambda: self.rung.remove(ring)

    def ring(self, name: str) -> None:
        for item in self.rung:
            item(name)


@dataclass
class Scripted:
    """A controller that answers from a list and records when it was asked."""

    clock: FakeClock
    answers: list[Result | Exception] = field(default_factory=list)
    name: str = "scripted"
    bell: Bell = field(default_factory=Bell)
    asked: list[tuple[str, float]] = field(default_factory=list)
    gate: asyncio.Event | None = None
    inside: int = 0
    most: int = 0

    def watches(self) -> Iterable[Watch[Any]]:
        yield Watch(self.bell, lambda name: (Key("", name),))

    async def reconcile(self, key: Key) -> Result:
        self.asked.append((str(key), self.clock.monotonic()))
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await (self.gate.wait() if self.gate else asyncio.sleep(0))
        finally:
            self.inside -= 1
        answer = self.answers.pop(0) if self.answers else DONE
        if isinstance(answer, Exception):
            raise answer
        return answer


async def turn() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


@asynccontextmanager
async def run(
    controller: Scripted, workers: int = 2, outages: Outages | None = None
) -> AsyncIterator[Runner]:
    clock = controller.clock
    runner = Runner(controller, clock=clock, workers=workers, backoff=CALM, outages=outages)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(runner.run())
        await turn()
        yield runner
        runner.stop()


@dataclass(frozen=True)
class Case:
    answers: tuple[Result | Exception, ...]
    times: tuple[float, ...]
    failures: int = 0


CASES = {
    "done": Case((DONE,), (0,)),
    "later": Case((Result(requeue_after=timedelta(seconds=30)),), (0, 30)),
    "immediately": Case((Result(requeue_after=timedelta(0)),), (0, 0)),
    "again and again, at growing distances": Case((REQUEUE,) * 4, (0, 1, 3, 7, 15)),
    "errors come back at growing distances": Case((NotFound("x"),) * 3, (0, 1, 3, 7)),
    "a success forgets the errors before it": Case(
        (NotFound("x"), NotFound("x"), Result(requeue_after=timedelta(seconds=5)), NotFound("x")),
        (0, 1, 3, 8, 9),
    ),
    "a mistake of ours does not end the loop": Case((ValueError("x"),), (0, 1)),
    "still failing": Case((KeyError("x"),) * 6, (0, 1, 3, 7, 15, 31), failures=6),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_when_a_key_comes_back(case: Case) -> None:
    controller = Scripted(FakeClock(), list(case.answers))
    async with run(controller) as runner:
        controller.bell.ring("a")
        await turn()
        for _ in range(60 if not case.failures else 40):
            controller.clock.advance(1)
            await turn()

        assert [when for _, when in controller.asked] == list(case.times)
        assert runner.queue.failures(A) == case.failures


async def test_a_failing_key_does_not_hold_up_others() -> None:
    controller = Scripted(FakeClock(), [NotFound("x")])
    async with run(controller, workers=1):
        controller.bell.ring("a")
        await turn()
        controller.bell.ring("b")
        await turn()

        assert controller.asked == [("a", 0), ("b", 0)]


async def test_many_events_cost_one_reconcile_and_one_key_has_one_worker() -> None:
    controller = Scripted(FakeClock(), gate=asyncio.Event())
    async with run(controller, workers=4):
        for _ in range(5):
            controller.bell.ring("a")
        await turn()
        for _ in range(5):
            controller.bell.ring("a")
        await turn()
        assert controller.asked == [("a", 0)]
        assert controller.gate is not None
        controller.gate.set()
        await turn()

        assert controller.asked == [("a", 0), ("a", 0)]
        assert controller.most == 1


async def test_no_more_workers_than_allowed() -> None:
    controller = Scripted(FakeClock(), gate=asyncio.Event())
    async with run(controller, workers=3):
        for name in "abcdefgh":
            controller.bell.ring(name)
        await turn()
        assert controller.inside == 3
        assert controller.gate is not None
        controller.gate.set()
        await turn()

        assert sorted(name for name, _ in controller.asked) == list("abcdefgh")
        assert controller.most == 3


async def test_stopping_ends_what_is_under_way_and_begins_nothing() -> None:
    controller = Scripted(FakeClock(), gate=asyncio.Event())
    runner = Runner(controller, clock=controller.clock, workers=1, backoff=CALM)
    for name in "abc":
        controller.bell.ring(name)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(runner.run())
        await turn()
        runner.stop()
        await turn()
        assert not task.done()
        assert controller.gate is not None
        controller.gate.set()

    assert controller.asked == [("a", 0)]
    assert controller.inside == 0


@dataclass
class Busy:
    """A controller that never waits: whatever it does takes time and gives none away."""

    clock: FakeClock
    name: str
    log: list[str]
    takes: float
    bell: Bell = field(default_factory=Bell)

    def watches(self) -> Iterable[Watch[Any]]:
        yield Watch(self.bell, lambda name: (Key("", name),))

    async def reconcile(self, key: Key) -> Result:
        self.clock.advance(self.takes)
        self.log.append(f"{self.name}{key}")
        return DONE


FAIR: dict[str, tuple[float, list[str]]] = {
    "long work is shared": (YIELD_AFTER, ["1a", "2a", "1b", "2b", "1c", "2c"]),
    "short work is done in one go": (YIELD_AFTER / 10, ["1a", "1b", "1c", "2a", "2b", "2c"]),
}


@pytest.mark.parametrize(("takes", "want"), FAIR.values(), ids=FAIR.keys())
async def test_a_long_queue_lets_others_work(takes: float, want: list[str]) -> None:
    clock, log = FakeClock(), list[str]()
    both = [Busy(clock, name, log, takes) for name in "12"]
    runners = [Runner(item, clock=clock, workers=1, backoff=CALM) for item in both]
    for item in both:
        for name in "abc":
            item.bell.ring(name)
    async with asyncio.TaskGroup() as tasks:
        for runner in runners:
            tasks.create_task(runner.run())
        await turn()
        for runner in runners:
            runner.stop()

    assert log == want


async def test_an_outage_is_reported_once_however_many_keys_fail() -> None:
    clock, away = FakeClock(), UnreachableError("x")
    # Three keys fail, one has nothing to ask; then the server answers, if only with a refusal.
    answers: list[Result | Exception] = [
        away,
        away,
        away,
        DONE,
        away,
        away,
        away,
        DONE,
        DONE,
        NotFound("x"),
    ]
    controller = Scripted(clock, list(answers))
    with capture_logs() as lines:
        async with run(controller, workers=1):
            for name in "abcd":
                controller.bell.ring(name)
            for _ in range(10):
                await turn()
                clock.advance(1)

    assert _loud(lines) == ["reconcile failed", "server is reachable again"]


async def test_a_key_with_nothing_left_to_ask_does_not_mean_that_the_server_answers() -> None:
    clock, away = FakeClock(), UnreachableError("x")
    controller, outages = Scripted(clock, [away, DONE, away, DONE]), Outages(FakeClock())
    with capture_logs() as lines:
        async with run(controller, workers=1, outages=outages):
            for name in "ab":
                controller.bell.ring(name)
                await turn()
                clock.advance(1)
                await turn()
            before = _loud(lines)
            # What has been written is reported by a watch.
            outages.server_answered()

    assert len(controller.asked) == 4
    assert before == ["reconcile failed"]
    assert _loud(lines) == ["reconcile failed", "server is reachable again"]


def _loud(lines: Iterable[Any]) -> list[str]:
    return [line["event"] for line in lines if line["log_level"] != "debug"]


TERMINATING = {"causes": [{"reason": "NamespaceTerminating"}]}
SAID: dict[str, tuple[Exception, str, str]] = {
    "overtaken by another writer": (Conflict("x"), "debug", "cache was behind, requeued"),
    "gone meanwhile": (NotFound("x"), "debug", "cache was behind, requeued"),
    "namespace is deleted": (
        Forbidden("x", details=TERMINATING),
        "debug",
        "cache was behind, requeued",
    ),
    "not allowed": (Forbidden("x"), "warning", "reconcile failed"),
    "server failure": (InternalError("x"), "warning", "reconcile failed"),
    "server away": (UnreachableError("x"), "warning", "reconcile failed"),
    "a mistake of ours": (ValueError("x"), "error", "reconcile failed unexpectedly"),
}


@pytest.mark.parametrize(("error", "level", "text"), SAID.values(), ids=SAID.keys())
async def test_what_is_reported_of_a_failure(error: Exception, level: str, text: str) -> None:
    controller = Scripted(FakeClock(), [error])
    with capture_logs() as lines:
        async with run(controller):
            controller.bell.ring("a")
            await turn()

    (line,) = lines
    assert (line["log_level"], line["event"]) == (level, text)
    assert (line["controller"], line["key"], line["error"]) == ("scripted", "a", "x")
    assert line["retry_in"] == 1.0
    assert (line.get("exc_info") is error) == (level == "error")
