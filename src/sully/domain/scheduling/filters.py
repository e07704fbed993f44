"""Which nodes fit a pod, apart from devices.

The first constraint that is not met is the reason, in the order of Kubernetes. Constraints that few
pods have are evaluated by the filters in `PodConstraints`, which scheduler/constraints.py builds.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from enum import StrEnum, auto
from typing import Final

import msgspec

from sully.domain.allocation.pools import nodes
from sully.domain.allocation.verdicts import UnallocatableReason
from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.objects import Node, NodeTaint, Pod, Toleration
from sully.domain.scheduling.resources import Amounts, NodeResources, may_be_backed, shortages
from sully.domain.tolerations import tolerates

CORDONED: Final = NodeTaint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_BLOCKING: Final = frozenset(("NoSchedule", "NoExecute"))
_LIFECYCLE: Final = "node.kubernetes.io/"
"""The prefix of taints that Kubernetes itself sets, for example on nodes that are not ready."""


class NodeReason(StrEnum):
    """Why a node does not fit a pod; Kubernetes has an `ErrReason` for each.

    Strings, because their hash is computed only once, and reasons are counted over all nodes.
    """

    UNSCHEDULABLE = auto()
    UNTOLERATED_TAINT = auto()
    NODE_AFFINITY = auto()
    TOO_MANY_PODS = auto()
    PORTS_IN_USE = auto()
    DISK_IN_USE = auto()
    ONE_POD_IN_USE = auto()
    """Another pod uses a volume that is for one pod only."""
    VOLUME_NOT_USABLE = auto()
    NO_VOLUME_TO_BIND = auto()
    VOLUME_ZONE = auto()
    TOPOLOGY_SPREAD = auto()
    TOPOLOGY_LABEL = auto()
    """The node lacks the label of a topology spread constraint."""
    POD_AFFINITY = auto()
    POD_ANTI_AFFINITY = auto()
    EXISTING_ANTI_AFFINITY = auto()
    """The anti-affinity of a pod on a node is about the pod."""


class InsufficientResource(msgspec.Struct, frozen=True):
    """A node has too little of a resource."""

    resource: str


FilterReason = NodeReason | InsufficientResource | UnallocatableReason
"""Why a node was rejected; messages.py has the text of Kubernetes for each."""


class Rejection(msgspec.Struct, frozen=True):
    """Why a node does not fit a pod."""

    reasons: tuple[FilterReason, ...]
    preemptible: bool = False
    """The node would fit if other pods were deleted."""
    helped_by_classes: bool = False
    """The node would fit if a device class provided what it lacks."""
    retry_on: ClusterEvent = ClusterEvent.NONE
    """Further events after which the node may fit."""


_UNSCHEDULABLE: Final = Rejection((NodeReason.UNSCHEDULABLE,))
_UNTOLERATED: Final = Rejection((NodeReason.UNTOLERATED_TAINT,))
_NOT_SELECTED: Final = Rejection((NodeReason.NODE_AFFINITY,))


class NodeInfo(msgspec.Struct):
    """A node, and the resources that its pods do not use."""

    node: Node
    target: nodes.AllocatorNode
    """The node as the device allocator sees it."""
    resources: NodeResources

    @property
    def name(self) -> str:
        """Return the name of the node."""
        return self.target.name


NodeFilter = Callable[[NodeInfo], Rejection | None]
"""Returns why a node does not fit one pod; None if it does."""


class PodConstraints(msgspec.Struct, frozen=True):
    """Filters for one pod, in one state of the cluster."""

    before_resources: tuple[NodeFilter, ...] = ()
    after_resources: tuple[NodeFilter, ...] = ()


def run_filters(
    info: NodeInfo,
    pod: Pod,
    requests: Amounts,
    backed: Container[str] = (),
    constraints: PodConstraints | None = None,
) -> Rejection | None:
    """Return why a node does not fit a pod, apart from devices; None if it does.

    `backed` are resources that devices may provide where the node has none.
    """
    # Evaluated for every node that a pod is tried on, so it calls little for most of them.
    spec = info.node.spec
    if spec.unschedulable and is_cordoned(info.node, pod):
        return _UNSCHEDULABLE
    if spec.taints and any(untolerated_taints(info.node, pod)):
        return _UNTOLERATED
    selects = pod.spec.node_selector or pod.spec.affinity is not None
    if selects and not matches_node_affinity(pod, info.target):
        return _NOT_SELECTED
    if constraints is not None and constraints.before_resources:
        rejection = _first(constraints.before_resources, info)
        if rejection is not None:
            return rejection
    lacking = shortages(requests, info.resources, backed)
    if lacking:
        return Rejection(
            tuple(
                InsufficientResource(shortage.resource)
                if shortage.resource
                else NodeReason.TOO_MANY_PODS
                for shortage in lacking
            ),
            preemptible=all(shortage.could_fit for shortage in lacking),
            helped_by_classes=any(may_be_backed(shortage.resource) for shortage in lacking),
        )
    return _first(constraints.after_resources, info) if constraints is not None else None


def _first(filters: Iterable[NodeFilter], info: NodeInfo) -> Rejection | None:
    return next(
        (rejection for evaluate in filters if (rejection := evaluate(info)) is not None), None
    )


def is_cordoned(node: Node, pod: Pod) -> bool:
    """Report whether a node is cordoned, and the pod does not tolerate that."""
    return node.spec.unschedulable and not _tolerated(CORDONED, pod.spec.tolerations)


def untolerated_taints(node: Node, pod: Pod) -> Iterator[NodeTaint]:
    """Yield the taints of a node that prevent scheduling of a pod."""
    for taint in node.spec.taints:
        if taint.effect in _BLOCKING and not _tolerated(taint, pod.spec.tolerations):
            yield taint


def lifecycle_taint(node: Node) -> NodeTaint | None:
    """Return the taint by which Kubernetes prevents scheduling on a node, for any pod.

    Taints of others do not count: they reserve a node for pods that tolerate them.
    """
    return next(
        (x for x in node.spec.taints if x.effect in _BLOCKING and x.key.startswith(_LIFECYCLE)),
        None,
    )


def matches_node_affinity(pod: Pod, node: nodes.AllocatorNode) -> bool:
    """Report whether a pod's own selector and affinity allow a node."""
    required_labels = pod.spec.node_selector
    if required_labels and any(
        node.labels.get(key) != value for key, value in required_labels.items()
    ):
        return False
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return True
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return required is None or nodes.selects_node(required, node)


def named_nodes(pod: Pod) -> frozenset[str] | None:
    """Return the nodes that a pod's affinity names, as that of a DaemonSet's pod; None for all.

    Other nodes do not count for such a pod, whatever labels they get.
    """
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return nodes.named_nodes(required) if required is not None else None


def _tolerated(taint: NodeTaint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)
