"""Creates simulated nodes: a Node each, its Lease, and the slices of its driver.

Every node is reconciled once, at the start. Existing objects that are as published are unchanged;
machines beyond the fleet are removed, and what they own goes with them. A node or a slice that
is deleted later is not recreated until the next start, as where a machine was removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sully.api.resource.types import ResourceSlice
from sully.client.informers.informer import Informer, own_key
from sully.client.options import DeleteOptions, WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.framework import DONE, Once, Result, Watch
from sully.controllers.simulatednodes.kinds import (
    AGENT,
    CLASSES,
    LEASES,
    NODES,
    WHOLE_SLICES,
    Node,
)
from sully.controllers.simulatednodes.leases import interval
from sully.domain.simulated.fleet import SIMULATED, Fleet
from sully.domain.simulated.machines import (
    DIGEST,
    device_class,
    lease_of,
    node_digest,
    node_of,
    owned_by,
    slices_of,
)
from sully.machinery.errors import AlreadyExists, NotFound
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

log = get_logger("hollow")

WORKERS = 16
"""Machines that are made at a time; writes that are under way together are flushed together."""
PATIENCE = 2.0
"""Seconds between two log lines about the progress."""
_OWN = WriteOptions(field_manager=AGENT)
_INDEX = "hollow/node"


class SimulatedNodes:
    """Reconciles simulated nodes with the wanted fleet."""

    name = AGENT

    def __init__(
        self,
        *,
        fleet: Fleet,
        nodes: Informer[Node],
        slices: Informer[ResourceSlice],
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._fleet = fleet
        self._nodes = nodes
        self._slices = slices
        self._transport = transport
        self._clock = clock
        self._done: set[Key] = set()
        self._said = clock.monotonic()
        slices.add_index(_INDEX, self._node_of)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for the class and each machine of the fleet once, and for nodes beyond it."""
        wanted = (Key("", self._fleet.name(number)) for number in range(self._fleet.nodes))
        yield Watch(Once((Key("", self._fleet.driver), *wanted)), lambda key: (key,))
        yield Watch(self._nodes, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Make a machine, or remove one that is not wanted any more."""
        number, node = self._fleet.number(key.name), self._nodes.get(key)
        if key in self._done:
            return DONE
        if key.name == self._fleet.driver:
            await self._make_class()
        elif number is None:
            # Another node with the label.
            return DONE
        elif self._fleet.has(number):
            await self._make(number, node)
        elif node is not None:
            await self._remove(key, node)
            return DONE
        self._done.add(key)
        self._log_progress()
        return DONE

    async def _make_class(self) -> None:
        driver = self._fleet.driver
        try:
            await self._transport.create(CLASSES, device_class(driver), options=_OWN)
        except AlreadyExists:
            log.debug("device class exists", name=driver)

    async def _make(self, number: int, node: Node | None) -> None:
        if node is None:
            node = await self._register(number)
        elif node.metadata.annotations.get(DIGEST) != node_digest(self._fleet, number):
            await self._renew(number)
        if node is not None:
            await self._publish(number, node.metadata.uid)

    async def _register(self, number: int) -> Node | None:
        """Create a node and its lease; None if another node has that name."""
        now, name = self._clock.now(), self._fleet.name(number)
        try:
            body = node_of(self._fleet, number, now)
            made = await self._transport.create(NODES, body, options=_OWN)
        except AlreadyExists:
            node = await self._transport.get(NODES.read_as(dict), Key("", name))
            if (node["metadata"].get("labels") or {}).get(SIMULATED) != "true":
                log.warning("node exists and is not simulated", node=name)
                return None
            # Created before a restart, and not cached yet.
            return await self._transport.get(NODES, Key("", name))
        lease = lease_of(name, made.metadata.uid, now, interval(self._fleet.nodes))
        try:
            await self._transport.create(LEASES, lease, options=_OWN)
        except AlreadyExists:
            # Of a just deleted node; it will be garbage collected, and recreated by the renewal.
            log.debug("lease exists", node=name)
        return made

    async def _renew(self, number: int) -> None:
        """Update a node that was published differently."""
        fleet = self._fleet
        body, key = node_of(fleet, number, self._clock.now()), Key("", fleet.name(number))
        await self._transport.patch(NODES, key, {"status": body["status"]}, subresource="status")
        await self._transport.patch(NODES, key, {"metadata": body["metadata"]})

    async def _publish(self, number: int, uid: str) -> None:
        """Write the slices of a machine, all in a new generation, if any of them is different."""
        name = self._fleet.name(number)
        published = {slice_.metadata.name: slice_ for slice_ in self._slices.by_index(_INDEX, name)}
        wanted = {slice_["metadata"]["name"]: slice_ for slice_ in slices_of(self._fleet, number)}
        if published.keys() == wanted.keys() and all(
            _is_published(published[each], body, uid) for each, body in wanted.items()
        ):
            return
        generation = (
            max((slice_.spec.pool.generation for slice_ in published.values()), default=0) + 1
        )
        for slice_name, body in wanted.items():
            body["metadata"]["ownerReferences"] = owned_by(name, uid)
            body["spec"]["pool"]["generation"] = generation
            if slice_name in published:
                await self._transport.update(WHOLE_SLICES, body, options=_OWN)
            else:
                await self._transport.create(WHOLE_SLICES, body, options=_OWN)
        for slice_name in published.keys() - wanted.keys():
            await self._transport.delete(WHOLE_SLICES, Key("", slice_name))

    async def _remove(self, key: Key, node: Node) -> None:
        try:
            await self._transport.delete(NODES, key, DeleteOptions(uid=node.metadata.uid))
        except NotFound:
            return
        log.info("simulated node deleted", node=key.name)

    def _node_of(self, slice_: ResourceSlice) -> Iterable[str]:
        driver, labels = slice_.spec.driver, slice_.metadata.labels
        ours = driver == self._fleet.driver and labels.get(SIMULATED) == "true"
        return (slice_.spec.node_name,) if ours and slice_.spec.node_name else ()

    def _log_progress(self) -> None:
        now = self._clock.monotonic()
        if now - self._said >= PATIENCE:
            self._said = now
            log.info("creating simulated nodes", ready=len(self._done), of=self._fleet.nodes)


def _is_published(found: ResourceSlice, wanted: dict[str, Any], uid: str) -> bool:
    """Report whether a slice was written from what we want, for the node that there is now."""
    owners = {owner.uid for owner in found.metadata.owner_references}
    digest = wanted["metadata"]["annotations"][DIGEST]
    return found.metadata.annotations.get(DIGEST) == digest and uid in owners
