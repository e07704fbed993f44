"""Prevents that a device is allocated twice, by any number of schedulers and people.

A write of a claim is compared with the other claims that hold the same devices. They are found
by an index of hints: it may have claims that are deallocated, so every claim is checked by its
newest state. An accepted write is indexed before the next one is checked, so two writers cannot
both succeed.

In a store that other processes write to, that is not enough: one of them may allocate the same
device now. So an allocation there also writes a lock record of its pool, and expects it as it was
when the claims were read. Of two concurrent allocations one conflicts and is decided again. Writes
that allocate nothing new write no lock.

Kubernetes has no such check.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, Protocol
from zlib import crc32

from sully.domain.allocation.usage.exclusion import IN_USE, Holdings, excludes, holdings
from sully.domain.devices.pools import DeviceId
from sully.machinery.compat import Compat
from sully.machinery.errors import Conflict, ServiceUnavailable, conflict
from sully.machinery.multimap import Multimap
from sully.runtime.clock import Clock
from sully.server.admission.plugins import AdmissionAttributes
from sully.server.requests import Target
from sully.server.storage.informer import StoreInformer, keep_current
from sully.server.storage.objects import Objects
from sully.store.base import Put, Record, Store, StoreKey

Obj = dict[str, Any]

GROUP = "resource.k8s.io"
CLAIMS = f"{GROUP}/resourceclaims"
LOCKS = "sully.dev/allocation-locks"
"""Where lock records are stored; they are not served."""
MAX_LOCKS = 1024
"""Lock records are never deleted, so pools share them; a collision costs one retry."""


class SharedStore(Protocol):
    """A store, or what a transaction makes of it."""

    @property
    def shared(self) -> bool:
        """Report whether other processes may write."""
        ...

    def newest(self, key: StoreKey) -> Record | None:
        """Return the newest state of a key."""
        ...


class DeviceAdmission:
    """Rejects allocations of devices that other claims hold."""

    def __init__(self, store: Store, objects: Objects, compat: Compat) -> None:
        self._store: SharedStore = store
        self._objects = objects
        self._enabled = compat.rejects_devices_in_use
        self._informer = StoreInformer(store, objects, {CLAIMS: self})
        self._holders: Multimap[DeviceId, StoreKey] = Multimap()
        self._devices: dict[StoreKey, tuple[DeviceId, ...]] = {}

    def over(self, store: SharedStore) -> "DeviceAdmission":
        """Return the same for the writes of a transaction, each of which sees those before it."""
        other = copy(self)
        other._store = store
        return other

    async def start(self) -> None:
        """Load the claims."""
        if self._enabled:
            await self._informer.open()

    async def run(self, clock: Clock) -> None:
        """Keep the indexes current until the server stops."""
        if self._enabled:
            await keep_current(clock, self._informer)

    def handles(self, target: Target, operation: str) -> bool:  # noqa: ARG002 - part of the protocol
        """Report whether the plugin checks an operation on a resource."""
        # Only the status has devices; other endpoints ignore them.
        is_status = (target.resource.storage_key, target.subresource) == (CLAIMS, "status")
        return self._enabled and is_status

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject a device that another claim holds."""
        target, obj = attributes.request.target, attributes.obj
        if obj is None:
            return
        requested, old = holdings(obj), holdings(attributes.old or {})
        new = [device for device in requested if requested[device] and not old.get(device, False)]
        new += [device for device in requested if not requested[device] and device not in old]
        if not new:
            return
        self._informer.pull()
        if self._informer.expired:
            raise ServiceUnavailable("claims are being listed again, try again")
        key = StoreKey(CLAIMS, target.namespace, target.name)
        for device in new:
            self._check(key, device, requested)
        self._index(key, {**requested, **old})
        if self._store.shared:
            attributes.extra_ops.extend(self._locks(new))

    def _check(self, key: StoreKey, device: DeviceId, requested: Holdings) -> None:
        for other in sorted(self._holders.get(device)):
            if other != key and excludes(device, requested, self._newest(other)):
                raise _refusal(key, device, other)

    def _locks(self, devices: Iterable[DeviceId]) -> Iterator[Put]:
        """Yield writes that conflict if another process allocates from the same pools now."""
        for key in sorted({lock_of(device) for device in devices}):
            record = self._store.newest(key)
            yield Put(key, b"{}", expect=record.revision if record is not None else 0)

    def _newest(self, key: StoreKey) -> Holdings:
        record = self._store.newest(key)
        return holdings(self._objects.bare(record)) if record is not None else {}

    # -- the index, updated by the store and by accepted writes -----------------------------

    def put(self, obj: Obj) -> None:
        """Index a claim by its newest state, which may be newer than this one."""
        metadata = obj["metadata"]
        self.drop(metadata.get("namespace", ""), metadata["name"])

    def drop(self, namespace: str, name: str) -> None:
        """Index a claim again after a change or a deletion."""
        key = StoreKey(CLAIMS, namespace, name)
        self._index(key, self._newest(key))

    def _index(self, key: StoreKey, devices: Holdings) -> None:
        for device in self._devices.pop(key, ()):
            if device not in devices:
                self._holders.discard(device, key)
        for device in devices:
            self._holders.add(device, key)
        if devices:
            self._devices[key] = tuple(devices)


def lock_of(device: DeviceId) -> StoreKey:
    """Return the key of the lock record of a pool, the same in every process."""
    number = crc32(f"{device.driver}/{device.pool}".encode()) % MAX_LOCKS
    return StoreKey(LOCKS, "", f"{number:04}")


def _refusal(key: StoreKey, device: DeviceId, other: StoreKey) -> Conflict:
    reason = f"device {device} is allocated to claim {other.namespace}/{other.name}"
    error = conflict("resourceclaims", GROUP, key.name, reason)
    cause = {"reason": IN_USE, "message": reason, "field": "status.allocation.devices.results"}
    error.details = {**(error.details or {}), "causes": [cause]}
    return error
