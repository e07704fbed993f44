"""A copy of a cache that also has what its reader has just written, before the cache does.

Who decides from a cache that lags behind its own writes decides twice, and two who look at each
other never come to rest. What the server answered to a write is newer than the cache, so it counts
at once; older news that arrives later does not.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeVar

from sully.client.informers.cache import Cache
from sully.client.informers.indexer import IndexFunction
from sully.client.objects import key_of, uid_of, version_of

T = TypeVar("T")

_REMEMBERED = 1000
"""How many deleted objects are remembered, for answers that come after the news of the end."""


class Written(Cache[T]):
    """The newest known state of a collection."""

    def __init__(
        self, source: Cache[T], *, indexes: Mapping[str, IndexFunction[T]] | None = None
    ) -> None:
        super().__init__(source.kind, indexes=indexes)
        self._gone: OrderedDict[str, None] = OrderedDict()
        source.on_change(self._news)

    def wrote(self, obj: T) -> None:
        """Take what the server answered to a write."""
        key = key_of(obj)
        known = self.get(key)
        if uid_of(obj) in self._gone or (known is not None and not is_newer(obj, known)):
            return
        self._notify(self._put(key, obj))

    def removed(self, obj: T) -> None:
        """Take it that the server deleted an object."""
        self._gone[uid_of(obj)] = None
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)
        key = key_of(obj)
        known = self.get(key)
        if known is not None and uid_of(known) == uid_of(obj):
            self._indexer.remove(key)
            self._notify([(known, None)])

    def _news(self, old: T | None, new: T | None) -> None:
        if new is not None:
            self.wrote(new)
        elif old is not None:
            self.removed(old)


def is_newer(one: object, other: object) -> bool:
    """Compare versions, which grow with every write to a server."""
    return int(version_of(one)) > int(version_of(other))
