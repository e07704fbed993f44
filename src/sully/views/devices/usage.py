"""Which pods and claims use which devices: pods refer to claims, claims are allocated devices.

Indexed in both directions, so that a change of a device finds the pods it affects without reading
others. Whether a claim is reserved for a pod is decided by `domain/claims/reservations.py` when it
is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, TypeVar

from sully.api.resource.types import DeviceRequestAllocationResult, ResourceClaim
from sully.client.informers.cache import Cache, CacheReader
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.pods import ClaimReference, Pod, claim_references, refers_as
from sully.domain.claims.reservations import made_for, reserved_for
from sully.domain.devices.pools import DeviceId, PoolId
from sully.machinery.multimap import Multimap
from sully.views.devices.name_index import Names

P = TypeVar("P", bound=Pod)
"""Pods may be read as a type with more fields."""


class AllocatedDevice(NamedTuple):
    """A device that is allocated to a claim."""

    claim: ResourceClaim
    result: DeviceRequestAllocationResult

    @property
    def device(self) -> DeviceId:
        """Return the identifier of the device."""
        return DeviceId(self.result.driver, self.result.pool, self.result.device)

    @property
    def admin(self) -> bool:
        """Report whether the claim has admin access, which does not exclude other claims."""
        return bool(self.result.admin_access)


class Usage:
    """Pods, claims and the devices between them."""

    def __init__(
        self,
        *,
        pods: Cache[P],
        claims: Cache[ResourceClaim],
        extended_resources: bool = True,
        pod_groups: bool = True,
    ) -> None:
        self._pods: CacheReader[Pod] = pods
        self._claims = claims
        self._extended = extended_resources
        self._groups = pod_groups
        self._pods_by_claim: Multimap[Key, Key] = Multimap()
        """The pods that refer to a claim."""
        self._claims_by_device: dict[PoolId, Multimap[str, Key]] = {}
        """The claims that are allocated a device, by pool and device name."""
        self._listeners: list[Callable[[frozenset[Key]], None]] = []
        pods.on_change(self._pod_changed)
        claims.on_change(self._claim_changed)

    def pod(self, key: Key) -> Pod | None:
        """Return a pod, or None."""
        return self._pods.get(key)

    def claims_of(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the allocated claims that a pod refers to and that are reserved for it."""
        for key, reference in self._references(pod):
            claim = self._claims.get(key)
            if claim is not None and self._uses(pod, claim, by_name=not reference.generated):
                yield claim

    def consumers(self, claim: ResourceClaim) -> Iterator[Pod]:
        """Yield the pods that an allocated claim is reserved for, by key."""
        return (pod for pod in self.pods_with(key_of(claim)) if self.uses(pod, claim))

    def uses(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Report whether an allocated claim that a pod refers to is reserved for it."""
        key = key_of(claim)
        return any(
            name == key and self._uses(pod, claim, by_name=not reference.generated)
            for name, reference in self._references(pod)
        )

    def pods_with(self, claim: Key) -> Iterator[Pod]:
        """Yield the pods that refer to a claim, by key."""
        keys = self._pods_by_claim.get(claim)
        for key in sorted(keys) if len(keys) > 1 else keys:
            pod = self._pods.get(key)
            if pod is not None:
                yield pod

    def pods_on(self, pool: PoolId, devices: Iterable[str] | None = None) -> Iterator[Key]:
        """Yield the pods with a claim that is allocated one of these devices, or any in the pool.

        In order, because budgets and rates may allow only the first to be evicted.
        """
        for claim in self.claims_on(pool, devices):
            yield from sorted(self._pods_by_claim.get(claim))

    def claims_on(self, pool: PoolId, devices: Iterable[str] | None = None) -> Iterator[Key]:
        """Yield the claims that are allocated one of these devices, or any in the pool."""
        claims = self._claims_by_device.get(pool)
        if claims is None:
            return
        for device in sorted(claims.keys() if devices is None else devices):
            yield from sorted(claims.get(device))

    def pools(self) -> Iterable[PoolId]:
        """Return the pools with an allocated device, in no particular order."""
        return self._claims_by_device.keys()

    def allocated(self, names: Names) -> Iterator[AllocatedDevice]:
        """Yield the allocated devices with these names, published or not."""
        for pool in self._pools_named(names):
            claims = self._claims_by_device[pool]
            for device in sorted(claims.keys()) if names.device is None else (names.device,):
                for claim in sorted(claims.get(device)):
                    yield from self._results(claim, DeviceId(*pool, device))

    def allocated_in(self, pool: PoolId) -> dict[str, list[AllocatedDevice]]:
        """Return the allocated devices of a pool by name, published or not."""
        devices: dict[str, list[AllocatedDevice]] = {}
        by_device: Multimap[str, Key] = self._claims_by_device.get(pool, Multimap())
        for device, claims in by_device.items():
            id_ = DeviceId(*pool, device)
            for claim in sorted(claims) if len(claims) > 1 else claims:
                for allocated in self._results(claim, id_):
                    devices.setdefault(device, []).append(allocated)
        return devices

    def on_change(self, listener: Callable[[frozenset[Key]], None]) -> Callable[[], None]:
        """Call a listener with the pods whose claims may have changed; return how to remove it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[frozenset[Key]], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of pods whose claims may have changed to a queue."""

        def handle(pods: frozenset[Key]) -> None:
            for key in sorted(to_keys(pods)):
                add(key)

        if len(self._pods):
            handle(frozenset(self._pods.keys()))
        return self.on_change(handle)

    def _results(self, key: Key, device: DeviceId) -> Iterator[AllocatedDevice]:
        claim = self._claims.get(key)
        for result in _results(claim):
            if claim is not None and _names(result) == device:
                yield AllocatedDevice(claim, result)

    def _pools_named(self, names: Names) -> list[PoolId]:
        if names.driver is not None and names.pool is not None:
            pool = PoolId(names.driver, names.pool)
            return [pool] if pool in self._claims_by_device else []
        return sorted(filter(names.match_pool, self._claims_by_device))

    def _references(self, pod: Pod) -> list[tuple[Key, ClaimReference]]:
        namespace = pod.metadata.namespace
        return [
            (Key(namespace, reference.name), reference)
            for reference in claim_references(pod, extended=self._extended)
            if reference.name
        ]

    def _uses(self, pod: Pod, claim: ResourceClaim, *, by_name: bool) -> bool:
        uid, group = pod.metadata.uid, pod.group if self._groups else ""
        return (
            claim.status.allocation is not None
            and (by_name or made_for(claim, uid=uid, group=group))
            and reserved_for(claim, uid=uid, group=group)
        )

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = key_of(new if new is not None else old)
        if old is None or new is None or not refers_as(new, old):
            before = {claim for claim, _ in self._references(old)} if old is not None else set()
            after = {claim for claim, _ in self._references(new)} if new is not None else set()
            for claim in before - after:
                self._pods_by_claim.discard(claim, pod)
            for claim in after - before:
                self._pods_by_claim.add(claim, pod)
        self._notify((pod,))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = key_of(new if new is not None else old)
        if _results(old) != _results(new):
            self._reallocate(claim, old, new)
        self._notify(self._pods_by_claim.get(claim))

    def _reallocate(self, claim: Key, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before = {_names(result) for result in _results(old)}
        after = {_names(result) for result in _results(new)}
        for driver, pool, device in before - after:
            id_ = PoolId(driver, pool)
            claims = self._claims_by_device[id_]
            claims.discard(device, claim)
            if not claims:
                del self._claims_by_device[id_]
        for driver, pool, device in after - before:
            claims = self._claims_by_device.setdefault(PoolId(driver, pool), Multimap())
            claims.add(device, claim)

    def _notify(self, pods: Collection[Key]) -> None:
        if pods and self._listeners:
            keys = frozenset(pods)
            for listener in list(self._listeners):
                listener(keys)


def allocated_devices(claims: Iterable[ResourceClaim]) -> set[DeviceId]:
    """Return the devices that claims are allocated, published or not."""
    return {DeviceId(*_names(result)) for claim in claims for result in _results(claim)}


def _results(claim: ResourceClaim | None) -> tuple[DeviceRequestAllocationResult, ...]:
    if claim is None or claim.status.allocation is None:
        return ()
    return claim.status.allocation.devices.results


def _names(result: DeviceRequestAllocationResult) -> tuple[str, str, str]:
    """Return driver, pool and device; equal to a DeviceId, and faster to create."""
    return result.driver, result.pool, result.device
