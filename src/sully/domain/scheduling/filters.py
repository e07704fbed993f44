"""Which nodes fit a pod, apart from devices, and which fields of a pod are not supported.

The first constraint that is not met is the reason, in the order of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from sully.domain.allocation import nodes
from sully.domain.scheduling.objects import Affinity, Node, NodeTaint, Pod, Toleration
from sully.domain.scheduling.resources import Amounts, NodeResources, may_be_backed, shortages
from sully.domain.tolerations import tolerates

UNSCHEDULABLE: Final = "node(s) were unschedulable"
UNTOLERATED: Final = "node(s) had untolerated taint(s)"
NOT_CHOSEN: Final = "node(s) didn't match Pod's node affinity/selector"
CORDONED: Final = NodeTaint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_BLOCKING: Final = frozenset(("NoSchedule", "NoExecute"))
_PLACED_VOLUMES: Final = (
    "persistentVolumeClaim",
    "ephemeral",
    # These four can be mounted by one node or pod at a time.
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "iscsi",
    "rbd",
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Rejection(msgspec.Struct, frozen=True):
    """Why a node does not fit a pod."""

    reasons: tuple[str, ...]
    preemptible: bool = False
    """The node would fit if other pods were deleted."""
    helped_by_classes: bool = False
    """The node would fit if a device class provided what it lacks."""


@dataclass(slots=True)
class NodeInfo:
    """A node, and the resources that its pods leave."""

    node: Node
    target: nodes.Node
    """The node as the device allocator sees it."""
    resources: NodeResources

    @property
    def name(self) -> str:
        """Return the name of the node."""
        return self.target.name


def rejects(
    info: NodeInfo, pod: Pod, requests: Amounts, backed: Container[str] = ()
) -> Rejection | None:
    """Return why a node does not fit a pod, apart from devices; None if it does.

    `backed` are resources that devices may provide where the node has none.
    """
    if is_cordoned(info.node, pod):
        return Rejection((UNSCHEDULABLE,))
    if info.node.spec.taints and any(untolerated(info.node, pod)):
        return Rejection((UNTOLERATED,))
    if not chooses(pod, info.target):
        return Rejection((NOT_CHOSEN,))
    lacking = shortages(requests, info.resources, backed)
    if lacking:
        return Rejection(
            tuple(shortage.text for shortage in lacking),
            preemptible=all(shortage.could_fit for shortage in lacking),
            helped_by_classes=any(may_be_backed(shortage.resource) for shortage in lacking),
        )
    return None


def is_cordoned(node: Node, pod: Pod) -> bool:
    """Report whether a node is cordoned, and the pod does not tolerate that."""
    return node.spec.unschedulable and not _tolerated(CORDONED, pod.spec.tolerations)


def untolerated(node: Node, pod: Pod) -> Iterator[NodeTaint]:
    """Yield the taints of a node that prevent scheduling of a pod."""
    for taint in node.spec.taints:
        if taint.effect in _BLOCKING and not _tolerated(taint, pod.spec.tolerations):
            yield taint


def chooses(pod: Pod, node: nodes.Node) -> bool:
    """Report whether a pod's own selector and affinity allow a node."""
    required_labels = pod.spec.node_selector
    if any(node.labels.get(key) != value for key, value in required_labels.items()):
        return False
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return True
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return required is None or nodes.selects_node(required, node)


def _tolerated(taint: NodeTaint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def not_evaluated(pod: Pod) -> str:
    """Return the first field of a pod that constrains its node and that we do not evaluate."""
    return next(_not_evaluated(pod), "")


def _not_evaluated(pod: Pod) -> Iterator[str]:
    if pod.spec.affinity is not None:
        yield from _pod_affinity(pod.spec.affinity)
    for index, spread in enumerate(pod.spec.topology_spread_constraints):
        if spread.when_unsatisfiable != "ScheduleAnyway":
            yield f"spec.topologySpreadConstraints[{index}]"
    if pod.spec.scheduling_group is not None:
        yield "spec.schedulingGroup"
    for index, volume in enumerate(pod.spec.volumes):
        # Nearly every pod has a volume, and of a kind that can be mounted anywhere.
        for kind in () if volume.keys().isdisjoint(_PLACED_VOLUMES) else _PLACED_VOLUMES:
            if volume.get(kind) is not None:
                yield f"spec.volumes[{index}].{kind}"
    yield from _host_ports("containers", pod.spec.containers)
    if pod.spec.init_containers:
        yield from _host_ports("initContainers", pod.spec.init_containers)


def _pod_affinity(affinity: Affinity) -> Iterator[str]:
    for name, terms in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        if terms is not None and terms.required_during_scheduling_ignored_during_execution:
            yield f"spec.affinity.{name}.{_REQUIRED}"


def _host_ports(name: str, containers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                yield f"spec.{name}[{index}].ports[{number}].hostPort"
