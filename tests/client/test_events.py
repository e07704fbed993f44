"""Events: what is written when the server is slow, away, or has forgotten."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from client.scripted import PartialTransport
from sully.client.calls import Call
from sully.client.events import ATTEMPTS, MAX_QUEUED, MAX_WRITES, EventRecorder, Reference
from sully.client.options import DEFAULT_WRITE, PatchType, WriteOptions
from sully.client.transport import Key, Kind, UnreachableError
from sully.machinery.errors import Forbidden, NotFound, TooManyRequests
from sully.runtime.backoff import Backoff
from sully.testing.clock import FakeClock

POD = Reference("v1", "Pod", Key("default", "web"), "u")
NODE = Reference("v1", "Node", Key("", "n1"))


@dataclass
class Ledger(PartialTransport):
    """A server that takes events, after as many failures as the test wants."""

    failures: list[Exception] = field(default_factory=list)
    events: dict[Key, dict[str, Any]] = field(default_factory=dict)
    tries: int = 0
    written: asyncio.Event = field(default_factory=asyncio.Event)

    def _fail(self) -> None:
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)

    async def create(
        self,
        kind: Kind[Any],
        obj: Any,
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> Any:
        self._fail()
        self.events[Key(obj["metadata"]["namespace"], obj["metadata"]["name"])] = dict(obj)
        self.written.set()
        return obj

    async def patch(
        self,
        kind: Kind[Any],
        key: Key,
        patch: Any,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> Any:
        self._fail()
        if key not in self.events:
            raise NotFound("expired")
        self.events[key] |= patch
        return self.events[key]


@dataclass
class InProcess(Ledger):
    """The same in this process, where events can be written together."""

    commits: list[int] = field(default_factory=list)

    async def commit(self, calls: Sequence[Call]) -> None:
        self._fail()
        self.commits.append(len(calls))
        for call in calls:
            self.events[Key(call.ref.namespace, call.body["metadata"]["name"])] = call.body


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def recorder(ledger: Ledger, clock: FakeClock) -> EventRecorder:
    backoff = Backoff(base=1.0, cap=4.0, jitter=0.0, rng=random.Random(1))
    return EventRecorder(ledger, "tester", clock=clock, host="here", backoff=backoff)


async def test_event_on_the_wire(clock: FakeClock) -> None:
    ledger = Ledger()
    made = recorder(ledger, clock)
    made.event(POD, "Warning", "Evicted", "device is broken")
    clock.advance(90)
    made.event(POD, "Warning", "Evicted", "device is broken")
    await made.flush()

    (event,) = ledger.events.values()
    assert event == {
        "metadata": {"name": event["metadata"]["name"], "namespace": "default"},
        "involvedObject": {
            "kind": "Pod",
            "namespace": "default",
            "name": "web",
            "uid": "u",
            "apiVersion": "v1",
        },
        "reason": "Evicted",
        "message": "device is broken",
        "source": {"component": "tester", "host": "here"},
        "firstTimestamp": "2030-01-01T12:00:00Z",
        "lastTimestamp": "2030-01-01T12:01:30Z",
        "count": 2,
        "type": "Warning",
        "reportingComponent": "tester",
        "reportingInstance": "here",
    }
    assert event["metadata"]["name"].startswith("web.")


async def test_different_things_are_different_events(clock: FakeClock) -> None:
    ledger = Ledger()
    made = recorder(ledger, clock)
    made.event(POD, "Normal", "A", "x")
    made.event(POD, "Normal", "A", "y")
    made.event(POD, "Normal", "B", "x")
    made.event(NODE, "Normal", "A", "x")
    await made.flush()

    assert [event["count"] for event in ledger.events.values()] == [1, 1, 1, 1]
    # Cluster-scoped objects have their events in the default namespace.
    assert {key.namespace for key in ledger.events} == {"default"}


async def test_expired_event_restarts(clock: FakeClock) -> None:
    ledger = Ledger()
    made = recorder(ledger, clock)
    made.event(POD, "Normal", "A", "x")
    await made.flush()
    ledger.events.clear()
    made.event(POD, "Normal", "A", "x")
    await made.flush()

    assert [event["count"] for event in ledger.events.values()] == [1]


async def test_a_passing_failure_is_waited_out(clock: FakeClock) -> None:
    ledger = Ledger([UnreachableError("away"), TooManyRequests("busy")])
    made = recorder(ledger, clock)
    made.event(POD, "Normal", "A", "x")
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(made.run())
        await clock.sleepers()
        clock.advance(1)
        await clock.sleepers()
        clock.advance(2)
        await ledger.written.wait()
        task.cancel()

    assert ledger.tries == 3


async def test_a_lasting_failure_is_given_up(clock: FakeClock) -> None:
    ledger = Ledger([UnreachableError("away")] * ATTEMPTS)
    made = recorder(ledger, clock)
    made.event(POD, "Normal", "lost", "x")
    async with asyncio.TaskGroup() as tasks:
        flushing = tasks.create_task(made.flush())
        for _ in range(ATTEMPTS - 1):
            await clock.sleepers()
            clock.advance(4)
        await flushing
    made.event(POD, "Normal", "kept", "x")
    await made.flush()

    assert [event["reason"] for event in ledger.events.values()] == ["kept"]


async def test_refusal_is_not_repeated(clock: FakeClock) -> None:
    ledger = Ledger([Forbidden("namespace is being terminated")])
    made = recorder(ledger, clock)
    made.event(POD, "Normal", "A", "x")
    await made.flush()

    assert (ledger.tries, ledger.events) == (1, {})


async def test_events_are_written_together_but_repetitions_after_what_they_repeat(
    clock: FakeClock,
) -> None:
    # Both would wait indefinitely if the first had to be answered before the second is sent.
    ledger = Meeting(expected=2)
    made = recorder(ledger, clock)
    for message in ("one", "two", "two"):
        made.event(POD, "Normal", "Scheduled", message)
    await made.flush()

    counts = {event["message"]: event["count"] for event in ledger.events.values()}
    assert counts == {"one": 1, "two": 2}


@dataclass
class Meeting(Ledger):
    """A server that answers no create before it has got as many as the test wants."""

    expected: int = 0
    met: asyncio.Event = field(default_factory=asyncio.Event)

    async def create(
        self,
        kind: Kind[Any],
        obj: Any,
        subresource: str = "",
        options: WriteOptions = DEFAULT_WRITE,
    ) -> Any:
        created = await super().create(kind, obj, subresource, options)
        if len(self.events) == self.expected:
            self.met.set()
        await self.met.wait()
        return created


async def test_the_oldest_are_dropped(clock: FakeClock) -> None:
    ledger = Ledger()
    made = recorder(ledger, clock)
    with capture_logs() as lines:
        for number in range(MAX_QUEUED + 2):
            made.event(POD, "Normal", "A", f"{number}")
        await made.flush()

    messages = [event["message"] for event in ledger.events.values()]
    assert len(messages) == MAX_QUEUED
    assert messages[0] == "2"
    results = [(line["event"], line.get("count")) for line in lines]
    assert results == [("event dropped", None), ("events dropped", 2)]


def pod(name: str) -> Reference:
    return Reference("v1", "Pod", Key("default", name), f"uid-{name}")


async def test_new_events_are_one_transaction(clock: FakeClock) -> None:
    ledger = InProcess()
    made = recorder(ledger, clock)
    for number in range(20):
        made.event(pod(f"p-{number}"), "Normal", "Scheduled", "assigned")
    await made.flush()

    assert ledger.commits == [MAX_WRITES, 4]
    assert len(ledger.events) == 20


async def test_one_event_and_repeated_ones_are_written_alone(clock: FakeClock) -> None:
    ledger = InProcess()
    made = recorder(ledger, clock)
    made.event(pod("a"), "Normal", "Scheduled", "assigned")
    await made.flush()
    for name in ("a", "b"):
        made.event(pod(name), "Normal", "Scheduled", "assigned")
    await made.flush()

    assert ledger.commits == []
    assert sorted(event["count"] for event in ledger.events.values()) == [1, 2]


async def test_events_of_a_transaction_are_counted_when_they_repeat(clock: FakeClock) -> None:
    ledger = InProcess()
    made = recorder(ledger, clock)
    for _ in range(2):
        for name in ("a", "b"):
            made.event(pod(name), "Normal", "Scheduled", "assigned")
    await made.flush()

    assert ledger.commits == [2]
    assert [event["count"] for event in ledger.events.values()] == [2, 2]


@pytest.mark.parametrize("error", [Forbidden("terminating"), UnreachableError("down")])
async def test_events_of_a_rejected_transaction_are_written_alone(
    clock: FakeClock, error: Exception
) -> None:
    ledger = InProcess(failures=[error])
    made = recorder(ledger, clock)
    for name in ("a", "b"):
        made.event(pod(name), "Normal", "Scheduled", "assigned")
    await made.flush()

    assert ledger.commits == []
    assert len(ledger.events) == 2
