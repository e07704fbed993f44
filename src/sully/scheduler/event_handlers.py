"""Handles cluster events: keeps the caches current and activates the pods that an event may help.

Every event is handled when it happens, in order. Events come as informers deliver them: the old and
the new state of an object, or the change of an inventory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from sully.api.resource.types import DeviceClass, DeviceToleration, ResourceClaim
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.allocation.requests import without_seconds
from sully.domain.claims.lifecycle import EXTENDED
from sully.domain.devices.pools import DeviceId, device_of_result
from sully.domain.devices.taints import SourcedTaints, untolerated
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.extended import Backings
from sully.domain.scheduling.objects import Node, Pod
from sully.domain.scheduling.resources import requests_of
from sully.machinery.memo import Memo
from sully.machinery.meta import OwnerReference
from sully.scheduler.caches.device_cache import DeviceCache
from sully.scheduler.caches.node_cache import NodeCache
from sully.scheduler.claim_resolution import claim_keys
from sully.scheduler.equivalence.groups import EquivalenceGroups
from sully.scheduler.queue import SchedulingQueue
from sully.views.devices.changes import InventoryChange

_MOST_STACKS: Final = 1024


class ClaimCache:
    """Claims by key, those for extended resources by pod, and which pods wait for which claim."""

    def __init__(self) -> None:
        self._claims: dict[Key, ResourceClaim] = {}
        self._extended: dict[str, dict[Key, ResourceClaim]] = {}
        self._users: dict[Key, set[Key]] = {}
        """Pods without a node, by the claims that they reference."""

    def copy_from(self, other: ClaimCache) -> None:
        """Take the claims of another cache, for which no pod waits here."""
        self._claims = other._claims.copy()
        self._extended = {uid: claims.copy() for uid, claims in other._extended.items()}

    def get(self, key: Key) -> ResourceClaim | None:
        """Return a claim, or None."""
        return self._claims.get(key)

    def extended_for(self, pod: Pod) -> ResourceClaim | None:
        """Return the claim for the extended resources of a pod, if there is one."""
        claims = self._extended.get(pod.metadata.uid)
        return claims[min(claims)] if claims else None

    def users(self, key: Key) -> list[Key]:
        """Return the pods without a node that reference a claim."""
        return sorted(self._users.get(key, ()))

    def update(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Handle a change of a claim."""
        claim = new or old
        if claim is None:
            return
        key = key_of(claim)
        if old is not None and (pod := extended_owner(old)) is not None:
            self._extended[pod.uid].pop(key, None)
            if not self._extended[pod.uid]:
                del self._extended[pod.uid]
        if new is None:
            self._claims.pop(key, None)
            return
        self._claims[key] = new
        if (pod := extended_owner(new)) is not None:
            self._extended.setdefault(pod.uid, {})[key] = new

    def remove_user(self, pod: Pod) -> None:
        """Forget the references of a pod that waited."""
        key = key_of(pod)
        for claim in claim_keys(pod):
            users = self._users.get(claim, set())
            users.discard(key)
            if not users:
                self._users.pop(claim, None)

    def add_user(self, pod: Pod) -> None:
        """Note the references of a pod that waits."""
        key = key_of(pod)
        for claim in claim_keys(pod):
            self._users.setdefault(claim, set()).add(key)


