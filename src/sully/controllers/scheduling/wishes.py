"""What one pod wants of devices: its claims, resolved, and the question asked node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sully.api.resource.claim_types import DeviceToleration, ResourceClaim
from sully.api.resource.types import DeviceClass
from sully.client.transport import Key
from sully.controllers.scheduling.devices import Devices, Rests
from sully.domain.allocation.allocator import allocate
from sully.domain.allocation.lapses import fleeting
from sully.domain.allocation.rechecks import usable_on
from sully.domain.allocation.requests import Demand, Heed, claim_key, prepare
from sully.domain.allocation.verdicts import (
    MOST_CHOICES,
    NOT_ON_NODE,
    Allocated,
    Failed,
    Refused,
    Unresolved,
)
from sully.domain.claims.pods import claim_references
from sully.domain.claims.reservations import made_for
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.taints import NO_EXECUTE_WITH_BUDGET, discouraging
from sully.domain.eviction.judge import USUAL, Terms
from sully.domain.scheduling.decisions import NO_DEVICES
from sully.domain.scheduling.extended import Extension, extend
from sully.domain.scheduling.filters import NodeState
from sully.domain.scheduling.messages import DEALLOCATED
from sully.domain.scheduling.objects import SCHEDULERS, Pod
from sully.machinery.cel import COST_BUDGET
from sully.machinery.compat import Compat

FindClaim = Callable[[Key], ResourceClaim | None]


@dataclass(frozen=True, slots=True)
class Options:
    """What is switched on."""

    compat: Compat = Compat.SULLY
    taints: bool = True
    prefer_no_schedule: bool = False
    binding_conditions: bool = True
    partitions: bool = True
    shares: bool = True
    eviction: Terms = USUAL
    """How it is judged whether a pod would have to leave at once."""
    schedulers: frozenset[str] = SCHEDULERS
    """Which `schedulerName` makes a pod ours; fewer where another scheduler is at work."""
    cost_units: int = COST_BUDGET
    """What evaluating selectors may cost in one attempt of a pod."""

    @property
    def ends(self) -> bool:
        """Say whether tolerations for some time end for the choice of devices too."""
        return self.taints and self.compat.honors_toleration_seconds

    @property
    def heed(self) -> Heed:
        """Return what the choice of devices looks at."""
        budgets = NO_EXECUTE_WITH_BUDGET in self.eviction.effects
        return Heed(taints=self.taints, budgets=budgets, advice=self.prefer_no_schedule)

    @property
    def rests(self) -> Rests | None:
        """Return what says which devices use something that is off; None if nothing can be."""
        if self.binding_conditions and self.partitions and self.shares:
            return None
        return self._rests

    def _rests(self, device: EffectiveDevice) -> bool:
        published, spec = device.published.device, device.published.slice.spec
        if not self.binding_conditions and published.binding_conditions:
            return True
        if not self.partitions and (published.consumes_counters or spec.per_device_node_selection):
            return True
        return not self.shares and bool(published.allow_multiple_allocations)


def claim_keys(pod: Pod) -> list[Key]:
    """Return the claims that a pod refers to, as far as they are known by name."""
    names = dict.fromkeys(each.name for each in claim_references(pod, extended=False))
    return [Key(pod.metadata.namespace, name) for name in names if name]


def resolve(pod: Pod, find: FindClaim) -> list[ResourceClaim] | str:
    """Return a pod's claims in its order, or why they are not all there."""
    claims: dict[Key, ResourceClaim] = {}
    for reference in claim_references(pod, extended=False):
        if reference.missing:
            return f'pod "{pod.label}": ResourceClaim not created yet'
        if not reference.name:
            continue
        key = Key(pod.metadata.namespace, reference.name)
        claim = find(key)
        problem = _problem(pod, key, claim, generated=reference.generated)
        if claim is None or problem:
            return problem
        claims[key] = claim
    return list(claims.values())


def _problem(pod: Pod, key: Key, claim: ResourceClaim | None, *, generated: bool) -> str:
    if claim is None:
        return f'could not find ResourceClaim "{key}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'resourceclaim "{key.name}" is being deleted'
    if generated and not made_for(claim, uid=pod.metadata.uid):
        return f"ResourceClaim {key} was not created for Pod {pod.label} (Pod is not owner)"
    return ""


