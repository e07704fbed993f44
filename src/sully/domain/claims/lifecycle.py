"""The lifecycle of claims: created from templates, reserved for pods, released, deallocated.

Whether a claim is reserved for a pod is `reservations.py`; which devices a claim gets is
`allocation/`. The claim controller executes what is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from sully.api.resource.annotations import ALLOCATED_ATTRIBUTES, DELETE_PROTECTION
from sully.api.resource.types import ResourceClaim, ResourceClaimConsumerReference
from sully.domain.claims.reservations import reserved_for
from sully.machinery.meta import OwnerReference

FINALIZER = DELETE_PROTECTION
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""The annotation with the name in the pod of a claim that was created for it."""
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
MOST_CONSUMERS = 256
_LONGEST_PREFIX = 57
"""With a generated suffix the name is a valid DNS label."""

Obj = dict[str, Any]
Consumers = tuple[ResourceClaimConsumerReference, ...]


# -- creating -------------------------------------------------------------------------------------


def name_prefix(pod: str, claim: str) -> str:
    """Return the prefix of the name of a claim that is created for one of a pod's claims.

    If both names are too long together, each is shortened in proportion, so that both remain
    recognizable.
    """
    whole = f"{pod}-{claim}-"
    if len(whole) <= _LONGEST_PREFIX:
        return whole
    # Kubernetes may leave nothing of a pod with a very short name; no name begins with a dash.
    first = pod[: max(1, len(pod) * _LONGEST_PREFIX // len(whole))]
    second = claim[: len(claim) * _LONGEST_PREFIX // len(whole)]
    return f"{_ended(first)}-{second}"


def _ended(part: str) -> str:
    """Cut a name back that was cut behind a dot: no part of a name may begin with a dash."""
    bare = part.rstrip(".-")
    return bare if "." in part[len(bare) :] else part


class ClaimToCreate(msgspec.Struct, frozen=True, kw_only=True):
    """One of a pod's claims that has to be created."""

    namespace: str
    pod: str
    uid: str
    claim: str
    """Its name in the pod."""


def _copied_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations of a template without those that only allocations have."""
    return {key: text for key, text in annotations.items() if key != ALLOCATED_ATTRIBUTES}


def claim_of(new: ClaimToCreate, *, name: str, template: Mapping[str, Any]) -> Obj:
    """Return the claim that is created from the `spec` of a template."""
    template_metadata = template.get("metadata") or {}
    metadata: Obj = {
        "name": name,
        "generateName": name_prefix(new.pod, new.claim),
        "namespace": new.namespace,
        "annotations": {
            **_copied_annotations(template_metadata.get("annotations") or {}),
            POD_CLAIM: new.claim,
        },
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": new.pod,
                "uid": new.uid,
                "controller": True,
            }
        ],
    }
    if template_metadata.get("labels"):
        metadata["labels"] = dict(template_metadata["labels"])
    return {"metadata": metadata, "spec": template["spec"]}


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """Return the pod that a claim was created for, if it was created for one."""
    owner = claim.metadata.controller()
    is_pod = owner is not None and (owner.api_version, owner.kind) == ("v1", "Pod")
    return owner if is_pod else None


def is_made_for(claim: ResourceClaim, *, uid: str, claim_name: str) -> bool:
    """Report whether a claim was created for this claim of this pod."""
    owner = owning_pod(claim)
    return (
        owner is not None
        and owner.uid == uid
        and claim.metadata.annotations.get(POD_CLAIM) == claim_name
    )


def made_claim(claims: Iterable[ResourceClaim], *, uid: str, name: str) -> ResourceClaim | None:
    """Return the claim that was created for a pod's claim, if possible not a terminating one."""
    created = (claim for claim in claims if is_made_for(claim, uid=uid, claim_name=name))
    return min(
        created, key=lambda claim: (is_terminating(claim), claim.metadata.name), default=None
    )


def claim_statuses(recorded: Mapping[str, str | None], created: Mapping[str, str]) -> list[Obj]:
    """Return `resourceClaimStatuses` with the claims that were created."""
    entries = {**recorded, **created}
    return [
        {"name": name} | ({"resourceClaimName": claim} if claim else {})
        for name, claim in sorted(entries.items())
    ]


# -- using ----------------------------------------------------------------------------------------


def needs_claims(*, finished: bool, terminating: bool, bound: bool) -> bool:
    """Report whether a pod runs or may still run.

    One that is deleted while it runs keeps its devices until it has terminated; one that is deleted
    before it is bound never runs.
    """
    return not finished and (bound or not terminating)


def is_terminating(claim: ResourceClaim) -> bool:
    """Report whether a claim has a deletion timestamp."""
    return claim.metadata.deletion_timestamp is not None


def is_protected(claim: ResourceClaim) -> bool:
    """Report whether a claim has the finalizer of allocated claims."""
    return FINALIZER in claim.metadata.finalizers


def may_reserve(claim: ResourceClaim, *, uid: str, group: str = "") -> bool:
    """Report whether a claim must be reserved for a pod that was not bound by the scheduler.

    Devices are never allocated for such a pod, and a terminating claim is not reserved.
    """
    return (
        claim.status.allocation is not None
        and not is_terminating(claim)
        and not reserved_for(claim, uid=uid, group=group)
        and len(claim.status.reserved_for) < MOST_CONSUMERS
    )


# -- releasing ------------------------------------------------------------------------------------


def is_pod(consumer: ResourceClaimConsumerReference) -> bool:
    """Report whether a consumer is a pod; of others we do not know when they finish."""
    return consumer.resource == "pods" and not consumer.api_group


class Release(msgspec.Struct, frozen=True):
    """What changes in the status of a claim."""

    remaining: Consumers
    deallocate: bool


def release(claim: ResourceClaim, remaining: Consumers) -> Release | None:
    """Return what must change in a claim when only these consumers are left; None for nothing.

    Devices are deallocated with the last consumer. A claim without consumers is not changed: the
    pod for which it was allocated is about to use it, unless the claim is deleted.
    """
    protected = is_protected(claim) and not remaining
    if len(remaining) < len(claim.status.reserved_for):
        return Release(remaining, deallocate=protected)
    if protected and is_terminating(claim) and claim.status.allocation is not None:
        return Release(remaining, deallocate=True)
    return None
