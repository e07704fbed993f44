"""Until when what was begun may still be done: known to all that a call leads to, without a word.

A controller may write only while its process leads. A store that tries again and again when a
member of etcd does not answer must stop in time, though everything between the two knows nothing of
leading. So the time travels with the task: client/direct.py sets it, store/etcd/client.py asks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

_UNTIL: ContextVar[float] = ContextVar("until", default=inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Let what the block begins be done only within a time; an outer block may allow less."""
    before = _UNTIL.set(min(_UNTIL.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _UNTIL.reset(before)


def seconds_left() -> float:
    """Return how long what runs now may still do something; zero or less: it may not."""
    return _UNTIL.get() - time.monotonic()
