"""What happens in the cluster, and which pods it may help: keeps what the scheduler knows.

Every change is taken into memory at once, in the order in which it happened; pods that wait are
woken by the kind of change that may help them, and by no other. controller.py looks at them.
"""

from __future__ import annotations

from sully.api.resource.claim_types import ResourceClaim
from sully.api.resource.types import DeviceClass
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.controllers.scheduling.cluster import Cluster
from sully.controllers.scheduling.devices import Devices
from sully.controllers.scheduling.outbox import Outbox, Tidy
from sully.controllers.scheduling.queue import Queue
from sully.controllers.scheduling.wishes import claim_keys
from sully.domain.claims.lifecycle import EXTENDED
from sully.domain.scheduling.account import CONDITION
from sully.domain.scheduling.decisions import Concern
from sully.domain.scheduling.extended import Backings
from sully.domain.scheduling.objects import SCHEDULERS, Node, Pod
from sully.domain.scheduling.resources import requests_of
from sully.machinery.meta import OwnerReference
from sully.views.devices.changes import Change


class News:
    """Takes changes in; handlers of informers and of the inventory."""

    def __init__(
        self,
        *,
        devices: Devices,
        cluster: Cluster,
        backings: Backings,
        queue: Queue,
        outbox: Outbox,
        schedulers: frozenset[str] = SCHEDULERS,
    ) -> None:
        self._devices = devices
        self._cluster = cluster
        self._backings = backings
        self._queue = queue
        self._outbox = outbox
        self._schedulers = schedulers
        self.gated: set[Key] = set()
        """Pods that somebody holds back."""
        self._users: dict[Key, set[Key]] = {}
        """Pods without a node, by the claims they name."""

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take a change of a pod."""
        pod = new or old
        if pod is None:
            return
        key = key_of(pod)
        self._index(key, old, new)
        self._tidy(key, new)
        if new is None or new.finished:
            if self._cluster.vacate(pod.metadata.uid):
                self._queue.wake(Concern.ROOM)
        elif new.spec.node_name and not (old is not None and _takes_as(new, old)):
            self._cluster.occupy(new.metadata.uid, new.spec.node_name, requests_of(new))
        if new is not None and self._waits(new):
            if old is None or not old.waits or not new.asks_as(old):
                self._queue.add(key, new)
        elif old is not None:
            self._queue.remove(key)

    def _tidy(self, key: Key, new: Pod | None) -> None:
        """Drop what was kept of a pod that waits no more, here and in its status."""
        self.gated.discard(key)
        if new is None:
            self._outbox.forget(key)
            return
        if new.gated and new.asks_for(self._schedulers):
            self.gated.add(key)
        if new.spec.node_name and not self._outbox.is_busy(key):
            # Why it had no node is no longer worth writing, and no longer true where it stands.
            self._outbox.drop(key)
            if new.condition(CONDITION) is not None:
                self._outbox.put(key, Tidy(new))

    def _index(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is not None and self._waits(old):
            for claim in claim_keys(old):
                users = self._users.get(claim, set())
                users.discard(key)
                if not users:
                    self._users.pop(claim, None)
        if new is not None and self._waits(new):
            for claim in claim_keys(new):
                self._users.setdefault(claim, set()).add(key)

    def _waits(self, pod: Pod) -> bool:
        """Say whether a pod is for us: beside another scheduler only some are."""
        return pod.waits and pod.asks_for(self._schedulers)

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """Take a change of a node."""
        if new is None:
            if old is not None:
                self._cluster.remove(old.metadata.name)
                self._devices.catalogue.forget(old.metadata.name)
        elif old is None or not new.offers_as(old):
            self._cluster.put(new)
            if old is None or new.may_take_more(old):
                self._queue.wake(Concern.NODES)

    def claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Take a change of a claim."""
        if self._devices.claim_changed(old, new):
            self._queue.wake(Concern.DEVICES)
        if new is None and old is not None:
            pod = extended_for(old)
            if pod is not None:
                self._queue.touch(Key(old.metadata.namespace, pod.name))
        if new is None or (old is not None and not _differs(old, new)):
            return
        for key in sorted(self._users.get(key_of(new), ())):
            self._queue.touch(key)

    def class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """Take a change of a device class."""
        self._backings.change(old, new)
        if new is not None and (old is None or old.spec != new.spec):
            self._queue.wake(Concern.CLASSES)

    def devices_changed(self, change: Change) -> None:
        """Take a change of the inventory."""
        self._devices.changed(change)
        if not _only_adds_taints(change):
            # A rule may be about devices that nobody publishes any more, and so touch no pool.
            self._queue.wake(Concern.DEVICES | Concern.TAINTS if change.pools else Concern.TAINTS)


def _takes_as(pod: Pod, other: Pod) -> bool:
    """Say whether a pod takes as much of its node as another state of it, which was counted."""
    extended = pod.status.extended_resource_claim_status
    return (
        not other.finished
        and pod.spec == other.spec
        and extended == other.status.extended_resource_claim_status
    )


def _only_adds_taints(change: Change) -> bool:
    """Say whether all that happened is that there is a new rule: it helps no pod."""
    return bool(change.rules) and all(each.old is None for each in change.rules)


def extended_for(claim: ResourceClaim) -> OwnerReference | None:
    """Return the pod whose extended resources a claim is for, if it is for any."""
    if claim.metadata.annotations.get(EXTENDED) != "true":
        return None
    return claim.metadata.controller()


def _differs(old: ResourceClaim, new: ResourceClaim) -> bool:
    return (
        old.status != new.status
        or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or old.metadata.owner_references != new.metadata.owner_references
    )
