"""How much the dashboard does at the same time: for one viewer, and for all of them.

`sully up` serves the dashboard in the process of its API server. So what a page asks is computed
in threads of the dashboard, never in those of the server, and few requests run in parallel.
The others wait a while, and are refused if too many wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar

import msgspec

from sully.dashboard.http import HttpError

P = ParamSpec("P")
T = TypeVar("T")
RETRY_SECONDS = 5


class WorkLimits(msgspec.Struct, frozen=True):
    """How many requests are answered at the same time, and how many wait for it."""

    per_user: int = 2
    total: int = 4
    waiting: int = 16
    """Requests of one user that wait; the page sends a handful when it is opened."""
    seconds: float = 20.0
    """How long a request waits."""


class _Seats(msgspec.Struct):
    free: asyncio.Semaphore
    requests: int = 0
    """Those that are answered, and those that wait."""


@dataclass(slots=True)
class Work:
    """The threads of a dashboard, and who may use them now."""

    limits: WorkLimits = field(default_factory=WorkLimits)
    _users: dict[Hashable, _Seats] = field(default_factory=dict)
    _total: asyncio.Semaphore = field(init=False)
    _threads: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._total = asyncio.Semaphore(self.limits.total)
        self._threads = ThreadPoolExecutor(self.limits.total, "dashboard")

    @asynccontextmanager
    async def seat(
        self, user: Hashable, ready: Callable[[], Awaitable[None]] | None = None
    ) -> AsyncIterator[None]:
        """Wait until a request of a user can be answered; raises HttpError if too many do.

        Until what it needs is `ready`, it takes the turn of no other request.
        """
        limits = self.limits
        seats = self._users.setdefault(user, _Seats(asyncio.Semaphore(limits.per_user)))
        if seats.requests >= limits.per_user + limits.waiting:
            raise _too_many()
        seats.requests += 1
        try:
            if ready is not None:
                await ready()
            async with _within(seats.free, limits.seconds), _within(self._total, limits.seconds):
                yield
        finally:
            seats.requests -= 1
            if not seats.requests:
                del self._users[user]

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of pure work, which is done in a thread of the dashboard.

        If the caller is cancelled, work that has not begun is not done. Work that has begun cannot
        be stopped: the caller keeps its seat until it ends, so that it cannot begin more.
        """
        call = partial(copy_context().run, work, *args, **kwargs)
        future = self._threads.submit(call)
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not future.cancel():
                await asyncio.wait((waiting,))
            raise

    def close(self) -> None:
        """Forget what has not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)


@asynccontextmanager
async def _within(semaphore: asyncio.Semaphore, seconds: float) -> AsyncIterator[None]:
    """Hold a semaphore that becomes free in time."""
    try:
        async with asyncio.timeout(seconds):
            await semaphore.acquire()
    except TimeoutError as error:
        raise _too_many() from error
    try:
        yield
    finally:
        semaphore.release()


def _too_many() -> HttpError:
    return HttpError(
        429,
        "too many requests of this user are being answered; try again later",
        retry_after=RETRY_SECONDS,
    )
