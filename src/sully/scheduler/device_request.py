"""The devices that one pod requests, through claims and extended resources, node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sully.api.resource.types import DeviceClass, DeviceToleration, ResourceClaim
from sully.domain.allocation.allocator import allocate
from sully.domain.allocation.failures import Unresolved
from sully.domain.allocation.pools.nodes import is_usable_on
from sully.domain.allocation.requests import Demand, claim_key, prepare
from sully.domain.allocation.toleration_expiry import count_temporarily_tolerated
from sully.domain.allocation.verdicts import (
    MOST_CHOICES,
    Allocated,
    Failed,
    Unallocatable,
    UnallocatableReason,
)
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.taints import untolerated_preferences
from sully.domain.eviction.judge import eviction_delay
from sully.domain.scheduling.decisions import NO_DEVICES
from sully.domain.scheduling.extended import Extension, extend
from sully.domain.scheduling.filters import NodeInfo
from sully.domain.scheduling.objects import Pod
from sully.scheduler.caches.device_cache import DeviceCache
from sully.scheduler.options import SchedulerOptions


class PodDeviceRequest:
    """The devices that a pod requests; `domain.scheduling.decide` asks for them on each node."""

    def __init__(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        demand: Demand,
        devices: DeviceCache,
        options: SchedulerOptions,
        backed: Mapping[str, DeviceClass],
    ) -> None:
        self._pod = pod
        self._allocated = [claim for claim in claims if claim.status.allocation is not None]
        self._demand = demand
        self._devices = devices
        self._options = options
        self.backed = backed
        self._extended: dict[tuple[str, ...], tuple[Extension, Demand | Unresolved | Failed]] = {}
        self.unavailable: dict[str, tuple[ResourceClaim, int]] = {}
        """Claims whose devices cannot be used on some nodes, and on how many."""
        self.to_deallocate: ResourceClaim | None = None
        self.evicting_nodes: list[str] = []
        """Nodes with devices for the pod whose taints would evict it, now or later."""

    @property
    def is_empty(self) -> bool:
        """Report whether no device has to be selected, on whatever node."""
        return not self._demand.claims and not self.backed

    def settles(self, allocated: Allocated) -> bool:
        """Report whether no other node can serve the pod better.

        Kubernetes asks all nodes, so that an error on any of them ends the attempt.
        """
        if self.is_empty:
            return True
        if not self._options.compat.stops_at_best_node:
            return False
        return allocated.preference == self._best() and not self.penalty(allocated)

    def _best(self) -> int:
        """Return the preference of the first alternatives of all requests."""
        choices = 0
        for claim in self._demand.claims:
            for request in claim.requests:
                choices += request.is_choice
        return MOST_CHOICES * choices

    def on(self, node: NodeInfo) -> Allocated | Unallocatable | Failed:
        """Select devices on a node."""
        if self._allocated and not self._is_reachable(node):
            return Unallocatable(UnallocatableReason.NOT_ON_NODE)
        demand = self.demand(self.provided(node)) if self.backed else self._demand
        if isinstance(demand, Failed):
            return demand
        if not demand.claims:
            return NO_DEVICES
        verdict = allocate(
            demand,
            self._devices.node_pools.get(node.target),
            self._devices.ledger,
            compat=self._options.compat,
            explain=False,
        )
        # Where the scheduler is free to select another node, it matters what happens there.
        if not self._options.compat.stops_at_best_node and self._evicts(verdict):
            self.evicting_nodes.append(node.name)
        return verdict

    def _evicts(self, allocated: Allocated | Unallocatable | Failed) -> bool:
        """Report whether the taints of devices would evict the pod."""
        if not isinstance(allocated, Allocated):
            return False
        policy = self._options.eviction_policy
        return any(
            eviction_delay(taint.taint, result.tolerations, policy) is not None
            for allocation, devices in zip(allocated.allocations, allocated.devices, strict=True)
            for result, device in zip(allocation.devices.results, devices, strict=True)
            # Most devices have none.
            if device.taints
            for taint in device.taints
        )

    def _is_reachable(self, node: NodeInfo) -> bool:
        """Report whether the devices that the pod already has can be used on a node."""
        elsewhere = [claim for claim in self._allocated if not _is_usable(claim, node)]
        for claim in elsewhere:
            name = claim_key(claim)
            self.unavailable[name] = claim, self.unavailable.get(name, (claim, 0))[1] + 1
        return not elsewhere

    def provided(self, node: NodeInfo) -> tuple[str, ...]:
        """Return the extended resources that devices must provide on a node."""
        if not self.backed:
            return ()
        allocatable = node.resources.allocatable
        return tuple(resource for resource in self.backed if not allocatable.get(resource))

    def extension(self, resources: tuple[str, ...]) -> Extension | None:
        """Return the claim that the pod gets where devices provide these resources."""
        return self._extend(resources)[0] if resources else None

    def demand(self, resources: tuple[str, ...]) -> Demand | Failed:
        """Return what to allocate where devices provide these resources."""
        if not resources:
            return self._demand
        more = self._extend(resources)[1]
        if isinstance(more, Unresolved):
            return Failed(more)
        if isinstance(more, Failed):
            return more
        return Demand((*self._demand.claims, *more.claims), self._demand.budget)

    def _extend(self, resources: tuple[str, ...]) -> tuple[Extension, Demand | Unresolved | Failed]:
        known = self._extended.get(resources)
        if known is None:
            extension = extend(self._pod, {name: self.backed[name] for name in resources})
            demand = prepare(
                [extension.claim],
                self._devices.inventory.class_,
                self._options.honored_taints,
                budget=self._demand.budget,
            )
            known = self._extended[resources] = (extension, demand)
        return known

    def penalty(self, allocated: Allocated) -> int:
        """Count taints that only advise against a device, or are tolerated only temporarily."""
        penalty = 0
        for allocation, devices in zip(allocated.allocations, allocated.devices, strict=True):
            for result, device in zip(allocation.devices.results, devices, strict=True):
                if device.taints:
                    penalty += self._penalty(device, result.tolerations)
        return penalty

    def _penalty(self, device: EffectiveDevice, tolerations: tuple[DeviceToleration, ...]) -> int:
        options = self._options
        penalty = (
            untolerated_preferences(device.taints, tolerations) if options.honors_preference else 0
        )
        if options.tolerations_expire:
            penalty += count_temporarily_tolerated(device.taints, tolerations)
        return penalty

    def deallocate(self) -> bool:
        """Select a claim that no node of the pod can use, and no other pod uses."""
        for _, (claim, _) in sorted(self.unavailable.items()):
            if all(user.uid == self._pod.metadata.uid for user in claim.status.reserved_for):
                self.to_deallocate = claim
                return True
        return False


def _is_usable(claim: ResourceClaim, node: NodeInfo) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and is_usable_on(allocation, node.target)
