"""People are notified when a budget refuses an eviction."""

from __future__ import annotations

from typing import Any

from sully.client.direct import DirectTransport
from sully.client.events import EventRecorder
from sully.client.transport import Key
from sully.controllers.eviction.executor import Executor
from sully.controllers.framework.controller import ControllerEnv
from sully.evictor.effects import EvictPod
from sully.evictor.events import EvictionRefused
from sully.machinery.errors import TooManyRequests
from sully.testing.clock import FakeClock


class Refusing(DirectTransport):
    """A server whose budgets allow no disruption."""

    def __init__(self) -> None:
        pass

    async def create(self, *_: Any, **__: Any) -> Any:
        raise TooManyRequests("the disruption budget b needs 2 healthy pods")


class Listening:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def publish(self, kind: str, about: str, message: str) -> None:
        self.seen.append((kind, about, message))


async def test_a_refusal_is_published() -> None:
    transport, clock, notifier = Refusing(), FakeClock(), Listening()
    recorder = EventRecorder(transport, "x", clock=clock)
    executor = Executor(ControllerEnv(transport, recorder, clock), notifier)

    answer = await executor.evict(EvictPod(Key("a", "p"), "uid", (), None))

    assert isinstance(answer, EvictionRefused)
    assert notifier.seen == [
        ("BlockedByBudget", "Pod/a/p", "the disruption budget b needs 2 healthy pods")
    ]
