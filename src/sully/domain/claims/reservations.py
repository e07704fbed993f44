"""Whether a claim is reserved for a pod: resolved by name, created for it, and reserved.

The evictor checks it before it evicts a pod; `views/devices/usage.py` has the claims of each pod.
"""

from __future__ import annotations

from sully.api.resource.types import ResourceClaim, ResourceClaimConsumerReference

POD_GROUPS = ("scheduling.k8s.io", "podgroups")


def is_for_pod(claim: ResourceClaim, *, uid: str, group: str = "") -> bool:
    """Report whether a claim from a template was created for a pod, or for its group.

    The name alone is not enough: another object may have it.
    """
    owner = claim.metadata.controller()
    if owner is None:
        return False
    return owner.uid == uid or bool(group and owner.kind == "PodGroup" and owner.name == group)


def reserved_for(claim: ResourceClaim, *, uid: str, group: str = "") -> bool:
    """Report whether a pod may use a claim, itself or as a member of a group of pods."""
    return any(_is_for(consumer, uid, group) for consumer in claim.status.reserved_for)


def _is_for(consumer: ResourceClaimConsumerReference, uid: str, group: str) -> bool:
    if consumer.resource == "pods" and not consumer.api_group:
        return consumer.uid == uid
    return (
        bool(group)
        and (consumer.api_group, consumer.resource) == POD_GROUPS
        and consumer.name == group
    )
