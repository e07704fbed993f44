"""What its owner makes in the place of a pod that left: a pod that asks the same, and its claims.

A pod that nobody manages is not replaced. Most owners do not wait until the old pod is gone; those
that give their pods names, or have one for each node, do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import datetime
from operator import itemgetter
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from sully.domain.claims.lifecycle import POD_CLAIM
from sully.domain.claims.pods import PodClaimStatus
from sully.domain.planning.objects import PlannedPod
from sully.domain.scheduling.objects import PodMetadata, PodStatus
from sully.machinery.meta import ObjectMeta, OwnerReference

T = TypeVar("T")

AT_ONCE: Final = frozenset(("ReplicaSet", "ReplicationController", "Job"))
"""Owners that do not count a pod any more once its deletion was asked for."""
NEVER: Final = frozenset(("Node",))
"""A pod from a file of its node comes back there, whatever the scheduler thinks."""
MARK: Final = "~"
"""Stands in the names of what exists only in a plan; no real name has it."""

FindSpec = Callable[[str, str], ResourceClaimSpec | None]
"""Finds what a claim asks for, by its name in the pod and the name of its template."""


class Replacement(msgspec.Struct, frozen=True):
    """A pod that comes for another, and the claims that are made for it."""

    pod: PlannedPod
    claims: tuple[ResourceClaim, ...]
    missing: str = ""
    """The template that is gone; the pod then waits for its claim for ever."""


def is_replaced(pod: PlannedPod) -> bool:
    """Report whether somebody makes another pod when this one leaves."""
    owner = pod.owner
    return owner is not None and owner.kind not in NEVER


def waits_for_the_end(pod: PlannedPod) -> bool:
    """Report whether its owner makes another only when this one is gone."""
    owner = pod.owner
    return owner is not None and owner.kind not in AT_ONCE


def in_batches(gone: Iterable[T], owner: Callable[[T], Hashable]) -> list[T]:
    """Return what is to be replaced at one time in the order in which the owners do it.

    They all work at the same time, and each makes one at first, then two, then four.
    """
    batches: list[tuple[int, T]] = []
    seen: dict[Hashable, int] = {}
    for each in gone:
        whose = owner(each)
        seen[whose] = seen.get(whose, 0) + 1
        batches.append((seen[whose].bit_length(), each))
    return [each for _, each in sorted(batches, key=itemgetter(0))]


def replacement(
    pod: PlannedPod, now: datetime, *, spec_of: FindSpec, number: int = 1
) -> Replacement:
    """Return what comes for a pod: the same wishes, no node, and fresh claims from templates."""
    name = pod.metadata.name if waits_for_the_end(pod) else f"{pod.metadata.name}{MARK}{number}"
    metadata = replace(
        pod.metadata,
        name=name,
        uid=f"{pod.metadata.uid}{MARK}{number}",
        resource_version="",
        # The wire has whole seconds, and the queue goes by them.
        creation_timestamp=now.replace(microsecond=0),
        deletion_timestamp=None,
    )
    claims, missing = [], ""
    for entry, wanted in _templates(pod):
        spec = spec_of(entry, wanted)
        if spec is None:
            missing = wanted
        else:
            claims.append(_claim(metadata, entry, spec))
    made = tuple(
        PodClaimStatus(
            name=each.metadata.annotations[POD_CLAIM], resource_claim_name=each.metadata.name
        )
        for each in claims
    )
    fresh = replace(
        pod,
        metadata=metadata,
        spec=replace(pod.spec, node_name=""),
        status=PodStatus(resource_claim_statuses=made),
    )
    return Replacement(fresh, tuple(claims), missing)


def _templates(pod: PlannedPod) -> Iterator[tuple[str, str]]:
    for each in pod.spec.resource_claims:
        if each.resource_claim_name is None and each.resource_claim_template_name is not None:
            yield each.name, each.resource_claim_template_name


def _claim(pod: PodMetadata, entry: str, spec: ResourceClaimSpec) -> ResourceClaim:
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=pod.name,
        uid=pod.uid,
        controller=True,
    )
    name = f"{pod.uid}-{entry}"
    metadata = ObjectMeta(
        name=name,
        namespace=pod.namespace,
        uid=name,
        annotations={POD_CLAIM: entry},
        owner_references=(owner,),
    )
    return ResourceClaim(metadata=metadata, spec=spec, status=ResourceClaimStatus())
