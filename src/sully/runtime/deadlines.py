"""A deadline for writes that travels with the task, as the context of Go.

A controller may write only while its process is the leader. A store that retries when a member of
etcd does not answer must stop in time, though everything in between does not know about leader
election. client/direct.py sets the deadline, store/etcd/client.py reads it.
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
    """Set a deadline for what the block starts; an outer block may have an earlier one."""
    before = _UNTIL.set(min(_UNTIL.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _UNTIL.reset(before)


def seconds_left() -> float:
    """Return the seconds until the deadline; zero or less: it has passed."""
    return _UNTIL.get() - time.monotonic()
