"""What the core decides about a pod, for the caller to execute."""

from __future__ import annotations

import msgspec

from sully.api.resource.types import AllocationResult, ResourceClaim
from sully.client.transport import Key
from sully.domain.devices.device import EffectiveDevice
from sully.domain.scheduling.causes import Unknown
from sully.domain.scheduling.extended import Mapped
from sully.domain.scheduling.objects import Pod
from sully.machinery.cel import UnfinishedError
from sully.scheduler.claim_resolution import ClaimsNotReady
from sully.scheduler.schedule_algorithm import Unschedulable


class Attempt(msgspec.Struct, frozen=True):
    """When an attempt began, since when its pod was queued, and how many attempts it had."""

    began: float = 0.0
    queued: float = 0.0
    attempts: int = 1


class ClaimReservation(msgspec.Struct, frozen=True):
    """A claim to reserve for a pod."""

    claim: ResourceClaim
    allocation: AllocationResult | None = None
    """None if it is already allocated."""
    devices: tuple[EffectiveDevice, ...] = ()
    """The devices behind a new allocation."""


class ExtendedResourceClaim(msgspec.Struct, frozen=True):
    """The claim to create for the extended resources of a pod."""

    claim: ResourceClaim
    """With its name; its uid is a placeholder."""
    mappings: tuple[Mapped, ...]
    allocation: AllocationResult
    devices: tuple[EffectiveDevice, ...] = ()


class Bind(msgspec.Struct, frozen=True, eq=False):
    """Reserve the claims of a pod and bind it to a node.

    Node and devices are assumed until the caller reports what became of it: `finish_binding`, or
    `forget` and then `requeue`.
    """

    key: Key
    pod: Pod
    node: str
    claims: tuple[ClaimReservation, ...] = ()
    extended: ExtendedResourceClaim | None = None
    attempt: Attempt = Attempt()
    candidates: tuple[str, ...] = ()
    """All nodes that fit, if all were evaluated."""
    evicting: tuple[str, ...] = ()
    """Those of them where taints of the devices would evict the pod."""
    unknown: tuple[Unknown, ...] = ()
    """What else decides about the pod, and was not evaluated."""


class MarkUnschedulable(msgspec.Struct, frozen=True, eq=False):
    """Report that no node fits; the pod waits for an event that may change that."""

    key: Key
    pod: Pod
    result: Unschedulable
    attempt: Attempt
    leftover: ResourceClaim | None = None
    """A claim for extended resources to delete, from an earlier attempt."""


class WaitForClaims(msgspec.Struct, frozen=True, eq=False):
    """Nothing to report: the claims are usually about to be created, which activates the pod."""

    key: Key
    pod: Pod
    problem: ClaimsNotReady


class WaitForEvaluation(msgspec.Struct, frozen=True, eq=False):
    """Evaluate selectors that take long, then call `evaluated`."""

    key: Key
    pod: Pod
    unfinished: UnfinishedError
    attempt: Attempt


class CreateDeferred(msgspec.Struct, frozen=True, eq=False):
    """Create a pod that was deferred: the pod that represented it is no longer unschedulable."""

    key: Key


Effect = Bind | MarkUnschedulable | WaitForClaims | WaitForEvaluation | CreateDeferred
