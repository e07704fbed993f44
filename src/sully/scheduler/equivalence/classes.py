"""Equivalence classes of pods: those that only differ in what does not matter to scheduling.

No node fits a pod of a class if none fits another one, for the same reasons, so
schedule_algorithm.py caches results by class.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from sully.api.resource.types import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from sully.domain.allocation.requests import alternatives_of, claim_key, without_seconds
from sully.domain.allocation.toleration_expiry import AsOf, Expiries
from sully.domain.scheduling.diagnosis import Diagnosis, for_claims
from sully.domain.scheduling.host_ports import host_ports
from sully.domain.scheduling.objects import Container, Pod, PodSpec
from sully.machinery.memo import Memo

EquivalenceClass = bytes
_MOST_SPECS: Final = 1024
Exact = TypeVar("Exact", ExactDeviceRequest, DeviceSubRequest)


class PodQuery(msgspec.Struct):
    """A pod to schedule, and its claims, none of which is allocated."""

    pod: Pod
    unallocated: Sequence[ResourceClaim]
    equivalence_classes: EquivalenceClasses
    as_of: AsOf | None = None
    diagnose: bool = True
    """Whether the caller needs to know why no node fits."""
    constrained: bool = False
    """Whether constraints decide that not all pods have: its labels and volumes matter, too."""
    _equivalence: EquivalenceClass = b""

    @property
    def equivalence(self) -> EquivalenceClass:
        """Return the class of the pod, computed once and when it is needed."""
        if not self._equivalence:
            self._equivalence = (
                equivalence_class(self.pod, self.unallocated, self.as_of, constrained=True)
                if self.constrained
                else self.equivalence_classes.of(self.pod, self.unallocated, self.as_of)
            )
        return self._equivalence


class _Known(msgspec.Struct, frozen=True):
    """A class, and the specs that it was computed from: nothing else may get their identity."""

    equivalence: EquivalenceClass
    pod: PodSpec
    claims: tuple[ResourceClaimSpec, ...]


class EquivalenceClasses:
    """The classes of pods; of those with the same specs, as plans create them, only once."""

    def __init__(self) -> None:
        self._known: Memo[tuple[Hashable, ...], _Known] = Memo(_MOST_SPECS)
        self._state: Hashable = None

    def invalidate_if_changed(self, state: Hashable) -> None:
        """Forget everything if the times of taints changed, or a toleration has expired."""
        if state != self._state:
            self._state = state
            self._known.clear()

    def of(
        self, pod: Pod, unallocated: Sequence[ResourceClaim], as_of: AsOf | None
    ) -> EquivalenceClass:
        """Return the class of a pod without constraints."""
        claims = tuple([claim.spec for claim in unallocated])
        key = (pod.metadata.namespace, id(pod.spec), *map(id, claims))
        known = self._known.get(key)
        if known is None:
            equivalence = equivalence_class(pod, unallocated, as_of)
            known = self._known.keep(key, _Known(equivalence, pod.spec, claims))
        return known.equivalence


def equivalence_class(
    pod: Pod,
    unallocated: Sequence[ResourceClaim],
    as_of: AsOf | None = None,
    *,
    constrained: bool = False,
) -> EquivalenceClass:
    """Return what decides where a pod runs, without the names in it."""
    spec = pod.spec
    fields: list[Any] = [
        pod.metadata.namespace,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.preemption_policy,
        spec.priority,
        spec.overhead,
        spec.resources,
        [_needs(container) for container in spec.init_containers],
        [_needs(container) for container in spec.containers],
        [_spec_without_seconds(claim.spec) for claim in unallocated],
        list(_expiries(unallocated, as_of)) if as_of is not None else None,
    ]
    if constrained:
        fields += _constraints(pod)
    return msgspec.json.encode(fields, order="deterministic")


def _constraints(pod: Pod) -> Iterator[Any]:
    spec = pod.spec
    yield pod.metadata.labels
    yield spec.topology_spread_constraints
    yield host_ports(spec)
    yield spec.volumes
    # The claim of an ephemeral volume has the name of its pod.
    yield pod.metadata.name if any(volume.ephemeral for volume in spec.volumes) else ""
    yield spec.scheduling_group


def for_claims_of(
    diagnosis: Diagnosis, claims: Sequence[str], unallocated: Sequence[ResourceClaim]
) -> Diagnosis:
    """Return the diagnosis for claims of these names as that of the claims of an equal pod."""
    names = dict(zip(claims, map(claim_key, unallocated), strict=True))
    return for_claims(diagnosis, lambda name: names.get(name, name))


def _needs(container: Container) -> tuple[Mapping[str, str], str]:
    return container.resources.requests, container.restart_policy


def _spec_without_seconds(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """Return a claim without tolerationSeconds: `_expiries` has what they mean now."""
    requests = spec.devices.requests or ()
    if not any(map(_has_seconds, requests)):
        return spec
    devices = msgspec.structs.replace(spec.devices, requests=tuple(map(_without_seconds, requests)))
    return msgspec.structs.replace(spec, devices=devices)


def _expiries(unallocated: Sequence[ResourceClaim], as_of: AsOf) -> Iterator[Expiries]:
    for claim in unallocated:
        for request in claim.spec.devices.requests or ():
            if _has_seconds(request):
                yield from (as_of.expiries(exact.tolerations) for exact in alternatives_of(request))


def _has_seconds(request: DeviceRequest) -> bool:
    return any(
        toleration.toleration_seconds is not None
        for exact in alternatives_of(request)
        for toleration in exact.tolerations
    )


def _without_seconds(request: DeviceRequest) -> DeviceRequest:
    exactly = request.exactly
    return msgspec.structs.replace(
        request,
        exactly=_exact_without_seconds(exactly) if exactly is not None else None,
        first_available=tuple(map(_exact_without_seconds, request.first_available)),
    )


def _exact_without_seconds(exact: Exact) -> Exact:
    return msgspec.structs.replace(exact, tolerations=without_seconds(exact.tolerations))
