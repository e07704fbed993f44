"""Who holds what: pods refer to claims, claims hold devices.

Kept from pods and claims as they come, in both directions, so that a change of a device finds the
pods it matters to without looking at others. Whether a pod really holds a claim is asked of
`domain/claims/reservations.py` at the time of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from sully.api.resource.types import DeviceRequestAllocationResult, ResourceClaim
from sully.client.informers.cache import Cache, CacheReader
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.claims.pods import ClaimReference, Pod, claim_references, refers_as
from sully.domain.claims.reservations import made_for, reserved_for
from sully.domain.devices.pools import DeviceId, PoolId
from sully.views.devices.name_index import Names

K = TypeVar("K")
P = TypeVar("P", bound=Pod)
"""Whoever has pods that say more has no need to keep them twice."""


class Held(NamedTuple):
    """A device in the hands of a claim."""

    claim: ResourceClaim
    result: DeviceRequestAllocationResult

    @property
    def device(self) -> DeviceId:
        """Return which device it is."""
        return DeviceId(self.result.driver, self.result.pool, self.result.device)

    @property
    def admin(self) -> bool:
        """Report whether the claim only looks at the device, beside those who use it."""
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
        self._users: dict[Key, set[Key]] = {}
        """The pods that name a claim."""
        self._holders: dict[PoolId, dict[str, set[Key]]] = {}
        """The claims that hold a device, by pool and device name."""
        self._listeners: list[Callable[[frozenset[Key]], None]] = []
        pods.on_change(self._pod_changed)
        claims.on_change(self._claim_changed)

    def pod(self, key: Key) -> Pod | None:
        """Return a pod, or None."""
        return self._pods.get(key)

    def claims_of(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the allocated claims that a pod holds: named, made for it, and reserved for it."""
        for key, reference in self._references(pod):
            claim = self._claims.get(key)
            if claim is not None and self._holds(pod, claim, reference):
                yield claim

    def holders(self, claim: ResourceClaim) -> Iterator[Pod]:
        """Yield the pods that hold an allocated claim, by key."""
        key = key_of(claim)
        for pod in self.users(key):
            for named, reference in self._references(pod):
                if named == key and self._holds(pod, claim, reference):
                    yield pod
                    break

    def users(self, claim: Key) -> Iterator[Pod]:
        """Yield the pods that name a claim, by key."""
        for key in sorted(self._users.get(claim, ())):
            pod = self._pods.get(key)
            if pod is not None:
                yield pod

    def pods_on(self, pool: PoolId, devices: Iterable[str] | None = None) -> Iterator[Key]:
        """Yield the pods that name a claim which holds one of these devices, or any of the pool."""
        here = self._holders.get(pool, {})
        # In order, because whoever is looked at first may be the one for whom there is room.
        for device in sorted(here if devices is None else devices):
            for claim in sorted(here.get(device, ())):
                yield from sorted(self._users.get(claim, ()))

    def pools(self) -> Iterable[PoolId]:
        """Return the pools of which a claim holds a device, in no order that matters."""
        return self._holders.keys()

    def held(self, names: Names) -> Iterator[Held]:
        """Yield what claims hold of the devices with these names, published or not."""
        for pool in self._pools_named(names):
            here = self._holders[pool]
            for device in sorted(here) if names.device is None else (names.device,):
                for claim in sorted(here.get(device, ())):
                    yield from self._results(claim, DeviceId(*pool, device))

    def on_change(self, listener: Callable[[frozenset[Key]], None]) -> Callable[[], None]:
        """Tell of pods whose claims may be different from now on; return how to stop that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[frozenset[Key]], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys of pods whose claims may be different to a queue."""

        def handle(pods: frozenset[Key]) -> None:
            for key in sorted(to_keys(pods)):
                add(key)

        if len(self._pods):
            handle(frozenset(self._pods.keys()))
        return self.on_change(handle)

    def _results(self, key: Key, device: DeviceId) -> Iterator[Held]:
        claim = self._claims.get(key)
        for result in _results(claim):
            if claim is not None and DeviceId(result.driver, result.pool, result.device) == device:
                yield Held(claim, result)

    def _pools_named(self, names: Names) -> list[PoolId]:
        if names.driver is not None and names.pool is not None:
            place = PoolId(names.driver, names.pool)
            return [place] if place in self._holders else []
        return sorted(filter(names.match_pool, self._holders))

    def _references(self, pod: Pod) -> Iterator[tuple[Key, ClaimReference]]:
        namespace = pod.metadata.namespace
        for reference in claim_references(pod, extended=self._extended):
            if reference.name:
                yield Key(namespace, reference.name), reference

    def _holds(self, pod: Pod, claim: ResourceClaim, reference: ClaimReference) -> bool:
        uid, group = pod.metadata.uid, pod.group if self._groups else ""
        return (
            claim.status.allocation is not None
            and (not reference.generated or made_for(claim, uid=uid, group=group))
            and reserved_for(claim, uid=uid, group=group)
        )

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        touched = frozenset((key_of(new if new is not None else old),))
        if old is not None and new is not None and refers_as(new, old):
            self._tell(touched)
            return
        before = [claim for claim, _ in self._references(old)] if old is not None else ()
        after = [claim for claim, _ in self._references(new)] if new is not None else ()
        for claim in dict.fromkeys(before):
            if claim not in after:
                _drop(self._users, claim, touched)
        for claim in after:
            if claim not in before:
                self._users.setdefault(claim, set()).update(touched)
        self._tell(touched)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = key_of(new if new is not None else old)
        if _results(old) != _results(new):
            self._move(claim, old, new)
        self._tell(frozenset(self._users.get(claim, ())))

    def _move(self, claim: Key, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Take devices out of the hands of a claim, and put others into them."""
        before = {_device(each) for each in _results(old)}
        after = {_device(each) for each in _results(new)}
        for device in before - after:
            here = self._holders[device.pool_id]
            _drop(here, device.device, (claim,))
            if not here:
                del self._holders[device.pool_id]
        for device in after - before:
            here = self._holders.setdefault(device.pool_id, {})
            here.setdefault(device.device, set()).add(claim)

    def _tell(self, pods: frozenset[Key]) -> None:
        for listener in list(self._listeners) if pods else ():
            listener(pods)


def _results(claim: ResourceClaim | None) -> tuple[DeviceRequestAllocationResult, ...]:
    if claim is None or claim.status.allocation is None:
        return ()
    return claim.status.allocation.devices.results


def _device(result: DeviceRequestAllocationResult) -> DeviceId:
    return DeviceId(result.driver, result.pool, result.device)


def _drop(sets: dict[K, set[Key]], name: K, keys: Iterable[Key]) -> None:
    here = sets[name]
    here.difference_update(keys)
    if not here:
        del sets[name]
