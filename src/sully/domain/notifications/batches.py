"""Which notifications wait for a receiver, and when they are sent together.

All of one kind become one message: a storm of a thousand taints is one text, not a thousand.
The queue is bounded, so that a dead receiver costs nothing but its own notifications.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from datetime import datetime
from typing import Final

import msgspec

from sully.domain.notifications.kinds import Notification
from sully.domain.notifications.settings import Receiver

QUEUED_MAX: Final = 1000
RECENT_MAX: Final = 4096


class Batch(msgspec.Struct, frozen=True):
    """The notifications of one kind that are sent together, the oldest first."""

    kind: str
    notifications: tuple[Notification, ...]


class ReceiverQueue:
    """The notifications that wait for one receiver."""

    def __init__(
        self,
        receiver: Receiver,
        *,
        queued_max: int = QUEUED_MAX,
        recent_max: int = RECENT_MAX,
    ) -> None:
        self.receiver = receiver
        self._queued_max = queued_max
        self._recent_max = recent_max
        self._waiting: deque[Notification] = deque()
        self._first: datetime | None = None
        self._sent: datetime | None = None
        self._recent: OrderedDict[tuple[str, str], datetime] = OrderedDict()
        """When something was last reported about an object."""

    def add(self, notification: Notification) -> int:
        """Queue a notification that the receiver wants; return how many old ones were dropped."""
        now = notification.time
        if notification.kind not in self.receiver.kinds or self._is_repetition(notification):
            return 0
        dropped = 0
        if len(self._waiting) >= self._queued_max:
            self._waiting.popleft()
            dropped = 1
        if not self._waiting:
            self._first = now
        self._waiting.append(notification)
        return dropped

    def _is_repetition(self, notification: Notification) -> bool:
        key = notification.kind, notification.about
        last = self._recent.get(key)
        if last is not None and notification.time - last < self.receiver.repeat:
            return True
        self._recent[key] = notification.time
        self._recent.move_to_end(key)
        if len(self._recent) > self._recent_max:
            self._recent.popitem(last=False)
        return False

    def due(self) -> datetime | None:
        """Return when to send what waits; None if nothing does."""
        if not self._waiting or self._first is None:
            return None
        due = self._first + self.receiver.group_wait
        return due if self._sent is None else max(due, self._sent + self.receiver.interval)

    def take(self, now: datetime) -> list[Batch]:
        """Return what is to be sent now, by kind in the order of the first of each."""
        due = self.due()
        if due is None or now < due:
            return []
        kinds: dict[str, list[Notification]] = {}
        for notification in self._waiting:
            kinds.setdefault(notification.kind, []).append(notification)
        self._waiting.clear()
        self._first, self._sent = None, now
        return [Batch(kind, tuple(members)) for kind, members in kinds.items()]
