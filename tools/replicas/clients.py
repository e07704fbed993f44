"""Clients as behind a load balancer: any replica will do, and when one does not answer, the next.

A write whose answer was lost may have happened. Who repeats it must be able to tell: objects have
names of their own, and changes say on which version they build.
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
"""After so long a client asks another replica."""
AVOID_SECONDS = 3.0
"""For so long a replica that failed is not asked first, as a load balancer does it."""
PAUSE_SECONDS = 0.1
NO_ANSWER = (UnreachableError, UnreadableError, TimeoutError, Timeout)
"""After these nobody knows whether a write was done."""
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
    chance: random.Random
    answered: list[Acknowledged] = field(default_factory=list)
    moved: int = 0
    """How often somebody had to ask another replica."""
    _avoided: dict[int, float] = field(default_factory=dict)  # until when, by number

    def any(self) -> HttpTransport:
        """Return some replica."""
        return self.chance.choice(self.replicas)

    def number(self, began: float, ended: float) -> int:
        """Return how many requests were made and answered within a time."""
        return sum(began < each.begun and each.ended < ended for each in self.answered)

    def _order(self) -> list[int]:
        """Return whom to ask, one after the other: those that just failed come last."""
        now, numbers = time.monotonic(), range(len(self.replicas))
        mixed = self.chance.sample(numbers, len(numbers))
        return sorted(mixed, key=lambda number: self._avoided.get(number, 0.0) > now)

    async def ask(self, do: Callable[[HttpTransport], Awaitable[T]]) -> T:
        """Do it at some replica, and if that one fails at the next, until one succeeds."""
        order, tries = self._order(), 0
        while True:
            begun, number = time.monotonic(), order[tries % len(order)]
            try:
                found = await do(self.replicas[number])
            except TRY_ANOTHER:
                tries += 1
                self.moved += 1
                self._avoided[number] = time.monotonic() + AVOID_SECONDS
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                self.answered.append(Acknowledged(begun, time.monotonic()))
                return found

    async def make(self, kind: Kind[Obj], obj: Obj) -> None:
        """Create an object whose name nobody else uses, until that is acknowledged."""
        unsure = False

        async def create(api: HttpTransport) -> None:
            nonlocal unsure
            try:
                await api.create(kind, obj)
            except NO_ANSWER:
                unsure = True
                raise
            except AlreadyExists:
                # It was us, or somebody did something twice.
                if not unsure:
                    raise

        await self.ask(create)
