"""Whether the caches that an eviction is based on are current.

A pod is evicted only if the server has confirmed every cache within the bound, over a watch that
has not failed since. Servers send a bookmark every minute, so a bound above that costs nothing.
Otherwise the caches are relisted, once for all pods that wait, and then the pods are judged again.
How current a cache is, is measured in `client/informers/freshness.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sully.client.transport import Key


class Freshness(Protocol):
    """The freshness of a cache; `InformerFreshness` is one."""

    def is_fresh(self, within: float) -> bool:
        """Report whether it is no older than this many seconds."""
        ...


class CacheFreshness:
    """The caches that evictions depend on, and the pods that wait until they are fresh."""

    def __init__(
        self,
        caches: Sequence[Freshness],
        within: float | None,
        *,
        requeue: Callable[[Key], None],
        refresh: Callable[[int], None],
    ) -> None:
        self._caches = tuple(caches) if within is not None else ()
        self._within = within or 0.0
        self._requeue = requeue
        self._refresh = refresh
        self._refreshing: set[int] = set()
        self._waiting: dict[Key, None] = {}

    @property
    def waiting(self) -> int:
        """Return how many pods wait until the server has confirmed what evicts them."""
        return len(self._waiting)

    def is_fresh(self, key: Key) -> bool:
        """Report whether the caches are fresh enough to evict a pod; if not, requeue it later."""
        if not self._caches:
            return True
        stale = [
            number for number, cache in enumerate(self._caches) if not cache.is_fresh(self._within)
        ]
        if not stale:
            self._waiting.pop(key, None)
            return True
        self._waiting[key] = None
        self._refreshing.update(stale)
        for number in stale:
            self._refresh(number)
        return False

    def forget(self, key: Key) -> None:
        """Note that a pod need not be evicted any more."""
        self._waiting.pop(key, None)

    def confirmed(self, number: int) -> None:
        """Note that the server has confirmed a cache."""
        self._refreshing.discard(number)
        if self._waiting and not self._refreshing:
            waiting, self._waiting = self._waiting, {}
            for key in waiting:
                self._requeue(key)
