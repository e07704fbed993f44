"""Calls that may block indefinitely, in threads that are not joined at the end.

The threads of asyncio are joined when a program ends; one that hangs in a driver would keep the
program, and its pod, indefinitely.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


def in_thread(function: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Start a function in a thread of its own; the future gets its result."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 -- passed on to the caller
            _notify(loop, _fail, future, error)
        else:
            _notify(loop, _succeed, future, result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


class Listener(Generic[T]):
    """A thread that waits for values in turn, and passes each to the loop."""

    def __init__(self, wait: Callable[[], T | None], handle: Callable[[T], None]) -> None:
        self._wait = wait
        self._handle = handle
        self._stopped = threading.Event()
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = in_thread(self._run, "events")

    def stop(self) -> None:
        """End after the current wait; `ended` is set then."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            value = self._wait()
            if value is not None:
                _notify(self._loop, self._handle, value)


def _notify(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: object) -> None:
    # The loop may be closed while the driver still worked.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
