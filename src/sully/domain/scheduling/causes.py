"""Why a pod is unschedulable: values that carry what a message needs, and no message.

Conditions, events, plans and `sully explain` print the same cause; `messages.py` renders it as
Kubernetes words it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sully.domain.allocation.failures import AllocationFailure, Unresolved
from sully.domain.scheduling.filters import FilterReason
from sully.domain.scheduling.volumes.topology import Provisioning, VolumeProblem


class NoNodes(msgspec.Struct, frozen=True):
    """The cluster has no nodes."""


class NodesRejected(msgspec.Struct, frozen=True):
    """Every node rejected the pod."""

    nodes: int
    reasons: Mapping[FilterReason, int]
    """How many nodes gave each reason."""
    preemptible: int = 0
    """Nodes that would fit the pod if other pods were deleted. Sully never preempts."""
    never_preempts: bool = False
    deallocates: bool = False
    """A claim that no node of the pod can use loses its devices."""


class UnsupportedField(msgspec.Struct, frozen=True):
    """The pod sets a field that this scheduler does not evaluate."""

    field: str


class ClaimInProgress(msgspec.Struct, frozen=True):
    """A claim of the pod is being allocated for another pod."""

    claim: str


class ClaimTainted(msgspec.Struct, frozen=True):
    """A claim of the pod holds a device from which the pod would be evicted immediately."""

    claim: str


PreFilterReason = UnsupportedField | ClaimInProgress | ClaimTainted | Unresolved | VolumeProblem


class NotReadable(msgspec.Struct, frozen=True):
    """Objects that decide as well, and that could not be listed."""

    plural: str


Unknown = Provisioning | NotReadable | UnsupportedField
"""What decides about a pod as well, and cannot be evaluated here."""


class PodRejected(msgspec.Struct, frozen=True):
    """The pod itself is the reason, so no node was evaluated."""

    nodes: int
    reason: PreFilterReason
    never_preempts: bool = False


class LeftoverClaim(msgspec.Struct, frozen=True):
    """A claim for extended resources is left over from an earlier attempt and gets deleted."""

    nodes: int
    never_preempts: bool = False


class FilterFailed(msgspec.Struct, frozen=True):
    """A request, a class or a pool is invalid; the attempt ends for all nodes."""

    failure: AllocationFailure


class PreBindFailed(msgspec.Struct, frozen=True):
    """The claims of the pod could not be written, or their devices did not become ready."""

    error: str


class BindingRejected(msgspec.Struct, frozen=True):
    """The API server rejected the binding."""

    error: str


FAILURES = (FilterFailed, PreBindFailed, BindingRejected)
"""Causes that Kubernetes reports as SchedulerError."""
Cause = (
    NoNodes
    | NodesRejected
    | PodRejected
    | LeftoverClaim
    | FilterFailed
    | PreBindFailed
    | BindingRejected
)