class EventHandlers:
    """Handlers for informers and for the inventory."""

    def __init__(
        self,
        *,
        nodes: NodeCache,
        devices: DeviceCache,
        backings: Backings,
        queue: SchedulingQueue,
        schedulers: frozenset[str],
        groups: EquivalenceGroups | None = None,
    ) -> None:
        self.claims = ClaimCache()
        self.gated: set[Key] = set()
        """Pods with scheduling gates."""
        self._nodes = nodes
        self._devices = devices
        self._backings = backings
        self._queue = queue
        self._schedulers = schedulers
        self._groups = groups
        self._tolerations: dict[DeviceToleration, None] = {}
        """What any claim tolerated that was ever unallocated, for however long."""
        self._useless: Memo[int, tuple[SourcedTaints, bool]] = Memo(_MOST_STACKS)
        """Whether none of these tolerates taints, by their identity: devices share them."""

    def copy_from(self, other: EventHandlers) -> None:
        """Take the claims of others, as if events had shown them here, too."""
        self.claims.copy_from(other.claims)
        self._tolerations = other._tolerations.copy()

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Handle a change of a pod."""
        pod = new or old
        if pod is None:
            return
        key = key_of(pod)
        if old is not None and self._waits(old):
            self.claims.remove_user(old)
        self._gate(key, new)
        if new is None or new.is_terminal:
            if self._nodes.remove_pod(pod.metadata.uid):
                self._queue.move_to_active_queue(ClusterEvent.ASSIGNED_POD_DELETE)
        elif new.spec.node_name and not (old is not None and _requests_as(new, old)):
            if self._nodes.add_pod(new, new.spec.node_name, requests_of(new)):
                self._queue.move_to_active_queue(ClusterEvent.ASSIGNED_POD_ADD)
        elif new.spec.node_name and old is not None:
            self._assigned_pod_changed(old, new)
        if new is not None and self._waits(new):
            self.claims.add_user(new)
            if old is None or not old.needs_scheduling or not new.requests_same_as(old):
                self._queue.add(key, new)
            else:
                self._queue.update(key, new)
        elif old is not None:
            self._queue.remove(key)
            if self._groups is not None:
                self._groups.remove(key)

    def pod_deleted(self, pod: Pod, claims: Iterable[ResourceClaim]) -> None:
        """Handle the deletion of a pod, and of claims that were made for it."""
        self.pod_changed(pod, None)
        for claim in claims:
            self.claim_changed(claim, None)

    def _assigned_pod_changed(self, old: Pod, new: Pod) -> None:
        self._nodes.update_pod(new)
        if new.metadata.labels != old.metadata.labels:
            self._queue.move_to_active_queue(ClusterEvent.ASSIGNED_POD_ADD)

    def _gate(self, key: Key, new: Pod | None) -> None:
        if new is not None and new.gated and new.uses_scheduler(self._schedulers):
            self.gated.add(key)
        elif self.gated:
            self.gated.discard(key)

    def _waits(self, pod: Pod) -> bool:
        """Report whether a pod is ours to schedule."""
        return pod.needs_scheduling and pod.uses_scheduler(self._schedulers)

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """Handle a change of a node."""
        if new is None:
            if old is not None:
                self._nodes.remove_node(old.metadata.name)
                self._devices.node_pools.remove_node(old.metadata.name)
                self._queue.move_to_active_queue(ClusterEvent.NODE_DELETE)
        elif old is None or not new.offers_same_as(old):
            self._nodes.update_node(new)
            if old is None or new.may_take_more(old):
                self._queue.move_to_active_queue(ClusterEvent.NODE_UPDATE)

    def claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Handle a change of a claim."""
        self.claims.update(old, new)
        self._record_tolerations(new)
        if (
            self._devices.claim_changed(old, new)
            and self._queue.is_awaited(ClusterEvent.DEVICE_RELEASE)
            and not (old is not None and new is None and self._is_useless_release(old))
        ):
            self._queue.move_to_active_queue(ClusterEvent.DEVICE_RELEASE)
        if new is None and old is not None:
            pod = extended_owner(old)
            if pod is not None:
                self._queue.activate(Key(old.metadata.namespace, pod.name))
        if new is None or (old is not None and not _differs(old, new)):
            return
        for key in self.claims.users(key_of(new)):
            self._queue.activate(key)

    def class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """Handle a change of a device class."""
        self._backings.change(old, new)
        if new is not None and (old is None or old.spec != new.spec):
            self._queue.move_to_active_queue(ClusterEvent.DEVICE_CLASS_UPDATE)

    def devices_changed(self, change: InventoryChange) -> None:
        """Handle a change of the inventory."""
        self._devices.devices_changed(change)
        if _only_adds_rules(change):
            return
        event = ClusterEvent.DEVICE_TAINT_UPDATE
        if change.pools:
            # A rule may select devices that are no longer published, and then touches no pool.
            event |= ClusterEvent.DEVICE_RELEASE
        self._queue.move_to_active_queue(event)

    # -- releases that help no pod ----------------------------------------------------------------

    def _record_tolerations(self, claim: ResourceClaim | None) -> None:
        if self._groups is None or claim is None or claim.status.allocation is not None:
            return
        for toleration in _tolerations(claim):
            if toleration not in self._tolerations:
                self._tolerations[toleration] = None
                self._useless.clear()

    def _is_useless_release(self, claim: ResourceClaim) -> bool:
        """Report whether no claim tolerates the taints of the devices of a deleted claim.

        Without this, each of a thousand pods that are evicted from tainted devices activates all
        unschedulable pods.
        """
        allocation = claim.status.allocation
        if self._groups is None or allocation is None or extended_owner(claim) is not None:
            return False
        return all(
            self._is_unusable(device_of_result(result)) for result in allocation.devices.results
        )

    def _is_unusable(self, device: DeviceId) -> bool:
        """Report whether no claim tolerates a device, and releasing it releases no other one."""
        published = self._devices.inventory.published(device)
        if published is not None and published.device.consumes_counters:
            return False
        taints = self._devices.taints(device)
        known = self._useless.get(id(taints))
        if known is None:
            blocking = untolerated(taints, tuple(self._tolerations))
            known = self._useless.keep(id(taints), (taints, bool(blocking)))
        return known[1]


def _requests_as(pod: Pod, other: Pod) -> bool:
    """Report whether a pod requests as much of its node as another state of it."""
    extended = pod.status.extended_resource_claim_status
    return (
        not other.is_terminal
        and pod.spec == other.spec
        and extended == other.status.extended_resource_claim_status
    )


def _only_adds_rules(change: InventoryChange) -> bool:
    """Report whether a change only adds taint rules: that helps no pod."""
    return bool(change.rules) and all(rule.old is None for rule in change.rules)


def extended_owner(claim: ResourceClaim) -> OwnerReference | None:
    """Return the pod whose extended resources a claim is for, if it is for any."""
    if claim.metadata.annotations.get(EXTENDED) != "true":
        return None
    return claim.metadata.controller()


def _tolerations(claim: ResourceClaim) -> Iterator[DeviceToleration]:
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            yield from without_seconds(request.exactly.tolerations)
        for alternative in request.first_available:
            yield from without_seconds(alternative.tolerations)


def _differs(old: ResourceClaim, new: ResourceClaim) -> bool:
    return (
        old.status != new.status
        or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or old.metadata.owner_references != new.metadata.owner_references
    )
