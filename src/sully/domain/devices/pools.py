"""Which slices of a pool are used: those of its owner, of the newest generation, if complete.

A driver that changes its pool publishes slices of a higher generation one after the other; until it
has finished, slices of two generations exist. `views/devices/inventory.py` keeps pools up to date.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple, Protocol

from sully.api.resource.types import ResourceSlice

_UNKNOWN = datetime.max.replace(tzinfo=UTC)


class PoolId(NamedTuple):
    """A pool, by its driver and name."""

    driver: str
    pool: str

    def __str__(self) -> str:
        """Return `driver/pool`."""
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    """A device, by its driver, pool and name."""

    driver: str
    pool: str
    device: str

    @property
    def pool_id(self) -> PoolId:
        return PoolId(self.driver, self.pool)

    def __str__(self) -> str:
        """Return `driver/pool/device`."""
        return f"{self.driver}/{self.pool}/{self.device}"


class _Result(Protocol):
    @property
    def driver(self) -> str: ...
    @property
    def pool(self) -> str: ...
    @property
    def device(self) -> str: ...


def device_of_result(result: _Result) -> DeviceId:
    """Return the device of an allocation result, or of its status."""
    return DeviceId(result.driver, result.pool, result.device)


def device_id(text: str) -> DeviceId:
    """Return a device that is written `driver/pool/device`; a pool may have slashes itself."""
    driver, _, rest = text.partition("/")
    pool, _, name = rest.rpartition("/")
    return DeviceId(driver, pool, name)


class Standing(Enum):
    """Whether a pool may be used."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    """Slices of the newest generation are still missing, or there are too many."""
    REPLACED = "replaced"
    """A newer generation exists in slices for other nodes."""


def pool_of(slice_: ResourceSlice) -> PoolId:
    """Return the pool a slice belongs to."""
    return PoolId(slice_.spec.driver, slice_.spec.pool.name)


def pool_owner(pool: str, nodes: Collection[str], slices: Iterable[ResourceSlice]) -> str:
    """Return the node that owns a pool, empty if no single node does.

    A node can publish only slices with its own `nodeName`, but under any pool name and with any
    generation. Without an owner, one node could replace the devices of another.

    1. A pool named like a node that publishes in it belongs to that node.
    2. A pool with slices for several nodes belongs to no node: nodes cannot publish those.
    3. Any other pool belongs to the node with the oldest slice.

    `nodes` are those of the `slices`, empty for several; only the last rule looks at each slice.
    """
    if pool in nodes:
        return pool
    if "" in nodes or not nodes:
        return ""
    return min(slices, key=_age).spec.node_name or ""


def is_owned(slice_: ResourceSlice, owner: str) -> bool:
    """Report whether a slice is used in a pool with this owner; slices for several nodes are."""
    return not slice_.spec.node_name or slice_.spec.node_name == owner


def _age(slice_: ResourceSlice) -> tuple[bool, datetime, str, str]:
    """Return the age of a slice for sorting; within a second the uid decides."""
    metadata = slice_.metadata
    created = metadata.creation_timestamp
    return created is None, created or _UNKNOWN, metadata.uid, metadata.name


def newest_generation(slices: Iterable[ResourceSlice]) -> int | None:
    """Return the highest generation among slices, or None if there are none."""
    return max((slice_.spec.pool.generation for slice_ in slices), default=None)


def current(slices: Iterable[ResourceSlice]) -> tuple[ResourceSlice, ...]:
    """Return the slices of the newest generation, by name."""
    everything = tuple(slices)
    if len(everything) == 1:
        return everything
    newest = newest_generation(everything)
    latest = (slice_ for slice_ in everything if slice_.spec.pool.generation == newest)
    return tuple(sorted(latest, key=lambda slice_: slice_.metadata.name))


def standing(visible: Iterable[ResourceSlice], everywhere: Iterable[ResourceSlice]) -> Standing:
    """Judge a pool of which a node sees some slices.

    A node may see fewer slices than exist, because the others are for other nodes. The pool is not
    incomplete for that reason, so all of its slices are counted then.
    """
    seen = current(visible)
    if not seen:
        return Standing.INCOMPLETE
    generation, expected = seen[0].spec.pool.generation, seen[0].spec.pool.resource_slice_count
    if len(seen) == expected:
        return Standing.COMPLETE
    newest = current(everywhere)
    if newest and newest[0].spec.pool.generation > generation:
        return Standing.REPLACED
    return Standing.COMPLETE if len(newest) == expected else Standing.INCOMPLETE
