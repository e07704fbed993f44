"""The kinds that simulated nodes read, as projections, and the names they go by."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from sully.client.informers.reflector import ObjectSelector
from sully.client.transport import Kind
from sully.controllers.kinds import Metadata
from sully.domain.simulated.fleet import SIMULATED
from sully.domain.simulated.pods import Pod
from sully.machinery.meta import Wire
from sully.views import kinds

T = TypeVar("T")

AGENT = "hollow-nodes"
"""Whose program it is; roles and owned fields go by it."""


class NodeMetadata(Metadata, frozen=True, kw_only=True):
    """Which node it is, and what was published of it."""

    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Node(Wire, frozen=True, kw_only=True):
    """A simulated node."""

    metadata: NodeMetadata = msgspec.field(default_factory=NodeMetadata)


NODES: Kind[Node] = Kind("", "v1", "nodes", "Node", Node, namespaced=False)
WHOLE_NODES: Kind[dict[str, Any]] = NODES.read_as(dict)
OURS = ObjectSelector(label_selector=f"{SIMULATED}=true")
"""Which nodes and slices are ours."""
PODS: Kind[Pod] = Kind("", "v1", "pods", "Pod", Pod)
BOUND = ObjectSelector(field_selector="spec.nodeName!=")
"""Pods that have a node; those that wait for one are the scheduler's business."""
LEASES: Kind[dict[str, Any]] = Kind("coordination.k8s.io", "v1", "leases", "Lease", dict)
WHOLE_SLICES: Kind[dict[str, Any]] = kinds.SLICES.read_as(dict)
CLASSES: Kind[dict[str, Any]] = kinds.CLASSES.read_as(dict)
