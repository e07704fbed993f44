"""Memory that cannot grow without end, for what is worked out once and needed often.

Pure packages may cache: that never changes a result, only its cost. What others make up, names
and values of objects, must not fill the memory of the process though, so every memo has a limit,
and texts that clients choose are cached only if they are short.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache, wraps
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
E = TypeVar("E")

LONGEST = 512
"""Characters of a text that is cached: names, quantities and times are shorter."""

LONGEST_VALUE = 8192
"""Bytes of a valid value that is cached: most specs are shorter."""


def memoized(max_entries: int) -> Callable[[Callable[[str], V]], Callable[[str], V]]:
    """Cache what a function returned for the latest texts, of those that are short."""

    def decorate(function: Callable[[str], V]) -> Callable[[str], V]:
        known = lru_cache(maxsize=max_entries)(function)

        @wraps(function)
        def call(text: str) -> V:
            return known(text) if len(text) <= LONGEST else function(text)

        return call

    return decorate


class Memo(dict[K, V]):
    """A dict that is cleared when it is full.

    Which entry was used last is not kept: finding one stays as quick as in any dict, and who
    needs more than fits gains nothing from remembering either way.
    """

    __slots__ = ("_max_entries",)

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self._max_entries = max_entries

    def keep(self, key: K, value: V) -> V:
        """Cache a value, and return it."""
        if len(self) >= self._max_entries:
            self.clear()
        self[key] = value
        return value


class ValidValues:
    """The values that were found valid: objects of one template have equal parts, by thousands."""

    def __init__(self, max_entries: int) -> None:
        self._known: Memo[Hashable, None] = Memo(max_entries)

    def has(self, value: bytes, *rules: Hashable) -> bool:
        """Report whether an encoded value was found valid by these rules."""
        return (value, rules) in self._known

    def check(self, value: bytes, errors: Iterable[E], *rules: Hashable) -> Iterator[E]:
        """Yield the errors of an encoded value, unless it is known to have none by these rules."""
        if self.has(value, *rules):
            return
        valid = True
        for error in errors:
            valid = False
            yield error
        if valid and len(value) <= LONGEST_VALUE:
            self._known.keep((value, rules), None)
