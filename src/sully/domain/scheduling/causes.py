"""Why a pod is unschedulable: values that carry what a message needs, and no message.

Conditions, events, plans and `sully explain` print the same cause; `messages.py` renders it as
Kubernetes words it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sully.domain.allocation.verdicts import FailureCause, Unresolved
from sully.domain.scheduling.volumes import Provisioning, VolumeProblem


@dataclass(frozen=True, slots=True)
class NoNodes:
    """The cluster has no nodes."""


@dataclass(frozen=True, slots=True)
class NodesRejected:
    """Every node rejected the pod."""

    nodes: int
    reasons: Mapping[str, int]
    """How many nodes gave each reason."""
    preemptible: int = 0
    """Nodes that would fit the pod if other pods were deleted. Sully never preempts."""
    never_preempts: bool = False
    deallocates: bool = False
    """A claim that no node of the pod can use loses its devices."""


@dataclass(frozen=True, slots=True)
class UnsupportedField:
    """The pod sets a field that this scheduler does not evaluate."""

    field: str


@dataclass(frozen=True, slots=True)
class ClaimInProgress:
    """A claim of the pod is being allocated for another pod."""

    claim: str


@dataclass(frozen=True, slots=True)
class ClaimTainted:
    """A claim of the pod holds a device from which the pod would be evicted immediately."""

    claim: str


PreFilterReason = UnsupportedField | ClaimInProgress | ClaimTainted | Unresolved | VolumeProblem


@dataclass(frozen=True, slots=True)
class NotReadable:
    """Objects that decide as well, and that could not be listed."""

    plural: str


Unknown = Provisioning | NotReadable | UnsupportedField
"""What decides about a pod as well, and cannot be evaluated here."""


@dataclass(frozen=True, slots=True)
class PodRejected:
    """The pod itself is the reason, so no node was evaluated."""

    nodes: int
    reason: PreFilterReason
    never_preempts: bool = False


@dataclass(frozen=True, slots=True)
class LeftoverClaim:
    """A claim for extended resources is left over from an earlier attempt and gets deleted."""

    nodes: int
    never_preempts: bool = False


@dataclass(frozen=True, slots=True)
class FilterFailed:
    """A request, a class or a pool is invalid; the attempt ends for all nodes."""

    error: str
    failure: FailureCause | None = None
    """What the attempt failed on, if that is known."""


@dataclass(frozen=True, slots=True)
class PreBindFailed:
    """The claims of the pod could not be written, or their devices did not become ready."""

    error: str


@dataclass(frozen=True, slots=True)
class BindingRejected:
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
