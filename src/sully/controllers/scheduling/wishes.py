"""What one pod wants of devices: its claims, resolved, and the question asked node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sully.api.resource.claim_types import ResourceClaim
from sully.client.transport import Key
from sully.controllers.scheduling.devices import Devices
from sully.domain.allocation.allocator import allocate
from sully.domain.allocation.rechecks import usable_on
from sully.domain.allocation.requests import Demand
from sully.domain.allocation.verdicts import NOT_ON_NODE, Allocated, Failed, Refused
from sully.domain.holding import made_for
from sully.domain.scheduling.decisions import NO_DEVICES
from sully.domain.scheduling.filters import NodeState
from sully.domain.scheduling.messages import DEALLOCATED
from sully.domain.scheduling.objects import Pod
from sully.domain.taints import tolerates

PREFER_NO_SCHEDULE = "PreferNoSchedule"

FindClaim = Callable[[Key], ResourceClaim | None]


@dataclass(frozen=True, slots=True)
class Options:
    """What is switched on."""

    strict: bool = False
    """Do as Kubernetes 1.37 does, also where that is against its documentation."""
    taints: bool = True
    prefer_no_schedule: bool = False
    binding_conditions: bool = True


def claim_keys(pod: Pod) -> list[Key]:
    """Return the claims that a pod refers to, as far as they are known by name."""
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    names = (each.resource_claim_name or made.get(each.name) for each in pod.spec.resource_claims)
    return [Key(pod.metadata.namespace, name) for name in dict.fromkeys(names) if name]


def resolve(pod: Pod, find: FindClaim) -> list[ResourceClaim] | str:
    """Return a pod's claims in its order, or why they are not all there."""
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    found: dict[Key, ResourceClaim] = {}
    for each in pod.spec.resource_claims:
        name = each.resource_claim_name
        if name is None:
            if each.name not in made:
                return f'pod "{pod.label}": ResourceClaim not created yet'
            name = made[each.name]
            if name is None:
                continue
        key = Key(pod.metadata.namespace, name)
        claim = find(key)
        problem = _problem(pod, key, claim, generated=each.resource_claim_name is None)
        if claim is None or problem:
            return problem
        found[key] = claim
    return list(found.values())


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
        demand: Demand | None,
        devices: Devices,
        options: Options,
    ) -> None:
        self._pod = pod
        self._allocated = [each for each in claims if each.status.allocation is not None]
        self._demand = demand
        self._devices = devices
        self._options = options
        self._unavailable: dict[str, ResourceClaim] = {}
        self.to_deallocate: ResourceClaim | None = None

    @property
    def varied(self) -> bool:
        """Say whether nodes may serve the pod differently well.

        Kubernetes asks all nodes, so that an error on any of them ends the attempt.
        """
        if self._demand is None:
            return False
        return self._options.strict or self._options.prefer_no_schedule or self._has_choices()

    def on(self, state: NodeState) -> Allocated | Refused | Failed:
        """Choose devices on a node."""
        away = [each for each in self._allocated if not _is_usable(each, state)]
        self._unavailable |= {each.metadata.name: each for each in away}
        if away:
            return Refused(NOT_ON_NODE)
        if self._demand is None:
            return NO_DEVICES
        return allocate(
            self._demand,
            self._devices.catalogue.offer(state.place),
            self._devices.ledger,
            strict=self._options.strict,
            explain=False,
        )

    def dislikes(self, allocated: Allocated) -> int:
        """Count taints that only advise against a device and are not tolerated."""
        if not self._options.prefer_no_schedule:
            return 0
        return sum(
            each.taint.effect == PREFER_NO_SCHEDULE
            and not any(tolerates(one, each.taint) for one in result.tolerations)
            for allocation, devices in zip(allocated.allocations, allocated.devices, strict=True)
            for result, device in zip(allocation.devices.results, devices, strict=True)
            for each in device.taints
        )

    def clear(self) -> str:
        """Pick a claim to take devices from: one that no node of the pod can use, nor anyone."""
        for _, claim in sorted(self._unavailable.items()):
            if all(each.uid == self._pod.metadata.uid for each in claim.status.reserved_for):
                self.to_deallocate = claim
                return DEALLOCATED
        return ""

    def _has_choices(self) -> bool:
        return self._demand is not None and any(
            len(request.alternatives) > 1
            for claim in self._demand.claims
            for request in claim.requests
        )


def _is_usable(claim: ResourceClaim, state: NodeState) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and usable_on(allocation, state.place)


def unallocated(claims: Iterable[ResourceClaim]) -> list[ResourceClaim]:
    """Return the claims that devices must still be chosen for."""
    return [each for each in claims if each.status.allocation is None]
