"""Prevents that a device is allocated twice, by any number of schedulers and people.

A write of a claim is compared with the other claims that hold the same devices. Who they are is in
an index of hints: it may name claims that have let go, and every name is checked against the newest
state before it counts. What was accepted is in the index before the next write is looked at, so
there is no moment in which two writers can both be first.

In a store that other processes write to as well, that is not enough: one of them may be giving away
the same device now. So an allocation there also takes its pool's turn: it writes a key that stands
for the pool, and expects it as it was when the claims were looked at. Of two that looked at the
same moment one finds it changed, and is judged again by what the other did. Writes that allocate
nothing new take no turn.

Kubernetes has no such check.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any
from zlib import crc32

from sully.domain.allocation.exclusion import IN_USE, Holdings, excludes, holdings
from sully.domain.devices.pools import DeviceId
from sully.machinery.compat import Compat
from sully.machinery.errors import Conflict, ServiceUnavailable, conflict
from sully.runtime.clock import Clock
from sully.server.admission.guards import AdmissionAttributes
from sully.server.authorization.feed import Feed
from sully.server.storage.objects import Objects
from sully.store.base import Put, Store, StoreKey
from sully.store.errors import ClosedError

Obj = dict[str, Any]

PULL_SECONDS = 1.0
"""How often it reads its watch while nothing is allocated."""
GROUP = "resource.k8s.io"
CLAIMS = f"{GROUP}/resourceclaims"
TURNS = "sully.dev/turns"
"""Where turns are stored; no client ever sees them."""
MOST_TURNS = 1024
"""Pools come and go and turns stay, so pools share them. Those that do only wait for each other."""


class DeviceAdmission:
    """Refuses allocations of devices that other claims hold."""

    def __init__(self, store: Store, objects: Objects, compat: Compat) -> None:
        self._store = store
        self._objects = objects
        self._enabled = compat.rejects_devices_in_use
        self._feed = Feed(store, objects, {CLAIMS: self})
        self._holders: dict[DeviceId, set[StoreKey]] = {}
        self._held: dict[StoreKey, frozenset[DeviceId]] = {}

    async def start(self) -> None:
        """Take in the claims there are."""
        if self._enabled:
            await self._feed.open()

    async def keep(self, clock: Clock) -> None:
        """Follow the store for as long as the server runs."""
        with suppress(ClosedError):
            while self._enabled:
                await self._feed.catch_up()
                await clock.sleep(PULL_SECONDS)

    def check(self, attempt: AdmissionAttributes) -> None:
        """Reject a device that another claim holds."""
        target, obj = attempt.request.target, attempt.obj
        # Nothing but the status has devices; elsewhere the server ignores what a client sends.
        if (target.resource.storage_key, target.subresource) != (CLAIMS, "status"):
            return
        if not self._enabled or obj is None:
            return
        wanted, old = holdings(obj), holdings(attempt.old or {})
        new = [device for device in wanted if wanted[device] and not old.get(device, False)]
        new += [device for device in wanted if not wanted[device] and device not in old]
        if not new:
            return
        self._feed.pull()
        if self._feed.lost:
            raise ServiceUnavailable("claims are being listed again, try again")
        key = StoreKey(CLAIMS, target.namespace, target.name)
        for device in new:
            self._check(key, device, wanted)
        self._note(key, frozenset(wanted) | frozenset(old))
        if self._store.shared:
            attempt.also.extend(self._turns(new))

    def _check(self, key: StoreKey, device: DeviceId, wanted: Holdings) -> None:
        for other in sorted(self._holders.get(device, ())):
            if other != key and excludes(device, wanted, self._newest(other)):
                raise _refusal(key, device, other)

    def _turns(self, devices: Iterable[DeviceId]) -> Iterator[Put]:
        """Yield what fails if another process allocates from the same pools now."""
        for key in sorted({turn_of(device) for device in devices}):
            record = self._store.newest(key)
            yield Put(key, b"{}", expect=record.revision if record is not None else 0)

    def _newest(self, key: StoreKey) -> Holdings:
        record = self._store.newest(key)
        return holdings(self._objects.bare(record)) if record is not None else {}

    # -- the index, fed by the store and by what was just accepted -----------------------------

    def put(self, obj: Obj) -> None:
        """Take in a claim; its newest state counts, which may be newer than this one."""
        metadata = obj["metadata"]
        self.drop(metadata.get("namespace", ""), metadata["name"])

    def drop(self, namespace: str, name: str) -> None:
        """Look at a claim again that changed or went."""
        key = StoreKey(CLAIMS, namespace, name)
        self._note(key, frozenset(self._newest(key)))

    def _note(self, key: StoreKey, devices: frozenset[DeviceId]) -> None:
        before = self._held.get(key, frozenset())
        for device in before - devices:
            holders = self._holders[device]
            holders.discard(key)
            if not holders:
                del self._holders[device]
        for device in devices - before:
            self._holders.setdefault(device, set()).add(key)
        if devices:
            self._held[key] = devices
        else:
            self._held.pop(key, None)


def turn_of(device: DeviceId) -> StoreKey:
    """Return the key that stands for a pool, the same in every process."""
    number = crc32(f"{device.driver}/{device.pool}".encode()) % MOST_TURNS
    return StoreKey(TURNS, "", f"{number:04}")


def _refusal(key: StoreKey, device: DeviceId, other: StoreKey) -> Conflict:
    why = f"device {device} is allocated to claim {other.namespace}/{other.name}"
    answer = conflict("resourceclaims", GROUP, key.name, why)
    cause = {"reason": IN_USE, "message": why, "field": "status.allocation.devices.results"}
    answer.details = {**(answer.details or {}), "causes": [cause]}
    return answer
