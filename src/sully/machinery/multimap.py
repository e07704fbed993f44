"""Sets of values by key, for indexes in which most keys have one value.

A set takes 216 bytes even for one value, so a single value is stored as it is: an index of
claims by pod then takes a third.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, KeysView
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


class _Several(set[V]):
    """The values of a key that has had more than one; distinct from a value that is a set."""

    __slots__ = ()


class Multimap(Generic[K, V]):
    """Values by key. A key without values does not exist."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[K, V | _Several[V]] = {}

    def copy(self) -> Multimap[K, V]:
        """Return an independent copy."""
        fresh: Multimap[K, V] = Multimap()
        fresh._values = {
            key: _Several(values) if isinstance(values, _Several) else values
            for key, values in self._values.items()
        }
        return fresh

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        """Report whether a key has values."""
        return key in self._values

    def keys(self) -> KeysView[K]:
        """Return the keys."""
        return self._values.keys()

    def items(self) -> Iterator[tuple[K, Collection[V]]]:
        """Yield the keys with their values."""
        for key in self._values:
            yield key, self.get(key)

    def get(self, key: K) -> Collection[V]:
        """Return the values of a key, in no particular order; valid until the next change."""
        try:
            values = self._values[key]
        except KeyError:
            return ()
        return values if isinstance(values, _Several) else (values,)

    def add(self, key: K, value: V) -> None:
        """Add a value, which may be there already."""
        try:
            values = self._values[key]
        except KeyError:
            self._values[key] = value
            return
        if isinstance(values, _Several):
            values.add(value)
        elif values != value:
            self._values[key] = _Several((values, value))

    def discard(self, key: K, value: V) -> None:
        """Remove a value, if it is there."""
        try:
            values = self._values[key]
        except KeyError:
            return
        if isinstance(values, _Several):
            values.discard(value)
            if not values:
                del self._values[key]
        elif values == value:
            del self._values[key]
