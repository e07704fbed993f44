"""Which pods and claims use which devices: pods refer to claims, claims are allocated devices.

Indexed in both directions, so that a change of a device finds the pods it affects without reading
others. Whether a claim is reserved for a pod is decided by `domain/claims/reservations.py` when it
is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import msgspec

from sully.api.resource.types import DeviceRequestAllocationResult, ResourceClaim
from sully.client.informers.cache import Cache, CacheReader
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.pods import ClaimReference, Pod, claim_references, has_same_claims
from sully.domain.claims.reservations import is_for_pod, reserved_for
from sully.domain.devices.pools import DeviceId, PoolId
from sully.machinery.multimap import Multimap
from sully.views.devices.name_index import Names

P = TypeVar("P", bound=Pod)
"""Pods may be read as a type with more fields."""
_NOTHING: Mapping[str, Sequence[AllocatedDevice]] = MappingProxyType({})


class AllocatedDevice(msgspec.Struct, frozen=True, gc=False):
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
        base: Usage | None = None,
    ) -> None:
        """Read the caches; `base` has read equal ones, so the result is copied."""
        self._pods: CacheReader[Pod] = pods
        self._claims = claims
        self._extended = extended_resources
        self._groups = pod_groups
        self._pods_by_claim: Multimap[Key, Key] = Multimap()
        """The pods that refer to a claim."""
        self._allocated: dict[PoolId, dict[str, tuple[AllocatedDevice, ...]]] = {}
        """By pool and device name, in order of their claims."""
        self._listeners: list[Callable[[frozenset[Key]], None]] = []
        if base is None:
            pods.on_change(self._pod_changed)
            claims.on_change(self._claim_changed)
            return
        self._pods_by_claim = base._pods_by_claim.copy()
        self._allocated = {pool: devices.copy() for pool, devices in base._allocated.items()}
        pods.follow(self._pod_changed)
        claims.follow(self._claim_changed)

    def pod(self, key: Key) -> Pod | None:
        """Return a pod, or None."""
        return self._pods.get(key)

    def claims_of(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the allocated claims that a pod refers to and that are reserved for it."""
        uid, group = pod.metadata.uid, pod.group if self._groups else ""
        for key, reference in self._references(pod):
            claim = self._claims.get(key)
            if (
                claim is not None
                and claim.status.allocation is not None
                and reserved_for(claim, uid=uid, group=group)
                and (not reference.generated or is_for_pod(claim, uid=uid, group=group))
            ):
                yield claim

    def consumers(self, claim: ResourceClaim) -> list[Pod]:
        """Return the pods that an allocated claim is reserved for, by key."""
        return [pod for pod in self.pods_with(key_of(claim)) if self.uses(pod, claim)]

    def uses(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Report whether an allocated claim is reserved for a pod that refers to it."""
        if claim.status.allocation is None:
            return False
        uid, group = pod.metadata.uid, pod.group if self._groups else ""
        return reserved_for(claim, uid=uid, group=group) and (
            is_for_pod(claim, uid=uid, group=group) or self._names(pod, claim)
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
        allocated = self.allocated_in(pool)
        for device in sorted(allocated if devices is None else devices):
            yield from dict.fromkeys(key_of(one.claim) for one in allocated.get(device, ()))

    def pools(self) -> Iterable[PoolId]:
        """Return the pools with an allocated device, in no particular order."""
        return self._allocated.keys()

    def allocated(self, names: Names) -> Iterator[AllocatedDevice]:
        """Yield the allocated devices with these names, published or not."""
        for pool in self._pools_named(names):
            allocated = self._allocated[pool]
            for device in sorted(allocated) if names.device is None else (names.device,):
                yield from allocated.get(device, ())

    def allocated_in(self, pool: PoolId) -> Mapping[str, Sequence[AllocatedDevice]]:
        """Return the allocated devices of a pool by name, published or not, until the next change.

        Those of one name are in order of their claims.
        """
        return self._allocated.get(pool, _NOTHING)

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

    def _pools_named(self, names: Names) -> list[PoolId]:
        if names.driver is not None and names.pool is not None:
            pool = PoolId(names.driver, names.pool)
            return [pool] if pool in self._allocated else []
        return sorted(filter(names.match_pool, self._allocated))

    def _references(self, pod: Pod) -> list[tuple[Key, ClaimReference]]:
        namespace = pod.metadata.namespace
        return [
            (Key(namespace, reference.name), reference)
            for reference in claim_references(pod, extended=self._extended)
            if reference.name
        ]

    def _names(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Report whether a pod itself names a claim, which then need not be made for it."""
        key = key_of(claim)
        return any(
            name == key and not reference.generated for name, reference in self._references(pod)
        )

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = key_of(new if new is not None else old)
        if old is None or new is None or not has_same_claims(new, old):
            after = [claim for claim, _ in self._references(new)] if new is not None else []
            for claim, _ in self._references(old) if old is not None else ():
                if claim not in after:
                    self._pods_by_claim.discard(claim, pod)
            for claim in after:
                self._pods_by_claim.add(claim, pod)
        if self._listeners:
            self._notify((pod,))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = key_of(new if new is not None else old)
        for result in _results(old):
            self._remove(claim, result)
        if new is not None:
            for result in _results(new):
                self._add(AllocatedDevice(new, result))
        if self._listeners:
            self._notify(self._pods_by_claim.get(claim))

    # Both are what events of the pod and of its claims would do one after the other.

    def pod_created(self, pod: Pod, claims: Iterable[ResourceClaim]) -> None:
        """Handle a new pod together with the allocated claims that were made for it: all it has."""
        key = key_of(pod)
        for claim in claims:
            self._pods_by_claim.add(key_of(claim), key)
            for result in _results(claim):
                self._add(AllocatedDevice(claim, result))
        self._notify((key,))

    def pod_deleted(self, pod: Pod, claims: Iterable[ResourceClaim]) -> None:
        """Handle the deletion of a pod together with that of all claims that it refers to."""
        key = key_of(pod)
        changed = [key]
        for claim in claims:
            name = key_of(claim)
            self._pods_by_claim.discard(name, key)
            for result in _results(claim):
                self._remove(name, result)
            changed += self._pods_by_claim.get(name)
        self._notify(changed)

    def _remove(self, claim: Key, result: DeviceRequestAllocationResult) -> None:
        pool, device = PoolId(result.driver, result.pool), result.device
        devices = self._allocated.get(pool, {})
        others = tuple([one for one in devices.get(device, ()) if key_of(one.claim) != claim])
        if others:
            devices[device] = others
        elif device in devices:
            # Not a second time for a claim that has two shares of it.
            del devices[device]
            if not devices:
                del self._allocated[pool]

    def _add(self, allocated: AllocatedDevice) -> None:
        driver, pool, device = _names(allocated.result)
        devices = self._allocated.setdefault(PoolId(driver, pool), {})
        others = devices.get(device)
        if others is None:
            devices[device] = (allocated,)
        else:
            together = (*others, allocated)
            devices[device] = tuple(sorted(together, key=lambda one: key_of(one.claim)))

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
