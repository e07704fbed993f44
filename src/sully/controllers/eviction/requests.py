"""A source of keys that a controller requeues by itself, beside the changes of informers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sully.client.transport import Key


class Requests:
    """Keys that are requeued."""

    def __init__(self) -> None:
        self._queues: list[Callable[[Key], None]] = []

    def add(self, key: Key) -> None:
        """Requeue a key."""
        for add in self._queues:
            add(key)

    def enqueue(
        self, add: Callable[[Key], None], _: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys that are requeued to a queue."""
        self._queues.append(add)
        return lambda: self._queues.remove(add)
