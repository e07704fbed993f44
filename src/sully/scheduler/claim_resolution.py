"""Finds the claims of a pod, or why they are not all usable yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto

import msgspec

from sully.api.resource.types import ResourceClaim
from sully.client.transport import Key
from sully.domain.claims.pods import claim_references
from sully.domain.claims.reservations import is_for_pod
from sully.domain.scheduling.objects import Pod

GetClaim = Callable[[Key], ResourceClaim | None]


class ClaimState(Enum):
    """Why a claim cannot be used by a pod."""

    NOT_CREATED = auto()
    NOT_FOUND = auto()
    DELETING = auto()
    NOT_OWNED = auto()


class ClaimsNotReady(msgspec.Struct, frozen=True):
    """A pod whose claims are not all there; it is activated when they are."""

    pod: str
    claim: Key
    """Named like the entry of the pod as long as it was not created."""
    state: ClaimState

    @property
    def message(self) -> str:
        """Return what Kubernetes logs about it."""
        match self.state:
            case ClaimState.NOT_CREATED:
                return f'pod "{self.pod}": ResourceClaim not created yet'
            case ClaimState.NOT_FOUND:
                return f'could not find ResourceClaim "{self.claim}"'
            case ClaimState.DELETING:
                return f'resourceclaim "{self.claim.name}" is being deleted'
            case ClaimState.NOT_OWNED:
                suffix = f"was not created for Pod {self.pod} (Pod is not owner)"
                return f"ResourceClaim {self.claim} {suffix}"


def claim_keys(pod: Pod) -> list[Key]:
    """Return the claims that a pod references, as far as their names are known."""
    names = dict.fromkeys(entry.name for entry in claim_references(pod, extended=False))
    return [Key(pod.metadata.namespace, name) for name in names if name]


def resolve(pod: Pod, get: GetClaim) -> list[ResourceClaim] | ClaimsNotReady:
    """Return the claims of a pod in its order, or why they are not all there."""
    claims: dict[Key, ResourceClaim] = {}
    for entry in claim_references(pod, extended=False):
        if entry.missing:
            key = Key(pod.metadata.namespace, entry.entry)
            return ClaimsNotReady(pod.label, key, ClaimState.NOT_CREATED)
        if not entry.name:
            continue
        key = Key(pod.metadata.namespace, entry.name)
        claim = get(key)
        state = _state(pod, claim, generated=entry.generated)
        if claim is None or state is not None:
            return ClaimsNotReady(pod.label, key, state or ClaimState.NOT_FOUND)
        claims[key] = claim
    return list(claims.values())


def _state(pod: Pod, claim: ResourceClaim | None, *, generated: bool) -> ClaimState | None:
    if claim is None:
        return ClaimState.NOT_FOUND
    if claim.metadata.deletion_timestamp is not None:
        return ClaimState.DELETING
    if generated and not is_for_pod(claim, uid=pod.metadata.uid):
        return ClaimState.NOT_OWNED
    return None


def unallocated(claims: Iterable[ResourceClaim]) -> list[ResourceClaim]:
    """Return the claims that need devices."""
    return [claim for claim in claims if claim.status.allocation is None]
