"""Pods and nodes as controllers see them: what decides where a pod runs, and how it fares.

All controllers of a process read pods as this type, so that they share one cache and one watch.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import field

from sully.api.resource.types import NodeSelector
from sully.domain.claims import pods
from sully.machinery.meta import Wire, find_condition

SCHEDULERS: Final = frozenset(("default-scheduler", "sully"))
"""The names under which pods ask for us."""


class Toleration(Wire, frozen=True, kw_only=True):
    """A taint of nodes that a pod does not mind."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeTaint(Wire, frozen=True, kw_only=True):
    """A mark that keeps pods off a node."""

    key: str
    value: str = ""
    effect: str = ""


class NodeAffinity(Wire, frozen=True, kw_only=True):
    """Nodes that a pod insists on; what it merely prefers is not looked at."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinity(Wire, frozen=True, kw_only=True):
    """Other pods that a pod wants near, or far."""

    required_during_scheduling_ignored_during_execution: tuple[Any, ...] = ()


class Affinity(Wire, frozen=True, kw_only=True):
    """What a pod wants around it."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpread(Wire, frozen=True, kw_only=True):
    """How pods should be spread."""

    when_unsatisfiable: str = ""


class PodSpec(pods.PodSpec, frozen=True, kw_only=True):
    """What decides where a pod runs."""

    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    preemption_policy: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpread, ...] = ()
    scheduling_gates: tuple[Any, ...] = ()
    containers: tuple[Any, ...] = ()
    init_containers: tuple[Any, ...] = ()
    resources: Any = None
    overhead: dict[str, str] = field(default_factory=dict)
    volumes: tuple[Any, ...] = ()
    termination_grace_period_seconds: int | None = None


class PodCondition(Wire, frozen=True, kw_only=True):
    """One aspect of a pod's state."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None


class RequestMapping(Wire, frozen=True, kw_only=True):
    """An extended resource of a container that devices provide."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedClaimStatus(pods.ExtendedClaimStatus, frozen=True, kw_only=True):
    """The claim that was made for extended resources, and what it is for."""

    request_mappings: tuple[RequestMapping, ...] | None = None


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """How often a container was restarted."""

    restart_count: int = 0


class PodStatus(pods.PodStatus, frozen=True, kw_only=True):
    """What became of a pod."""

    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class PodMetadata(pods.PodMetadata, frozen=True, kw_only=True):
    """Which pod it is, since when, and what selects it."""

    creation_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class Pod(pods.Pod, frozen=True, kw_only=True):
    """A pod that has a node, or wants one."""

    metadata: PodMetadata = PodMetadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def label(self) -> str:
        """Return its name as texts write it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def waits(self) -> bool:
        """Report whether it is for us to find a node."""
        return (
            not self.spec.node_name
            and self.asks_for()
            and self.metadata.deletion_timestamp is None
            and not self.finished
            and not self.spec.scheduling_gates
        )

    @property
    def gated(self) -> bool:
        """Report whether somebody holds it back until its gates are taken away."""
        return self.asks_for() and not self.is_terminating and bool(self.spec.scheduling_gates)

    def asks_for(self, schedulers: frozenset[str] = SCHEDULERS) -> bool:
        """Report whether one of these schedulers is to find a node for it."""
        return self.spec.scheduler_name in schedulers

    def asks_as(self, other: Pod) -> bool:
        """Report whether it asks for the same as another state of it."""
        return (
            self.spec == other.spec
            and self.status.resource_claim_statuses == other.status.resource_claim_statuses
        )

    def condition(self, type_: str) -> PodCondition | None:
        """Return one of its conditions, or None."""
        return find_condition(self.status.conditions, type_)

    @property
    def active(self) -> bool:
        """Report whether it counts as one of the pods that are wanted."""
        return not self.is_terminating and not self.finished

    @property
    def ready(self) -> bool:
        """Report whether it is ready."""
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"

    @property
    def ready_since(self) -> datetime | None:
        """Return since when it is ready, if it is and that is known."""
        condition = self.condition("Ready")
        return condition.last_transition_time if condition and condition.status == "True" else None

    def available_at(self, min_ready_seconds: int) -> datetime | None:
        """Return when it has been ready for long enough, or None if that is not known."""
        since = self.ready_since
        return None if since is None else since + timedelta(seconds=min_ready_seconds)

    def available(self, min_ready_seconds: int, now: datetime) -> bool:
        """Report whether it has been ready for long enough."""
        if min_ready_seconds == 0:
            return self.ready
        at = self.available_at(min_ready_seconds)
        return at is not None and at <= now


class NodeSpec(Wire, frozen=True, kw_only=True):
    """Whom a node wants."""

    unschedulable: bool = False
    taints: tuple[NodeTaint, ...] = ()


class NodeStatus(Wire, frozen=True, kw_only=True):
    """What a node has for pods."""

    allocatable: dict[str, str] = field(default_factory=dict)


class NodeMetadata(Wire, frozen=True, kw_only=True):
    """Which node it is."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)


class Node(Wire, frozen=True, kw_only=True):
    """A node that may take pods."""

    metadata: NodeMetadata = NodeMetadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    def may_take_more(self, before: Node) -> bool:
        """Report whether it may take a pod that it did not take in an earlier state."""
        return (
            self.metadata.labels != before.metadata.labels
            or self.status != before.status
            or self.spec.taints != before.spec.taints
            or (before.spec.unschedulable and not self.spec.unschedulable)
        )

    def offers_as(self, other: Node) -> bool:
        """Report whether it is the same to pods as another state of it."""
        return (self.metadata.labels, self.spec, self.status) == (
            other.metadata.labels,
            other.spec,
            other.status,
        )
