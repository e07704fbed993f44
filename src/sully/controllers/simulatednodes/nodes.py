"""Creates simulated nodes: a Node each, its Lease, and the slices of its driver; renews the leases.

`SimulatedNodes` reconciles each node once, at the start. Existing objects that are as published are
unchanged; nodes beyond the fleet are deleted, with what they own. A node or a slice that is deleted
later is not recreated until the next start, as if its machine was removed.

`SimulatedLeases` renews leases. Kubelets do so every ten seconds; here one process does it for all
nodes, so the interval grows with their number: there are at most `RENEWALS` writes a second, and
the duration of a lease grows with the interval.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec

from sully.api.resource.types import ResourceSlice
from sully.client.informers.informer import Informer, own_key
from sully.client.informers.reflector import ObjectSelector
from sully.client.options import DeleteOptions, WriteOptions
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.kinds import Metadata
from sully.controllers.framework.sources import InitialKeys, same_key
from sully.domain.simulated import machines
from sully.domain.simulated.fleet import SIMULATED, Fleet, is_simulated
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
from sully.machinery.meta import Wire
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger
from sully.views import kinds
from sully.views.snapshot.kinds import NODES

log = get_logger("simulated")

USER_AGENT = "simulated-nodes"
"""The name of the user, and of the field manager."""
WORKERS = 16
"""Nodes that are created concurrently; concurrent writes share one flush of the store."""
PROGRESS_SECONDS = 2.0
"""Seconds between two log lines about the progress."""
RENEWAL_SECONDS = 10.0
RENEWALS = 10
"""The most renewals in a second."""
_OPTIONS = WriteOptions(field_manager=USER_AGENT)
_INDEX = "simulated/node"


class SimulatedNodeMetadata(Metadata, frozen=True, kw_only=True):
    """Metadata with annotations, which have the digest of what was published."""

    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class SimulatedNode(Wire, frozen=True, kw_only=True):
    """A simulated node."""

    metadata: SimulatedNodeMetadata = msgspec.field(default_factory=SimulatedNodeMetadata)


SIMULATED_NODES: Kind[SimulatedNode] = Kind(
    "", "v1", "nodes", "Node", SimulatedNode, namespaced=False
)
ONLY_SIMULATED = ObjectSelector(label_selector=f"{SIMULATED}=true")
LEASES: Kind[dict[str, Any]] = Kind("coordination.k8s.io", "v1", "leases", "Lease", dict)
WHOLE_SLICES: Kind[dict[str, Any]] = kinds.SLICES.read_as(dict)


class SimulatedNodes:
    """Reconciles simulated nodes with the configured fleet."""

    name = USER_AGENT

    def __init__(
        self,
        *,
        fleet: Fleet,
        nodes: Informer[SimulatedNode],
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
        self._logged_at = clock.monotonic()
        slices.add_index(_INDEX, self._node_of)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for the class and each node of the fleet once, and for nodes beyond it."""
        nodes = (Key("", self._fleet.name(number)) for number in range(self._fleet.nodes))
        yield Watch(InitialKeys((Key("", self._fleet.driver), *nodes)), same_key)
        yield Watch(self._nodes, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Create a node, or delete one beyond the fleet."""
        number, node = self._fleet.number(key.name), self._nodes.get(key)
        if key in self._done:
            return DONE
        if key.name == self._fleet.driver:
            await self._create_class()
        elif number is None:
            # Another node with the label.
            return DONE
        elif self._fleet.has(number):
            await self._sync(number, node)
        elif node is not None:
            await self._delete(key, node)
            return DONE
        self._done.add(key)
        self._log_progress()
        return DONE

    async def _create_class(self) -> None:
        driver = self._fleet.driver
        try:
            await self._transport.create(kinds.CLASSES, device_class(driver), options=_OPTIONS)
        except AlreadyExists:
            log.debug("device class exists", name=driver)

    async def _sync(self, number: int, node: SimulatedNode | None) -> None:
        uid = await self._register(number) if node is None else node.metadata.uid
        if node is not None and node.metadata.annotations.get(DIGEST) != node_digest(
            self._fleet, number
        ):
            await self._update(number)
        if uid is not None:
            await self._publish(number, uid)

    async def _register(self, number: int) -> str | None:
        """Create a node and its lease; return its uid, or None if another node has that name."""
        now, name = self._clock.now(), self._fleet.name(number)
        try:
            body = node_of(self._fleet, number, now)
            created = await self._transport.create(SIMULATED_NODES, body, options=_OPTIONS)
        except AlreadyExists:
            node = await self._transport.get(NODES, Key("", name))
            if not is_simulated(node.metadata.labels):
                log.warning("node exists and is not simulated", node=name)
                return None
            # Created before a restart, and not cached yet.
            return node.metadata.uid
        lease = lease_of(name, created.metadata.uid, now, interval(self._fleet.nodes))
        try:
            await self._transport.create(LEASES, lease, options=_OPTIONS)
        except AlreadyExists:
            # Of a just deleted node; it will be garbage collected, and recreated by the renewal.
            log.debug("lease exists", node=name)
        return created.metadata.uid

    async def _update(self, number: int) -> None:
        """Update a node that was published differently."""
        fleet = self._fleet
        body, key = node_of(fleet, number, self._clock.now()), Key("", fleet.name(number))
        await self._transport.patch(
            SIMULATED_NODES, key, {"status": body["status"]}, subresource="status"
        )
        await self._transport.patch(SIMULATED_NODES, key, {"metadata": body["metadata"]})

    async def _publish(self, number: int, uid: str) -> None:
        """Write the slices of a node, all in a new generation, if any of them changed."""
        name = self._fleet.name(number)
        published = {slice_.metadata.name: slice_ for slice_ in self._slices.by_index(_INDEX, name)}
        expected = {slice_["metadata"]["name"]: slice_ for slice_ in slices_of(self._fleet, number)}
        if published.keys() == expected.keys() and all(
            _is_published(published[slice_name], body, uid) for slice_name, body in expected.items()
        ):
            return
        generation = (
            max((slice_.spec.pool.generation for slice_ in published.values()), default=0) + 1
        )
        for slice_name, body in expected.items():
            body["metadata"]["ownerReferences"] = owned_by(name, uid)
            body["spec"]["pool"]["generation"] = generation
            if slice_name in published:
                await self._transport.update(WHOLE_SLICES, body, options=_OPTIONS)
            else:
                await self._transport.create(WHOLE_SLICES, body, options=_OPTIONS)
        for slice_name in published.keys() - expected.keys():
            await self._transport.delete(WHOLE_SLICES, Key("", slice_name))

    async def _delete(self, key: Key, node: SimulatedNode) -> None:
        try:
            await self._transport.delete(SIMULATED_NODES, key, DeleteOptions(uid=node.metadata.uid))
        except NotFound:
            return
        log.info("simulated node deleted", node=key.name)

    def _node_of(self, slice_: ResourceSlice) -> Iterable[str]:
        driver, labels = slice_.spec.driver, slice_.metadata.labels
        ours = driver == self._fleet.driver and is_simulated(labels)
        return (slice_.spec.node_name,) if ours and slice_.spec.node_name else ()

    def _log_progress(self) -> None:
        now = self._clock.monotonic()
        if now - self._logged_at >= PROGRESS_SECONDS:
            self._logged_at = now
            log.info("creating simulated nodes", ready=len(self._done), of=self._fleet.nodes)


def _is_published(slice_: ResourceSlice, expected: dict[str, Any], uid: str) -> bool:
    """Report whether a slice was published with this content, for the current node."""
    owners = {owner.uid for owner in slice_.metadata.owner_references}
    digest = expected["metadata"]["annotations"][DIGEST]
    return slice_.metadata.annotations.get(DIGEST) == digest and uid in owners


def interval(nodes: int) -> float:
    """Return how many seconds pass between two renewals of one lease."""
    return max(RENEWAL_SECONDS, nodes / RENEWALS)


class SimulatedLeases:
    """Renews the leases of simulated nodes, spread over the interval."""

    name = "simulated-leases"

    def __init__(
        self, *, fleet: Fleet, nodes: Informer[SimulatedNode], transport: Transport, clock: Clock
    ) -> None:
        self._fleet = fleet
        self._nodes = nodes
        self._transport = transport
        self._clock = clock
        self._interval = interval(fleet.nodes)
        self._due: dict[Key, float] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for nodes; renewals are requeued."""
        yield Watch(self._nodes, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Renew a lease that is due."""
        number, now = self._fleet.number(key.name), self._clock.monotonic()
        node = self._nodes.get(key)
        if node is None or number is None or not self._fleet.has(number):
            self._due.pop(key, None)
            return DONE
        if key not in self._due:
            # Each node has its own time in the interval; all together would be a burst.
            self._due[key] = now + self._interval * (number + 1) / self._fleet.nodes
        if self._due[key] <= now:
            await self._renew(key, node.metadata.uid)
            self._due[key] = now + self._interval
        return Result(requeue_after=timedelta(seconds=self._due[key] - now))

    async def _renew(self, key: Key, uid: str) -> None:
        now, lease_key = self._clock.now(), Key(machines.LEASES, key.name)
        patch = {"spec": machines.renewal(key.name, now, self._interval)}
        try:
            await self._transport.patch(LEASES, lease_key, patch, options=_OPTIONS)
        except NotFound:
            lease = machines.lease_of(key.name, uid, now, self._interval)
            await self._transport.create(LEASES, lease, options=_OPTIONS)
