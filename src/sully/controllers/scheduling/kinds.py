"""The kinds that the scheduler reads beside those of views, and the names it goes by."""

from __future__ import annotations

from sully.client.transport import Kind
from sully.domain.scheduling.objects import Node, Pod

PODS: Kind[Pod] = Kind("", "v1", "pods", "Pod", Pod)
NODES: Kind[Node] = Kind("", "v1", "nodes", "Node", Node, namespaced=False)
COMPONENT = "default-scheduler"
"""Who events say they are from."""
AGENT = "kube-scheduler"
"""Whose program it is; roles and owned fields go by it."""
