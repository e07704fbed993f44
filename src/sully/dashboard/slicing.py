"""Long work on an event loop in short slices, so that others are served in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from sully.runtime.clock import Clock

T = TypeVar("T")
SLICE_SECONDS = 0.01
"""Not less: after a slice everybody else has a turn, which takes long on a busy server."""


async def in_slices(items: Iterable[T], clock: Clock) -> AsyncIterator[T]:
    """Yield items; let others run whenever the caller has worked on them for a while."""
    since = clock.monotonic()
    for item in items:
        yield item
        if clock.monotonic() - since >= SLICE_SECONDS:
            await clock.sleep(0)
            since = clock.monotonic()
