"""How claims come and go: made from templates, reserved for pods, released, deallocated.

Whether a pod holds a claim is `reservations.py`; which devices a claim gets is `allocation/`. What
is decided here is done by the claim controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sully.api.resource.annotations import ALLOCATED_ATTRIBUTES
from sully.api.resource.types import ResourceClaim, ResourceClaimConsumerReference
from sully.domain.claims.reservations import reserved_for
from sully.machinery.meta import OwnerReference

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim from vanishing while its devices are in use."""
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""The annotation that says which of its pod's claims a claim was made for."""
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
MOST_CONSUMERS = 256
_LONGEST_PREFIX = 57
"""Leaves room for a suffix in a name that must fit where a DNS label is wanted."""

Obj = dict[str, Any]
Consumers = tuple[ResourceClaimConsumerReference, ...]


# -- making ---------------------------------------------------------------------------------------


def name_prefix(pod: str, claim: str) -> str:
    """Return how the name of a claim begins that is made for one of a pod's claims.

    Where both names are too long, each gives up a part in proportion, so that people still
    recognise the two.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One of a pod's claims that is to be made."""

    namespace: str
    pod: str
    uid: str
    claim: str
    """Its name in the pod."""


def _copied(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what a claim takes over from its template, whose author allocates no devices."""
    return {key: text for key, text in annotations.items() if key != ALLOCATED_ATTRIBUTES}


def claim_of(wanted: Wanted, *, name: str, template: Mapping[str, Any]) -> Obj:
    """Return the claim that is made from the `spec` of a template."""
    given = template.get("metadata") or {}
    metadata: Obj = {
        "name": name,
        "generateName": name_prefix(wanted.pod, wanted.claim),
        "namespace": wanted.namespace,
        "annotations": {**_copied(given.get("annotations") or {}), POD_CLAIM: wanted.claim},
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": wanted.pod,
                "uid": wanted.uid,
                "controller": True,
            }
        ],
    }
    if given.get("labels"):
        metadata["labels"] = dict(given["labels"])
    return {"metadata": metadata, "spec": template["spec"]}


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """Return the pod that a claim was made for, if it was made for one."""
    owner = claim.metadata.controller()
    is_pod = owner is not None and (owner.api_version, owner.kind) == ("v1", "Pod")
    return owner if is_pod else None


def is_made_for(claim: ResourceClaim, *, uid: str, claim_name: str) -> bool:
    """Report whether a claim was made for this claim of this pod."""
    owner = owning_pod(claim)
    return (
        owner is not None
        and owner.uid == uid
        and claim.metadata.annotations.get(POD_CLAIM) == claim_name
    )


def made_claim(claims: Iterable[ResourceClaim], *, uid: str, name: str) -> ResourceClaim | None:
    """Return which of these claims was made for a pod's claim; rather one that stays."""
    found = [each for each in claims if is_made_for(each, uid=uid, claim_name=name)]
    return min(found, key=lambda each: (is_terminating(each), each.metadata.name), default=None)


def claim_statuses(recorded: Mapping[str, str | None], made: Mapping[str, str]) -> list[Obj]:
    """Return `resourceClaimStatuses` with what was made added to what stood there."""
    entries = {**recorded, **made}
    return [
        {"name": name} | ({"resourceClaimName": claim} if claim else {})
        for name, claim in sorted(entries.items())
    ]


# -- using ----------------------------------------------------------------------------------------


def needs_claims(*, finished: bool, terminating: bool, bound: bool) -> bool:
    """Report whether a pod runs or may still run.

    One that was deleted while it runs keeps its devices to the end; one that was deleted before it
    had a node never runs.
    """
    return not finished and (bound or not terminating)


def is_terminating(claim: ResourceClaim) -> bool:
    """Report whether a claim's deletion was asked for."""
    return claim.metadata.deletion_timestamp is not None


def is_protected(claim: ResourceClaim) -> bool:
    """Report whether a claim carries the finalizer that stands for its allocation."""
    return FINALIZER in claim.metadata.finalizers


def may_reserve(claim: ResourceClaim, *, uid: str, group: str = "") -> bool:
    """Report whether a claim must be reserved for a pod that got its node past the scheduler.

    Devices are never allocated for such a pod, and a claim that leaves takes nobody new.
    """
    return (
        claim.status.allocation is not None
        and not is_terminating(claim)
        and not reserved_for(claim, uid=uid, group=group)
        and len(claim.status.reserved_for) < MOST_CONSUMERS
    )


# -- releasing ------------------------------------------------------------------------------------


def is_pod(consumer: ResourceClaimConsumerReference) -> bool:
    """Report whether a claim is reserved for a pod; of others we do not know when they are done."""
    return consumer.resource == "pods" and not consumer.api_group


@dataclass(frozen=True, slots=True)
class Release:
    """What changes in the status of a claim."""

    kept: Consumers
    deallocate: bool


def release(claim: ResourceClaim, kept: Consumers) -> Release | None:
    """Return what must change in a claim when only these consumers are left; None for nothing.

    Devices are given back when the last consumer goes. A claim that nobody used yet stays as it
    is: whoever allocated it is about to use it. Only when it is deleted, nobody will.
    """
    protected = is_protected(claim) and not kept
    if len(kept) < len(claim.status.reserved_for):
        return Release(kept, deallocate=protected)
    if protected and is_terminating(claim) and claim.status.allocation is not None:
        return Release(kept, deallocate=True)
    return None
