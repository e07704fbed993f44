"""An index of selectors by the names of the devices they may select.

A selector has a driver, a pool and a device, or omits some of them. So for one device at most eight
combinations of names can match, and each of them is one lookup. For a whole pool there are four.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from typing import Generic, NamedTuple, TypeVar

from sully.api.resource.types import DeviceTaintSelector
from sully.domain.devices.pools import DeviceId, PoolId

T = TypeVar("T")

_PoolNames = tuple[str | None, str | None]
"""A driver and a pool; None matches any."""


class Names(NamedTuple):
    """The names in a selector; None matches any."""

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
        self._by_pool: dict[_PoolNames, dict[str | None, dict[str, T]]] = {}
        """By driver and pool, then by device, then by the object's own name."""
        self._shapes: Counter[tuple[bool, bool]] = Counter()
        """How many entries of `_by_pool` have a driver, and a pool."""

    def __bool__(self) -> bool:
        """Report whether the index has any object."""
        return bool(self._names)

    def put(self, name: str, names: Names, item: T) -> None:
        """Add or replace an object under its own name and the names it selects."""
        self.remove(name)
        self._names[name] = names
        pool = names[:2]
        if pool not in self._by_pool:
            self._by_pool[pool] = {}
            self._shapes[_shape(pool)] += 1
        self._by_pool[pool].setdefault(names.device, {})[name] = item

    def remove(self, name: str) -> None:
        """Remove an object."""
        names = self._names.pop(name, None)
        if names is None:
            return
        pool = names[:2]
        by_device = self._by_pool[pool]
        del by_device[names.device][name]
        if not by_device[names.device]:
            del by_device[names.device]
        if not by_device:
            del self._by_pool[pool]
            self._shapes[_shape(pool)] -= 1
            if not self._shapes[_shape(pool)]:
                del self._shapes[_shape(pool)]

    def for_device(self, device: DeviceId) -> list[T]:
        """Return the objects whose names match a device, in no particular order."""
        items: list[T] = []
        for by_device in self._matching(device.driver, device.pool):
            for name in (None, device.device):
                if name in by_device:
                    items += by_device[name].values()
        return items

    def for_pool(self, pool: PoolId, devices: Callable[[], Set[str]]) -> tuple[list[T], set[str]]:
        """Return the objects for all devices of a pool, and the devices that others name.

        The devices of the pool are read only if there are others.
        """
        items: list[T] = []
        named: set[str] = set()
        for by_device in self._matching(*pool):
            for_all = by_device.get(None)
            if for_all is not None:
                items += for_all.values()
            if for_all is None or len(by_device) > 1:
                # The cost is that of the smaller set.
                named.update(devices() & by_device.keys())
        return items, named

    def has_any_for(self, pool: PoolId) -> bool:
        """Report whether any object may select devices of a pool."""
        return bool(self._matching(*pool))

    def _matching(self, driver: str, pool: str) -> list[dict[str | None, dict[str, T]]]:
        # Only combinations that some selector has are looked up.
        matching = [
            self._by_pool.get((driver if with_driver else None, pool if with_pool else None))
            for with_driver, with_pool in self._shapes
        ]
        return [by_device for by_device in matching if by_device is not None]


def _shape(names: _PoolNames) -> tuple[bool, bool]:
    return names[0] is not None, names[1] is not None
