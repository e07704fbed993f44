"""A source of keys that a controller asks for by itself, beside what informers tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sully.client.transport import Key


class Requests:
    """Keys that someone wants to be looked at."""

    def __init__(self) -> None:
        self._asked: list[Callable[[Key], None]] = []

    def add(self, key: Key) -> None:
        """Have a key looked at."""
        for add in self._asked:
            add(key)

    def enqueue(
        self, add: Callable[[Key], None], _: Callable[[Key], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys that are asked for to a queue."""
        self._asked.append(add)
        return lambda: self._asked.remove(add)
