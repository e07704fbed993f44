"""Renders why a pod is unschedulable, for conditions and events.

Where Kubernetes has the same cause, its text is the same byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sully.domain.allocation.failures import (
    AllocationFailure,
    ConstraintUnmet,
    DerivedFailure,
    EmptyConstraint,
    EmptySelector,
    ExpressionFailed,
    PoolNotUsable,
    SelectorFailure,
    TimedOut,
    TooManyDevices,
    Unresolved,
    UnsupportedMode,
)
from sully.domain.allocation.verdicts import UnallocatableReason
from sully.domain.scheduling.causes import (
    BindingRejected,
    Cause,
    ClaimInProgress,
    ClaimTainted,
    FilterFailed,
    LeftoverClaim,
    NodesRejected,
    NoNodes,
    NotReadable,
    PodRejected,
    PreBindFailed,
    PreFilterReason,
    Unknown,
    UnsupportedField,
)
from sully.domain.scheduling.filters import (
    FilterReason,
    InsufficientResource,
    NodeReason,
)
from sully.domain.scheduling.volumes.topology import Provisioning, VolumeProblem, VolumeState

_FILTER_REASONS: Final[Mapping[NodeReason | UnallocatableReason, str]] = {
    NodeReason.UNSCHEDULABLE: "node(s) were unschedulable",
    NodeReason.UNTOLERATED_TAINT: "node(s) had untolerated taint(s)",
    NodeReason.NODE_AFFINITY: "node(s) didn't match Pod's node affinity/selector",
    NodeReason.TOO_MANY_PODS: "Too many pods",
    NodeReason.PORTS_IN_USE: "node(s) didn't have free ports for the requested pod ports",
    NodeReason.DISK_IN_USE: "node(s) had no available disk",
    NodeReason.ONE_POD_IN_USE: (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod"
    ),
    NodeReason.VOLUME_NOT_USABLE: "node(s) didn't match PersistentVolume's node affinity",
    NodeReason.NO_VOLUME_TO_BIND: "node(s) didn't find available persistent volumes to bind",
    NodeReason.VOLUME_ZONE: "node(s) had no available volume zone",
    NodeReason.TOPOLOGY_SPREAD: "node(s) didn't match pod topology spread constraints",
    NodeReason.TOPOLOGY_LABEL: (
        "node(s) didn't match pod topology spread constraints (missing required label)"
    ),
    NodeReason.POD_AFFINITY: "node(s) didn't match pod affinity rules",
    NodeReason.POD_ANTI_AFFINITY: "node(s) didn't match pod anti-affinity rules",
    NodeReason.EXISTING_ANTI_AFFINITY: "node(s) didn't satisfy existing pods anti-affinity rules",
    UnallocatableReason.CANNOT_ALLOCATE: "cannot allocate all claims",
    UnallocatableReason.INVALID_POOLS: "invalid resource pools were encountered",
    UnallocatableReason.NOT_ON_NODE: "resourceclaim not available on the node",
}
_MISSING_KEY: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check"
    " with has() for optional fields"
)
_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
_NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_NEVER: Final = "preemption: not eligible due to preemptionPolicy=Never."


def message(cause: Cause) -> str:
    """Return the message of the condition PodScheduled and of the event FailedScheduling."""
    text = short_message(cause)
    match cause:
        case NodesRejected():
            about = _preemption(cause.nodes, cause.preemptible, never=cause.never_preempts)
        case PodRejected(reason=VolumeProblem()):
            return text
        case PodRejected(nodes=nodes, never_preempts=never):
            about = _preemption(nodes, 0, never=never)
        case LeftoverClaim(nodes, never):
            about = _preemption(nodes, 0, never=never)
        case _:
            return text
    return f"{text} {about}" if text.endswith(".") else f"{text}, {about}"


def short_message(cause: Cause) -> str:
    """Return the message without what kube-scheduler adds about preemption."""
    match cause:
        case NoNodes():
            return "no nodes available to schedule pods"
        case NodesRejected(nodes=nodes, reasons=reasons):
            done = " deallocation of ResourceClaim completed" if cause.deallocates else ""
            counts = {filter_reason(reason): count for reason, count in reasons.items()}
            return f"{_head(nodes)}{_histogram(counts)}{done}"
        case PodRejected(nodes, VolumeProblem() as reason):
            # kube-scheduler looks for devices after that, and finds no state of an attempt.
            return f"{_head(nodes)}{pre_filter_reason(reason)}. not found"
        case PodRejected(nodes, reason):
            return f"{_head(nodes)}{pre_filter_reason(reason)}."
        case LeftoverClaim(nodes):
            rejected = _histogram({"cannot schedule extended resource claim": nodes})
            return f"{_head(nodes)}{rejected} deletion of ResourceClaim completed"
        case FilterFailed(failure):
            return f'running "DynamicResources" filter plugin: {allocation_failure(failure)}'
        case PreBindFailed(error):
            return f'running PreBind plugin "DynamicResources": {error}'
        case BindingRejected(error):
            return f"binding rejected: {error}"


def filter_reason(reason: FilterReason) -> str:
    """Return the text of a reason for which a node was rejected."""
    if isinstance(reason, InsufficientResource):
        return f"Insufficient {reason.resource}"
    return _FILTER_REASONS[reason]


def pre_filter_reason(reason: PreFilterReason) -> str:
    """Return the text of a reason for which no node was evaluated."""
    match reason:
        case UnsupportedField(field):
            return f"this scheduler does not evaluate {field}"
        case ClaimInProgress(claim):
            return f"resource claim {claim} is in the process of being allocated"
        case ClaimTainted(claim):
            return f"resourceclaim {claim} holds a device with an untolerated NoExecute taint"
        case Unresolved(request, device_class):
            return f"request {request}: device class {device_class} does not exist"
        case VolumeProblem():
            return _volume_problem(reason)


def allocation_failure(failure: AllocationFailure) -> str:
    """Return the text of what an attempt to allocate fails on."""
    match failure:
        case Unresolved():
            return pre_filter_reason(failure)
        case UnsupportedMode() | EmptySelector() | EmptyConstraint():
            return _unsupported(failure)
        case TooManyDevices(claim, devices, limit):
            return (
                f"claim {claim}: number of requested devices {devices}"
                f" exceeds the claim limit of {limit}"
            )
        case PoolNotUsable(claim, request, pool, is_incomplete):
            state = "being updated" if is_incomplete else "invalid"
            return (
                f"claim {claim}, request {request}: asks for all devices,"
                f" but resource pool {pool} is currently {state}"
            )
        case ConstraintUnmet(claim, request, device):
            return (
                f"claim {claim}, request {request}: cannot add device {device}"
                " because a claim constraint would not be satisfied"
            )
        case ExpressionFailed():
            return _expression_failed(failure)
        case TimedOut(node, units):
            over = f": evaluating the selectors exceeds the budget of {units} cost units"
            return (
                f"node {node}: timed out trying to allocate devices"
                f"{over if units is not None else ''}"
            )


def _unsupported(failure: UnsupportedMode | EmptySelector | EmptyConstraint) -> str:
    match failure:
        case UnsupportedMode(claim, request, mode):
            return f"claim {claim}, request {request}: unsupported count mode {mode}"
        case EmptySelector(claim, request, index):
            what = "CEL expression empty (unsupported selector type?)"
            return f"claim {claim}, request {request}: selector #{index}: {what}"
        case EmptyConstraint(claim, index):
            what = "empty constraint (unsupported constraint type?)"
            return f"claim {claim}, constraint #{index}: {what}"


def _expression_failed(failed: ExpressionFailed) -> str:
    failure = failed.failure
    match failure:
        case SelectorFailure(device_class=None, index=index):
            what = f"claim {failed.claim}: selector #{index}"
        case SelectorFailure(device_class, index):
            what = f"class {device_class}: selector #{index}"
        case DerivedFailure(attribute):
            what = f"claim {failed.claim}: derived attribute {attribute}"
    if failure.phase == "compile":
        return f"{what}: CEL compile error: {failure.error}"
    advice = _MISSING_KEY if failure.reads_missing_key else ""
    return f"{what} on device {failure.device}: CEL runtime error: {failure.error}{advice}"


def _volume_problem(problem: VolumeProblem) -> str:
    name, other = problem.name, problem.other
    match problem.state:
        case VolumeState.CLAIM_NOT_FOUND:
            return f'persistentvolumeclaim "{name}" not found'
        case VolumeState.NOT_CREATED:
            return (
                "waiting for ephemeral volume controller to create the persistentvolumeclaim"
                f' "{name}"'
            )
        case VolumeState.LOST:
            return (
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{other}"'
            )
        case VolumeState.DELETING:
            return f'persistentvolumeclaim "{name}" is being deleted'
        case VolumeState.NOT_OWNED:
            return f"PVC {name} was not created for pod {other} (pod is not owner)"
        case VolumeState.UNBOUND:
            return "pod has unbound immediate PersistentVolumeClaims"
        case VolumeState.VOLUME_NOT_FOUND:
            return f'persistentvolume "{name}" not found'


def unknown(what: Unknown) -> str:
    """Return what cannot be evaluated here, for people."""
    match what:
        case Provisioning(claim, provisioner):
            by = f" by {provisioner}" if provisioner else ""
            return f'a volume for persistentvolumeclaim "{claim}" has to be provisioned{by}'
        case NotReadable(plural):
            return f"{plural} could not be read"
        case UnsupportedField(field):
            return f"{field} is not evaluated"


def _preemption(nodes: int, preemptible: int, *, never: bool) -> str:
    if never:
        return _NEVER
    counts = {_NO_VICTIMS: preemptible, _NOT_HELPFUL: nodes - preemptible}
    return f"preemption: {_head(nodes)}{_histogram(counts)}"


def _head(nodes: int) -> str:
    return f"0/{nodes} nodes are available: "


def _histogram(counts: Mapping[str, int]) -> str:
    listed = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    return f"{', '.join(listed)}."
