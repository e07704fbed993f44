"""What belongs to a question about a device."""

from __future__ import annotations

from sully.controllers.scheduling.devices import Shelf
from sully.domain.allocation.nodes import Node
from sully.domain.allocation.offers import offer_pool
from sully.domain.devices import Published
from sully.domain.explaining.devices import DeviceFacts, PoolCause, explain_device
from sully.domain.explaining.story import Explanation
from sully.domain.pools import DeviceId, PoolId, current
from sully.explaining.attempts import TERMS
from sully.explaining.world import World
from sully.views.nameindex import Names
from sully.views.sights import ALL_NODES, SOME_NODES, node_of

MOST_NAMED = 8


class AmbiguousError(ValueError):
    """Several devices have the name that somebody gave."""


def find(world: World, text: str) -> DeviceId | None:
    """Return the device that somebody means, by its whole name or by the end of it."""
    found = [each for each in _known(world) if str(each) == text or str(each).endswith(f"/{text}")]
    exact = [each for each in found if str(each) == text]
    if len(found) > 1 and not exact:
        names = ", ".join(map(str, sorted(found)[:MOST_NAMED]))
        raise AmbiguousError(f"{len(found)} devices are called {text}: {names}")
    return next(iter(exact or found), None)


def _known(world: World) -> set[DeviceId]:
    inventory, usage = world.snapshot.inventory, world.snapshot.usage
    published = {
        DeviceId(*pool, name) for pool in inventory.pools() for name in inventory.devices(pool)
    }
    return published | {each.device for each in usage.held(Names())}


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
    return (
        ("PoolInvalid", f"pool {pool} is invalid, {offer.problem}") if offer.problem else ("", "")
    )
