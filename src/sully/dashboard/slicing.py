"""Long work on an event loop in short slices, so that others are served in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from time import thread_time
from typing import TypeVar

from sully.runtime.clock import Clock

T = TypeVar("T")
SLICE_SECONDS = 0.01
"""Of processor time. By the clock a slice would be one item where the machine is overloaded, and
after each slice all other requests have a turn, which takes long there."""


async def in_slices(
    items: Iterable[T], clock: Clock, used: Callable[[], float] = thread_time
) -> AsyncIterator[T]:
    """Yield items; let others run whenever the caller has worked on them for a while."""
    since = used()
    for item in items:
        yield item
        if used() - since >= SLICE_SECONDS:
            await clock.sleep(0)
            since = used()
