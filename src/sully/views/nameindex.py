"""Finds selectors by the device they may select, without asking all of them.

A selector names a driver, a pool and a device, or leaves some of them open. So for one device at
most eight combinations of names can match, and each of them is one lookup.
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, NamedTuple, TypeVar

from sully.api.resource.types import DeviceTaintSelector
from sully.domain.pools import DeviceId

T = TypeVar("T")


class Names(NamedTuple):
    """The names in a selector; None leaves a part open."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


ANY = Names()


def names_in(selector: DeviceTaintSelector) -> Names:
    """Return the names in a selector."""
    return Names(selector.driver, selector.pool, selector.device)


class NameIndex(Generic[T]):
    """Objects by the names they select."""

    def __init__(self) -> None:
        self._places: dict[str, Names] = {}
        # A Names is equal to the tuple of its parts, which is faster to make.
        self._found: dict[tuple[str | None, str | None, str | None], dict[str, T]] = {}
        self._shapes: Counter[tuple[bool, bool, bool]] = Counter()
        """How many selectors name which parts."""

    def put(self, name: str, names: Names, item: T) -> None:
        """File an object under its own name and the names it selects."""
        self.remove(name)
        self._places[name] = names
        self._found.setdefault(names, {})[name] = item
        self._shapes[_shape(names)] += 1

    def remove(self, name: str) -> None:
        """Forget an object."""
        place = self._places.pop(name, None)
        if place is not None:
            del self._found[place][name]
            if not self._found[place]:
                del self._found[place]
            shape = _shape(place)
            self._shapes[shape] -= 1
            if not self._shapes[shape]:
                del self._shapes[shape]

    def for_device(self, device: DeviceId) -> list[T]:
        """Return the objects whose names fit a device, in no order that matters."""
        found: list[T] = []
        for driver, pool, name in self._shapes:
            # The same shape for all: only combinations that some selector has are looked up.
            place = (
                device.driver if driver else None,
                device.pool if pool else None,
                device.device if name else None,
            )
            here = self._found.get(place)
            if here:
                found += here.values()
        return found


def _shape(names: Names) -> tuple[bool, bool, bool]:
    return names.driver is not None, names.pool is not None, names.device is not None
