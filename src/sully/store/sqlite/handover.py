"""Lets the writer thread run when the event loop is busy.

Python runs one thread at a time. A loop that has work lets go of the interpreter only for moments,
at each poll, and takes it back before a thread that was woken can run; nothing counts that as
starving, so on a machine without a free core a commit can take seconds. So the loop watches: if
nothing was reported for a while, it sleeps until something is, but only for a moment, so that a
slow disk does not stop it either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

CallLater = Callable[[float, Callable[[int], None], int], object]
"""The part of an event loop that is needed."""

_TURN = 0.001
"""The longest that the event loop blocks for the writer at a time."""
_SHORTEST = 0.001
_LONGEST = 0.064


class Handover:
    """Counts the jobs of a writer thread and lends it the interpreter if they do not move.

    The time between two loans adapts: where a loan helped, the next comes sooner; where it did not,
    the disk is slow and not the thread, and the next comes later.
    """

    def __init__(self, call_later: CallLater) -> None:
        self._call_later = call_later
        self._gap = _SHORTEST
        self._outstanding = 0
        self._reports = 0
        self._armed = False
        self._posted = threading.Event()

    def submitted(self) -> None:
        """Record a job, on the event loop."""
        self._outstanding += 1
        if not self._armed:
            self._arm()

    def reported(self, jobs: int) -> None:
        """Record finished jobs, on the event loop."""
        self._outstanding -= jobs
        self._reports += 1
        self._posted.clear()

    def posted(self) -> None:
        """Record that a report was posted, on the thread."""
        self._posted.set()

    def _arm(self) -> None:
        self._armed = True
        self._call_later(self._gap, self._look, self._reports)

    def _look(self, reports: int) -> None:
        self._armed = False
        if not self._outstanding:
            return
        if self._reports == reports:
            helped = self._posted.wait(_TURN)
            self._gap = max(_SHORTEST, self._gap / 2) if helped else min(_LONGEST, self._gap * 2)
        self._arm()