class Wish:
    """The devices that a pod wants; asked by `domain.scheduling.decide`."""

    def __init__(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        demand: Demand,
        devices: Devices,
        options: Options,
        backed: Mapping[str, DeviceClass],
    ) -> None:
        self._pod = pod
        self._allocated = [each for each in claims if each.status.allocation is not None]
        self._demand = demand
        self._devices = devices
        self._options = options
        self.backed = backed
        self._extended: dict[tuple[str, ...], tuple[Extension, Demand | Unresolved | Failed]] = {}
        self._best = MOST_CHOICES * sum(
            any(each.is_choice for each in request.alternatives)
            for claim in demand.claims
            for request in claim.requests
        )
        self.unavailable: dict[str, tuple[ResourceClaim, int]] = {}
        """Claims whose devices cannot be used on some nodes, and on how many."""
        self.to_deallocate: ResourceClaim | None = None

    @property
    def is_empty(self) -> bool:
        """Say whether no device has to be chosen, on whatever node."""
        return not self._demand.claims and not self.backed

    def settles(self, allocated: Allocated) -> bool:
        """Say whether no other node could serve the pod better.

        Kubernetes asks all nodes, so that an error on any of them ends the attempt.
        """
        if self.is_empty:
            return True
        if not self._options.compat.stops_at_best_node:
            return False
        return allocated.preference == self._best and not self.dislikes(allocated)

    def on(self, state: NodeState) -> Allocated | Refused | Failed:
        """Choose devices on a node."""
        if self._allocated and not self._is_reachable(state):
            return Refused(NOT_ON_NODE)
        demand = self.demand(self.provided(state)) if self.backed else self._demand
        if isinstance(demand, Failed):
            return demand
        if not demand.claims:
            return NO_DEVICES
        return allocate(
            demand,
            self._devices.catalogue.offer(state.place),
            self._devices.ledger,
            compat=self._options.compat,
            explain=False,
        )

    def _is_reachable(self, state: NodeState) -> bool:
        """Say whether the devices that the pod has already can be used on a node."""
        away = [each for each in self._allocated if not _is_usable(each, state)]
        for each in away:
            name = claim_key(each)
            self.unavailable[name] = each, self.unavailable.get(name, (each, 0))[1] + 1
        return not away

    def provided(self, state: NodeState) -> tuple[str, ...]:
        """Return the extended resources that devices must provide on a node."""
        if not self.backed:
            return ()
        return tuple(each for each in self.backed if not state.room.allocatable.get(each))

    def extension(self, resources: tuple[str, ...]) -> Extension | None:
        """Return the claim that the pod gets where devices provide these resources."""
        return self._extend(resources)[0] if resources else None

    def demand(self, resources: tuple[str, ...]) -> Demand | Failed:
        """Return what is to be allocated where devices provide these resources."""
        if not resources:
            return self._demand
        more = self._extend(resources)[1]
        if isinstance(more, Unresolved):
            return Failed(more.message)
        return more if isinstance(more, Failed) else self._with(more)

    def _with(self, more: Demand) -> Demand:
        return Demand((*self._demand.claims, *more.claims), self._demand.budget)

    def _extend(self, resources: tuple[str, ...]) -> tuple[Extension, Demand | Unresolved | Failed]:
        found = self._extended.get(resources)
        if found is None:
            extension = extend(self._pod, {each: self.backed[each] for each in resources})
            classes = self._devices.inventory.class_
            found = (
                extension,
                prepare([extension.claim], classes, self._options.heed, budget=self._demand.budget),
            )
            self._extended[resources] = found
        return found

    def dislikes(self, allocated: Allocated) -> int:
        """Count taints that only advise against a device, or are tolerated only for a time."""
        return sum(
            self._dislikes(device, result.tolerations)
            for allocation, devices in zip(allocated.allocations, allocated.devices, strict=True)
            for result, device in zip(allocation.devices.results, devices, strict=True)
            if device.taints
        )

    def _dislikes(self, device: EffectiveDevice, tolerations: tuple[DeviceToleration, ...]) -> int:
        options = self._options
        found = discouraging(device.taints, tolerations) if options.prefer_no_schedule else 0
        if options.ends:
            found += fleeting(device.taints, tolerations)
        return found

    def clear(self) -> str:
        """Pick a claim to take devices from: one that no node of the pod can use, nor anyone."""
        for _, (claim, _) in sorted(self.unavailable.items()):
            if all(each.uid == self._pod.metadata.uid for each in claim.status.reserved_for):
                self.to_deallocate = claim
                return DEALLOCATED
        return ""


def _is_usable(claim: ResourceClaim, state: NodeState) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and usable_on(allocation, state.place)


def unallocated(claims: Iterable[ResourceClaim]) -> list[ResourceClaim]:
    """Return the claims that devices must still be chosen for."""
    return [each for each in claims if each.status.allocation is None]
