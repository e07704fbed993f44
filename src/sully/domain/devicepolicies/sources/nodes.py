"""Nodes as policies read them: labels, taints and conditions."""

from __future__ import annotations

from msgspec import field

from sully.domain.scheduling.objects import NodeMetadata, NodeTaint
from sully.machinery.meta import Wire


class PolicyNodeSpec(Wire, frozen=True, kw_only=True):
    """The taints of a node."""

    taints: tuple[NodeTaint, ...] = ()


class NodeCondition(Wire, frozen=True, kw_only=True):
    """A condition of a node; its heartbeat, which changes all the time, is left out."""

    type: str
    status: str
    reason: str = ""


class PolicyNodeStatus(Wire, frozen=True, kw_only=True):
    """The conditions of a node."""

    conditions: tuple[NodeCondition, ...] = field(default=())


class PolicyNode(Wire, frozen=True, kw_only=True):
    """A node with devices."""

    metadata: NodeMetadata = NodeMetadata()
    spec: PolicyNodeSpec = PolicyNodeSpec()
    status: PolicyNodeStatus = PolicyNodeStatus()

    @property
    def taints(self) -> tuple[NodeTaint, ...]:
        """Return its taints."""
        return self.spec.taints

    @property
    def conditions(self) -> tuple[NodeCondition, ...]:
        """Return its conditions."""
        return self.status.conditions
