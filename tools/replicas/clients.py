"""Clients as behind a load balancer: they use any replica, and if it does not answer, the next.

A write whose response was lost may have been done. To retry it safely, objects have unique names
and updates have a resourceVersion.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kills.fleet import Obj
from sully.client.http.transport import HttpTransport
from sully.client.transport import Kind, UnreachableError, UnreadableError
from sully.machinery.errors import (
    AlreadyExists,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)

T = TypeVar("T")

ANSWER_SECONDS = 4.0
"""After this time a client uses another replica."""
AVOID_SECONDS = 3.0
"""For this time a replica that failed is used last, as by a load balancer."""
PAUSE_SECONDS = 0.1
NO_ANSWER = (UnreachableError, UnreadableError, TimeoutError, Timeout)
"""After these it is unknown whether a write was done."""
TRY_ANOTHER = (*NO_ANSWER, ServiceUnavailable, TooManyRequests)


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A request that was answered with success: when it began and ended."""

    begun: float
    ended: float


@dataclass(slots=True)
class Clients:
    """Access to all replicas."""

    replicas: Sequence[HttpTransport]
    rng: random.Random
    answered: list[Acknowledged] = field(default_factory=list)
    moved: int = 0
    """How often a client had to use another replica."""
    _avoided: dict[int, float] = field(default_factory=dict)  # until when, by number

    def any(self) -> HttpTransport:
        """Return some replica."""
        return self.rng.choice(self.replicas)

    def number(self, began: float, ended: float) -> int:
        """Return how many requests were made and answered within a time."""
        return sum(began < request.begun and request.ended < ended for request in self.answered)

    def _order(self) -> list[int]:
        """Return the order of replicas: those that just failed come last."""
        now, numbers = time.monotonic(), range(len(self.replicas))
        mixed = self.rng.sample(numbers, len(numbers))
        return sorted(mixed, key=lambda number: self._avoided.get(number, 0.0) > now)

    async def call(self, do: Callable[[HttpTransport], Awaitable[T]]) -> T:
        """Send a request to some replica, and if it fails to the next, until one succeeds."""
        order, tries = self._order(), 0
        while True:
            begun, number = time.monotonic(), order[tries % len(order)]
            try:
                answer = await do(self.replicas[number])
            except TRY_ANOTHER:
                tries += 1
                self.moved += 1
                self._avoided[number] = time.monotonic() + AVOID_SECONDS
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                self.answered.append(Acknowledged(begun, time.monotonic()))
                return answer

    async def create(self, kind: Kind[Obj], obj: Obj) -> None:
        """Create an object with a unique name, until that is acknowledged."""
        unsure = False

        async def attempt(api: HttpTransport) -> None:
            nonlocal unsure
            try:
                await api.create(kind, obj)
            except NO_ANSWER:
                unsure = True
                raise
            except AlreadyExists:
                # By an earlier attempt, unless none was in doubt.
                if not unsure:
                    raise

        await self.call(attempt)
