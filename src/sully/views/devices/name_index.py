"""Finds selectors by the device they may select, without asking all of them.

A selector names a driver, a pool and a device, or leaves some of them open. So for one device at
most eight combinations of names can match, and each of them is one lookup. For a whole pool it is
four: what names no device is for all of them alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from typing import Generic, NamedTuple, TypeVar

from sully.api.resource.types import DeviceTaintSelector
from sully.domain.devices.pools import DeviceId, PoolId

T = TypeVar("T")

_Place = tuple[str | None, str | None]
"""A driver and a pool; None leaves one open."""


class Names(NamedTuple):
    """The names in a selector; None leaves a part open."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def match_pool(self, pool: PoolId) -> bool:
        """Report whether a pool may have devices with these names."""
        return self.driver in (None, pool.driver) and self.pool in (None, pool.pool)


ANY = Names()


def names_in(selector: DeviceTaintSelector) -> Names:
    """Return the names in a selector."""
    return Names(selector.driver, selector.pool, selector.device)


class NameIndex(Generic[T]):
    """Objects by the names they select."""

    def __init__(self) -> None:
        self._names: dict[str, Names] = {}
        self._places: dict[_Place, dict[str | None, dict[str, T]]] = {}
        """By driver and pool, then by device, then by the object's own name."""
        self._shapes: Counter[tuple[bool, bool]] = Counter()
        """How many places name a driver, and a pool."""

    def __bool__(self) -> bool:
        """Report whether there is anything to find."""
        return bool(self._names)

    def put(self, name: str, names: Names, item: T) -> None:
        """File an object under its own name and the names it selects."""
        self.remove(name)
        self._names[name] = names
        place = names[:2]
        if place not in self._places:
            self._places[place] = {}
            self._shapes[_shape(place)] += 1
        self._places[place].setdefault(names.device, {})[name] = item

    def remove(self, name: str) -> None:
        """Forget an object."""
        names = self._names.pop(name, None)
        if names is None:
            return
        place = names[:2]
        here = self._places[place]
        del here[names.device][name]
        if not here[names.device]:
            del here[names.device]
        if not here:
            del self._places[place]
            self._shapes[_shape(place)] -= 1
            if not self._shapes[_shape(place)]:
                del self._shapes[_shape(place)]

    def for_device(self, device: DeviceId) -> list[T]:
        """Return the objects whose names fit a device, in no order that matters."""
        found: list[T] = []
        for here in self._near(device.driver, device.pool):
            for name in (None, device.device):
                if name in here:
                    found += here[name].values()
        return found

    def for_pool(self, pool: PoolId, devices: Set[str]) -> tuple[list[T], set[str]]:
        """Return what is for all devices of a pool, and for which of them there is more."""
        found: list[T] = []
        named: set[str] = set()
        for here in self._near(*pool):
            found += here.get(None, {}).values()
            # Costs the shorter of both.
            named.update(devices & here.keys())
        return found, named

    def reaches(self, pool: PoolId) -> bool:
        """Report whether anything may be for devices of a pool."""
        return any(True for _ in self._near(*pool))

    def _near(self, driver: str, pool: str) -> Iterator[dict[str | None, dict[str, T]]]:
        for with_driver, with_pool in self._shapes:
            # Only combinations that some selector has are looked up.
            place = (driver if with_driver else None, pool if with_pool else None)
            here = self._places.get(place)
            if here:
                yield here


def _shape(place: _Place) -> tuple[bool, bool]:
    return place[0] is not None, place[1] is not None
