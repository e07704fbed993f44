"""Equivalence classes of pods: those that only differ in what does not matter to scheduling.

No node fits a pod of a class if none fits another one, for the same reasons, so judge.py caches
results by class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

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
from sully.domain.scheduling.objects import Container, Pod

EquivalenceClass = bytes
Exact = TypeVar("Exact", ExactDeviceRequest, DeviceSubRequest)


class PodQuery(msgspec.Struct):
    """A pod to schedule, and its claims, none of which is allocated."""

    pod: Pod
    wanted: Sequence[ResourceClaim]
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
            self._equivalence = equivalence_class(
                self.pod, self.wanted, self.as_of, constrained=self.constrained
            )
        return self._equivalence


def equivalence_class(
    pod: Pod,
    wanted: Sequence[ResourceClaim],
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
        [_spec_without_seconds(claim.spec) for claim in wanted],
        list(_expiries(wanted, as_of)) if as_of is not None else None,
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
    diagnosis: Diagnosis, claims: Sequence[str], wanted: Sequence[ResourceClaim]
) -> Diagnosis:
    """Return the diagnosis for claims of these names as that of the claims of an equal pod."""
    names = dict(zip(claims, map(claim_key, wanted), strict=True))
    return for_claims(diagnosis, lambda name: names.get(name, name))


def _needs(container: Container) -> tuple[Mapping[str, str], str]:
    return container.resources.requests, container.restart_policy


def _spec_without_seconds(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """Return a claim without tolerationSeconds: `_expiries` has what they mean now."""
    requests = spec.devices.requests or ()
    if not any(map(_is_limited, requests)):
        return spec
    devices = msgspec.structs.replace(spec.devices, requests=tuple(map(_unlimited, requests)))
    return msgspec.structs.replace(spec, devices=devices)


def _expiries(wanted: Sequence[ResourceClaim], as_of: AsOf) -> Iterator[Expiries]:
    for claim in wanted:
        for request in claim.spec.devices.requests or ():
            if _is_limited(request):
                yield from (as_of.expiries(exact.tolerations) for exact in alternatives_of(request))


def _is_limited(request: DeviceRequest) -> bool:
    return any(
        toleration.toleration_seconds is not None
        for exact in alternatives_of(request)
        for toleration in exact.tolerations
    )


def _unlimited(request: DeviceRequest) -> DeviceRequest:
    exactly = request.exactly
    return msgspec.structs.replace(
        request,
        exactly=_tolerating(exactly) if exactly is not None else None,
        first_available=tuple(map(_tolerating, request.first_available)),
    )


def _tolerating(exact: Exact) -> Exact:
    return msgspec.structs.replace(exact, tolerations=without_seconds(exact.tolerations))
