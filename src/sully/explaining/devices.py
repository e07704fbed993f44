"""What belongs to a question about a device."""

from __future__ import annotations

from collections.abc import Sequence

from sully.api.resource.types import ResourceSlice
from sully.controllers.scheduling.devices import Shelf
from sully.domain.allocation.nodes import Node
from sully.domain.allocation.offers import offer_pool
from sully.domain.allocation.vacancy import Vacancies
from sully.domain.devices import Published
from sully.domain.explaining.devices import DeviceFacts, PoolCause, explain_device
from sully.domain.explaining.evicted import explain_left
from sully.domain.explaining.story import Explanation
from sully.domain.explaining.wording import listed
from sully.domain.pools import DeviceId, PoolId, current
from sully.explaining.attempts import TERMS
from sully.explaining.world import World
from sully.views.nameindex import Names
from sully.views.sights import ALL_NODES, SOME_NODES, node_of

MOST_NAMED = 4


class AmbiguousError(ValueError):
    """Several devices have the name that somebody gave."""


def find(world: World, text: str) -> DeviceId | None:
    """Return the device that somebody means, by its whole name or by the end of it."""
    found = [each for each in known(world) if matches(each, text)]
    exact = [each for each in found if str(each) == text]
    if len(found) > 1 and not exact:
        names = listed([str(each) for each in sorted(found)], MOST_NAMED)
        raise AmbiguousError(f"{len(found)} devices are called {text}: {names}")
    return next(iter(exact or found), None)


def matches(device: DeviceId | str, text: str) -> bool:
    """Say whether a device has a name, or a name that ends so."""
    name = str(device)
    return name == text or name.endswith(f"/{text}")


def known(world: World) -> set[DeviceId]:
    """Return the devices that are published or held."""
    inventory, usage = world.snapshot.inventory, world.snapshot.usage
    published = {
        DeviceId(*pool, name) for pool in inventory.pools() for name in inventory.devices(pool)
    }
    return published | {each.device for each in usage.held(Names())}


def gone(world: World, text: str) -> Explanation | None:
    """Explain a device that is only remembered, because pods were evicted from it."""
    records = world.evictions(
        lambda each: any(matches(cause.device, text) for cause in each.spec.causes)
    )
    if not records:
        return None
    causes = [cause for each in records for cause in each.spec.causes]
    name = next(cause.device for cause in causes if matches(cause.device, text))
    return explain_left(name, records, world.sources, world.now)


def device(world: World, id_: DeviceId) -> Explanation:
    """Explain a device that is published or held."""
    inventory, usage = world.snapshot.inventory, world.snapshot.usage
    held = list(usage.held(Names(*id_)))
    published = inventory.published(id_)
    cause, problem = _pool_problem(world, id_.pool_id, published)
    return explain_device(
        DeviceFacts(
            id=id_,
            now=world.now,
            sources=world.sources,
            device=inventory.device(id_),
            where=_where(published),
            pool_cause=cause,
            pool_problem=problem,
            taints=world.taints(id_, [each.claim for each in held]),
            holdings=tuple(world.holding(each.claim, each.result) for each in held),
            terms=TERMS,
        )
    )


def _where(published: Published | None) -> str:
    place = node_of(published) if published is not None else ""
    if place == ALL_NODES:
        return " (for all nodes)"
    if place == SOME_NODES:
        return " (for the nodes of a selector)"
    return f" on node {place}" if place else ""


def _pool_problem(world: World, pool: PoolId, published: Published | None) -> tuple[PoolCause, str]:
    """Say why a pool cannot be used, as a node sees it that the device is for."""
    if published is None:
        return "", ""
    shelf = Shelf(world.snapshot.inventory)
    node = Node(published.slice.spec.node_name or "", {})
    slices = shelf.slices(pool)
    offer = offer_pool(pool, slices, shelf.devices, node)
    if offer is None:
        return "", ""
    if offer.is_incomplete:
        there, wanted = len(current(slices)), published.slice.spec.pool.resource_slice_count
        return "PoolIncomplete", f"pool {pool} has {there} of {wanted} slices"
    if offer.problem:
        return "PoolInvalid", f"pool {pool} is invalid, {offer.problem}"
    return _counters_used(world, pool, published, slices)


def _counters_used(
    world: World, pool: PoolId, published: Published, slices: Sequence[ResourceSlice]
) -> tuple[PoolCause, str]:
    """Say whether other devices of a pool have used up what a device would take."""
    held = world.snapshot.usage.held(Names(pool.driver, pool.pool))
    used = {each.device.device for each in held if not each.admin}
    found = Vacancies(slices, used).obstacle(published.slice, published.device)
    if found is None or found.cause != "CountersUsed":
        return "", ""
    return "CountersUsed", f"it {found.text}"
