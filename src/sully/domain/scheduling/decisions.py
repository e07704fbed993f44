"""Selects a node for a pod, or returns why no node fits.

Nodes come with the least loaded first, so the first that fits is the best unless devices differ in
how well they suit. An error names the cluster events after which another attempt may succeed, like
the queueing hints of kube-scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import Final, Protocol

import msgspec

from sully.domain.allocation.verdicts import Allocated, Failed, Unallocatable
from sully.domain.scheduling.causes import (
    FAILURES,
    Cause,
    FilterFailed,
    LeftoverClaim,
    NodesRejected,
    NoNodes,
    PodRejected,
    PreFilterReason,
)
from sully.domain.scheduling.cluster_events import ANY_EVENT, ClusterEvent
from sully.domain.scheduling.filters import NodeInfo, PodConstraints, Rejection, run_filters
from sully.domain.scheduling.messages import message, short_message
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import Amounts

UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "SchedulerError"


class FitError(msgspec.Struct, frozen=True):
    """No node fits a pod."""

    cause: Cause | None
    """None if the caller did not ask for it."""
    retry_on: ClusterEvent = ClusterEvent.NONE
    over_budget: bool = False
    """The attempt ended because it was too expensive."""

    @property
    def reason(self) -> str:
        """Return the reason of the condition PodScheduled."""
        return ERROR if isinstance(self.cause, FAILURES) else UNSCHEDULABLE

    @property
    def message(self) -> str:
        """Return the message of the condition PodScheduled."""
        return message(self.cause) if self.cause is not None else ""

    @property
    def short_message(self) -> str:
        """Return the message without the result of preemption."""
        return short_message(self.cause) if self.cause is not None else ""


class Fit(msgspec.Struct, frozen=True):
    """A node for a pod, and the devices that it gets there."""

    node: str
    allocated: Allocated
    candidates: tuple[str, ...] = ()
    """All nodes that fit, if all were evaluated; kube-scheduler may select another of them."""


NO_DEVICES = Allocated((), ())


class Devices(Protocol):
    """Selects devices for one pod, node by node."""

    @property
    def backed(self) -> Container[str]:
        """Return the resources that devices may provide where a node has none of its own."""

    def settles(self, allocated: Allocated) -> bool:
        """Report whether no other node can serve the pod better."""

    def on(self, node: NodeInfo) -> Allocated | Unallocatable | Failed:
        """Select devices on a node."""

    def penalty(self, allocated: Allocated) -> int:
        """Count what makes devices a worse choice without excluding them."""

    def deallocate(self) -> bool:
        """Select a claim to deallocate so that another attempt may succeed, if there is one."""


def decide(
    pod: Pod,
    requests: Amounts,
    nodes: Iterable[NodeInfo],
    devices: Devices,
    unfit: set[str] | None = None,
    constraints: PodConstraints | None = None,
) -> Fit | FitError:
    """Select a node for a pod; nodes that rejected it are added to `unfit`."""
    unfit = set() if unfit is None else unfit
    rejections: list[Rejection] = []
    retry_on, no_devices = ClusterEvent.NODE_UPDATE, False
    best: tuple[tuple[int, int], Fit] | None = None
    fitting: list[str] = []
    for node in nodes:
        rejection = run_filters(node, pod, requests, devices.backed, constraints)
        if rejection is not None:
            retry_on |= _retry_on(rejection)
            rejections.append(rejection)
            unfit.add(node.name)
            continue
        match devices.on(node):
            case Allocated() as allocated:
                fit = Fit(node.name, allocated)
                if devices.settles(allocated):
                    return fit
                fitting.append(node.name)
                rank = (devices.penalty(allocated), -allocated.preference)
                best = (rank, fit) if best is None or rank < best[0] else best
            case Unallocatable(reason):
                no_devices = True
                rejections.append(Rejection((reason,)))
                unfit.add(node.name)
            case Failed(failure) as failed:
                return FitError(FilterFailed(failure), ANY_EVENT, failed.over_budget)
    if best is not None:
        return msgspec.structs.replace(best[1], candidates=tuple(fitting))
    if no_devices:
        retry_on |= ClusterEvent.DEVICE_RELEASE | ClusterEvent.DEVICE_CLASS_UPDATE
    return _nodes_rejected(pod, rejections, devices, retry_on)


def _retry_on(rejection: Rejection) -> ClusterEvent:
    retry_on = rejection.retry_on
    if rejection.preemptible:
        retry_on |= ClusterEvent.ASSIGNED_POD_DELETE
    if rejection.helped_by_classes:
        retry_on |= ClusterEvent.DEVICE_CLASS_UPDATE
    return retry_on


def _nodes_rejected(
    pod: Pod, rejections: list[Rejection], devices: Devices, retry_on: ClusterEvent
) -> FitError:
    if not rejections:
        return FitError(NoNodes(), retry_on)
    cause = NodesRejected(
        nodes=len(rejections),
        reasons=Counter(reason for rejection in rejections for reason in rejection.reasons),
        preemptible=sum(rejection.preemptible for rejection in rejections),
        never_preempts=_never_preempts(pod),
        deallocates=devices.deallocate(),
    )
    return FitError(cause, retry_on)


def leftover_claim(pod: Pod, nodes: int) -> FitError:
    """Reject a pod whose claim for extended resources is left over from an earlier attempt."""
    if not nodes:
        return FitError(NoNodes(), ClusterEvent.NODE_UPDATE)
    return FitError(LeftoverClaim(nodes, _never_preempts(pod)))


def reject_pod(pod: Pod, reason: PreFilterReason, nodes: int, retry_on: ClusterEvent) -> FitError:
    """Reject a pod for a reason that has nothing to do with nodes."""
    if not nodes:
        return FitError(NoNodes(), retry_on | ClusterEvent.NODE_UPDATE)
    return FitError(PodRejected(nodes, reason, _never_preempts(pod)), retry_on)


def _never_preempts(pod: Pod) -> bool:
    return pod.spec.preemption_policy == "Never"
