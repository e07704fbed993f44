"""What belongs to a question about a device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from sully.api.sully.types import EvictionRecord
from sully.domain.allocation.availability import Availability, Obstacle
from sully.domain.devices.device import Published
from sully.domain.devices.pools import DeviceId
from sully.domain.explaining.devices import DeviceFacts, explain_device
from sully.domain.explaining.evicted import explain_left
from sully.domain.explaining.story import Explanation
from sully.domain.explaining.wording import listed
from sully.explaining.world import World
from sully.views.devices.details import ALL_NODES, SOME_NODES, node_of
from sully.views.devices.name_index import Names

T = TypeVar("T", DeviceId, str)
MOST_NAMED = 4


class AmbiguousError(ValueError):
    """Several devices have the name that somebody gave."""


def find(world: World, text: str) -> DeviceId | None:
    """Return the device that somebody means, by its whole name or by the end of it."""
    return only(known(world), text)


def only(devices: Iterable[T], text: str) -> T | None:
    """Return the one device that has a name, or whose name ends so."""
    found = {str(each): each for each in devices if f"/{each}".endswith(f"/{text}")}
    if len(found) > 1 and text not in found:
        names = listed(sorted(found), MOST_NAMED)
        raise AmbiguousError(f"{len(found)} devices are called {text}: {names}")
    return found.get(text, next(iter(found.values()), None))


def remembered(world: World, text: str) -> tuple[str, tuple[EvictionRecord, ...]]:
    """Return which device somebody means of those that pods were evicted from, and when."""
    every = world.evictions(lambda _: True)
    name = only((cause.device for each in every for cause in each.spec.causes), text)
    if name is None:
        return "", ()
    return name, tuple(x for x in every if any(one.device == name for one in x.spec.causes))


def known(world: World) -> set[DeviceId]:
    """Return the devices that are published or held."""
    inventory, usage = world.snapshot.inventory, world.snapshot.usage
    published = {
        DeviceId(*pool, name) for pool in inventory.pools() for name in inventory.devices(pool)
    }
    return published | {each.device for each in usage.held(Names())}


def gone(world: World, text: str) -> Explanation | None:
    """Explain a device that is only remembered, because pods were evicted from it."""
    name, records = remembered(world, text)
    return explain_left(name, records, world.sources, world.now) if records else None


def device(world: World, id_: DeviceId) -> Explanation:
    """Explain a device that is published or held."""
    inventory, usage = world.snapshot.inventory, world.snapshot.usage
    held = list(usage.held(Names(*id_)))
    published = inventory.published(id_)
    return explain_device(
        DeviceFacts(
            id=id_,
            now=world.now,
            sources=world.sources,
            device=inventory.device(id_),
            where=_where(published),
            obstacle=_obstacle(world, published),
            taints=world.taints(id_, [each.claim for each in held]),
            holdings=tuple(world.holding(each.claim, each.result) for each in held),
            terms=world.snapshot.terms,
        )
    )


def _where(published: Published | None) -> str:
    place = node_of(published) if published is not None else ""
    if place == ALL_NODES:
        return " (for all nodes)"
    if place == SOME_NODES:
        return " (for the nodes of a selector)"
    return f" on node {place}" if place else ""


def _obstacle(world: World, published: Published | None) -> Obstacle | None:
    """Return what keeps everybody from a device, other than its taints and whoever has it."""
    pool = world.snapshot.inventory.pool(published.id.pool_id) if published is not None else None
    if published is None or pool is None:
        return None
    held = world.snapshot.usage.held(Names(published.id.driver, published.id.pool))
    used = {each.device.device for each in held if not each.admin}
    availability = Availability(tuple(pool.slices.values()), used)
    return availability.obstacle(published.slice, published.device)
