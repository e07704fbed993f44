"""What a pod asks of the cluster, apart from all that cannot change the answer.

Pods with the same question are refused alike, by every node and with the same words, so judging.py
remembers answers by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from sully.api.resource.claim_types import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from sully.domain.allocation.lapses import AsOf, Ends
from sully.domain.allocation.requests import claim_key, for_good
from sully.domain.scheduling.account import Account, for_claims
from sully.domain.scheduling.objects import Pod

Question = bytes
Asked = TypeVar("Asked", ExactDeviceRequest, DeviceSubRequest)


@dataclass(slots=True)
class Asking:
    """A pod and its claims, none of which has devices."""

    pod: Pod
    wanted: Sequence[ResourceClaim]
    as_of: AsOf | None = None
    briefly: bool = False
    """Nobody wants to know why not."""
    _question: Question = b""

    @property
    def question(self) -> Question:
        """Return what they ask; found out when it is needed, and once."""
        if not self._question:
            self._question = question(self.pod, self.wanted, self.as_of)
        return self._question


def question(pod: Pod, wanted: Sequence[ResourceClaim], as_of: AsOf | None = None) -> Question:
    """Return what a pod asks, apart from the names in it, and if it matters, as of now."""
    spec = pod.spec
    asked: list[Any] = [
        pod.metadata.namespace,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.preemption_policy,
        spec.overhead,
        spec.resources,
        [_needs(each) for each in spec.init_containers],
        [_needs(each) for each in spec.containers],
        [_plain(each.spec) for each in wanted],
        list(_ends(wanted, as_of)) if as_of is not None else None,
    ]
    return msgspec.json.encode(asked, order="deterministic")


def told_of(account: Account, claims: Sequence[str], wanted: Sequence[ResourceClaim]) -> Account:
    """Return an account that was made for claims of these names as that of other claims."""
    names = dict(zip(claims, map(claim_key, wanted), strict=True))
    return for_claims(account, lambda name: names.get(name, name))


def _needs(container: Any) -> tuple[Any, Any]:
    return container.get("resources"), container.get("restartPolicy")


def _plain(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """Return a claim without how long it tolerates what: `_ends` says what became of that."""
    requests = spec.devices.requests or ()
    if not any(map(_is_limited, requests)):
        return spec
    devices = msgspec.structs.replace(spec.devices, requests=tuple(map(_unlimited, requests)))
    return msgspec.structs.replace(spec, devices=devices)


def _ends(wanted: Sequence[ResourceClaim], as_of: AsOf) -> Iterator[Ends]:
    for claim in wanted:
        for request in claim.spec.devices.requests or ():
            if _is_limited(request):
                given = (request.exactly,) if request.exactly else request.first_available
                yield from (as_of.ends(each.tolerations) for each in given)


def _is_limited(request: DeviceRequest) -> bool:
    given = (request.exactly,) if request.exactly is not None else request.first_available
    return any(each.toleration_seconds is not None for asked in given for each in asked.tolerations)


def _unlimited(request: DeviceRequest) -> DeviceRequest:
    exactly = request.exactly
    return msgspec.structs.replace(
        request,
        exactly=_tolerating(exactly) if exactly is not None else None,
        first_available=tuple(map(_tolerating, request.first_available)),
    )


def _tolerating(asked: Asked) -> Asked:
    return msgspec.structs.replace(asked, tolerations=for_good(asked.tolerations))
