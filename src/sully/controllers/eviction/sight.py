"""Whether what an eviction is based on is current: the bound on outdated caches.

A pod that is due leaves only if every cache that had a say was confirmed by the server within the
bound, over a line that has not broken since. Servers send a bookmark every minute, so with a bound
above that it costs nothing. Otherwise the caches in question are read anew, once for all pods that
wait, and then everything is judged again. How sure a cache is says `client/contact.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from sully.client.informers.informer import Informer
from sully.client.transport import Key


class Sight:
    """Knows how current the caches are, and wakes pods that had to wait for that."""

    def __init__(
        self, caches: Iterable[Informer[Any]], within: float | None, wake: Callable[[Key], None]
    ) -> None:
        self._caches = tuple(caches) if within is not None else ()
        self._within = within or 0.0
        self._wake = wake
        self._asked: set[int] = set()
        self._waiting: dict[Key, None] = {}
        for number, cache in enumerate(self._caches):
            cache.freshness.on_confirmed(partial(self._confirmed, number))

    @property
    def waiting(self) -> int:
        """Return how many pods wait until the server has confirmed what makes them leave."""
        return len(self._waiting)

    def clear(self, key: Key) -> bool:
        """Say whether a pod may leave on what is known; if not, it is woken when that is better."""
        outdated = [
            number
            for number, cache in enumerate(self._caches)
            if not cache.freshness.is_fresh(self._within)
        ]
        if not outdated:
            self._waiting.pop(key, None)
            return True
        self._waiting[key] = None
        self._asked.update(outdated)
        for number in outdated:
            self._caches[number].refresh()
        return False

    def forget(self, key: Key) -> None:
        """Note that a pod need not leave any more."""
        self._waiting.pop(key, None)

    def _confirmed(self, number: int) -> None:
        self._asked.discard(number)
        if self._waiting and not self._asked:
            waiting, self._waiting = self._waiting, {}
            for key in waiting:
                self._wake(key)
