"""Pods and nodes as controllers see them: what decides where a pod runs, and its state.

Everything in a process that watches pods reads them as this type, also the kubelets of simulated
nodes, so that all share one cache and one watch.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec import field

from sully.api.resource.types import NodeSelector
from sully.domain.claims import pods
from sully.domain.workloads.revisions import HASH_LABEL
from sully.machinery.formats.timestamps import later
from sully.machinery.meta import (
    ObjectIdentity,
    OwnerReference,
    Wire,
    find_condition,
    is_condition_true,
)
from sully.machinery.serialization.wire import share

SCHEDULERS: Final = frozenset(("default-scheduler", "sully"))
"""The values of `schedulerName` whose pods are ours."""
_DEFAULT_GRACE_SECONDS: Final = 30
"""The default of `terminationGracePeriodSeconds`."""


class Toleration(Wire, frozen=True, kw_only=True):
    """A toleration of node taints."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeTaint(Wire, frozen=True, kw_only=True):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: str = ""


class NodeAffinity(Wire, frozen=True, kw_only=True):
    """Nodes that a pod requires; preferences are not evaluated."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Wire, frozen=True, kw_only=True):
    """Pods, and the topology in which they are near.

    The API server has merged `matchLabelKeys` and `mismatchLabelKeys` into the selector.
    """

    label_selector: dict[str, Any] | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: dict[str, Any] | None = None


class PodAffinity(Wire, frozen=True, kw_only=True):
    """Other pods near which a pod must, or must not, run; preferences are not evaluated."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()


class Affinity(Wire, frozen=True, kw_only=True):
    """The affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpread(Wire, frozen=True, kw_only=True):
    """How pods should be spread."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: dict[str, Any] | None = None
    min_domains: int | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""
    match_label_keys: tuple[str, ...] = ()


class ContainerPort(Wire, frozen=True, kw_only=True):
    """A port of a container, which may take a port of the node."""

    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class ContainerResources(Wire, frozen=True, kw_only=True):
    """The resources that a container requests."""

    requests: dict[str, str] = field(default_factory=dict)


class Container(Wire, frozen=True, kw_only=True):
    """What a container needs of its node."""

    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ContainerResources = ContainerResources()
    restart_policy: str = ""

    def __post_init__(self) -> None:
        """Share what the pods of one workload have in common."""
        share(self, "image")

    @property
    def is_sidecar(self) -> bool:
        """Report whether an init container keeps running."""
        return self.restart_policy == "Always"


class ReadinessGate(Wire, frozen=True, kw_only=True):
    """A condition that others set and that a pod needs to be ready."""

    condition_type: str


class EmptyDirVolumeSource(Wire, frozen=True, kw_only=True):
    """A directory that is deleted with the pod; how large it may be does not matter here."""


class Volume(Wire, frozen=True, kw_only=True):
    """A volume; one without any of these sources is usable on every node."""

    name: str = ""
    empty_dir: EmptyDirVolumeSource | None = None
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None

    @property
    def has_claim(self) -> bool:
        """Report whether a PersistentVolumeClaim is behind it."""
        return self.persistent_volume_claim is not None or self.ephemeral is not None

    @property
    def is_disk(self) -> bool:
        """Report whether it can be mounted by one node or pod at a time."""
        return (
            self.gce_persistent_disk is not None
            or self.aws_elastic_block_store is not None
            or self.iscsi is not None
            or self.rbd is not None
        )


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
    readiness_gates: tuple[ReadinessGate, ...] = ()
    restart_policy: str = "Always"
    host_network: bool = False
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: Any = None
    overhead: dict[str, str] = field(default_factory=dict)
    volumes: tuple[Volume, ...] = ()
    termination_grace_period_seconds: int | None = None

    def __post_init__(self) -> None:
        """Share what most pods have in common."""
        super().__post_init__()
        share(self, "scheduler_name", "preemption_policy", "restart_policy", "tolerations")


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
    """The claim that was created for extended resources, and what it is for."""

    request_mappings: tuple[RequestMapping, ...] | None = None


class ContainerTerminated(Wire, frozen=True, kw_only=True):
    """How a container ended."""

    exit_code: int = 0
    finished_at: datetime | None = None


class ContainerState(Wire, frozen=True, kw_only=True):
    """The state of a container; only whether it has ended matters here."""

    terminated: ContainerTerminated | None = None


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """How often a container was restarted, and how it ended."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()


class PodStatus(pods.PodStatus, frozen=True, kw_only=True):
    """The state of a pod."""

    start_time: datetime | None = None
    pod_ip: str = field(default="", name="podIP")
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class PodMetadata(pods.PodMetadata, frozen=True, kw_only=True):
    """The metadata of a pod."""

    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()


class Pod(pods.Pod, frozen=True, kw_only=True):
    """A pod with or without a node."""

    metadata: PodMetadata = PodMetadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def label(self) -> str:
        """Return its name as texts write it."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def grace_seconds(self) -> int:
        """Return its grace period in seconds."""
        seconds = self.spec.termination_grace_period_seconds
        return _DEFAULT_GRACE_SECONDS if seconds is None else max(0, seconds)

    @property
    def has_empty_dir(self) -> bool:
        """Report whether it has data that is deleted with it."""
        return any(volume.empty_dir is not None for volume in self.spec.volumes)

    @property
    def needs_scheduling(self) -> bool:
        """Report whether we have to schedule it."""
        return (
            not self.spec.node_name
            and self.uses_scheduler()
            and self.is_active
            and not self.spec.scheduling_gates
        )

    @property
    def gated(self) -> bool:
        """Report whether it has scheduling gates."""
        return (
            bool(self.spec.scheduling_gates) and self.uses_scheduler() and not self.is_terminating
        )

    @property
    def owner(self) -> OwnerReference | None:
        """Return the reference to its controller, if it has one."""
        return self.metadata.controller()

    @property
    def owner_text(self) -> str:
        """Return kind and name of its controller, or of itself if it has none."""
        owner = self.owner
        return f"Pod/{self.metadata.name}" if owner is None else f"{owner.kind}/{owner.name}"

    @property
    def workload_text(self) -> str:
        """Return kind and name of its owner, for the pod of a Deployment that Deployment."""
        owner, hash_ = self.owner, self.metadata.labels.get(HASH_LABEL, "")
        if owner is None or owner.kind != "ReplicaSet" or not hash_:
            return self.owner_text
        name = owner.name.removesuffix(f"-{hash_}")
        return f"Deployment/{name}" if name != owner.name else self.owner_text

    def uses_scheduler(self, schedulers: frozenset[str] = SCHEDULERS) -> bool:
        """Report whether one of these schedulers has to schedule it."""
        return self.spec.scheduler_name in schedulers

    def requests_same_as(self, other: Pod) -> bool:
        """Report whether it requests the same as another state of it."""
        return (
            self.spec == other.spec
            and self.status.resource_claim_statuses == other.status.resource_claim_statuses
        )

    def condition(self, type_: str) -> PodCondition | None:
        """Return one of its conditions, or None."""
        return find_condition(self.status.conditions, type_)

    @property
    def ready(self) -> bool:
        """Report whether it is ready."""
        return is_condition_true(self.status.conditions, "Ready")

    @property
    def ready_since(self) -> datetime | None:
        """Return since when it is ready, if it is and that is known."""
        condition = self.condition("Ready")
        return condition.last_transition_time if condition and condition.status == "True" else None

    def available_at(self, min_ready_seconds: int) -> datetime | None:
        """Return when it has been ready for long enough, or None if that is not known."""
        since = self.ready_since
        return None if since is None else later(since, min_ready_seconds)

    def available(self, min_ready_seconds: int, now: datetime) -> bool:
        """Report whether it has been ready for long enough."""
        if min_ready_seconds == 0:
            return self.ready
        at = self.available_at(min_ready_seconds)
        return at is not None and at <= now


class NamespaceMetadata(ObjectIdentity, frozen=True, kw_only=True):
    """The metadata of a namespace."""

    labels: dict[str, str] = field(default_factory=dict)


class Namespace(Wire, frozen=True, kw_only=True):
    """A namespace, by whose labels terms of pod affinity select it."""

    metadata: NamespaceMetadata = NamespaceMetadata()


class NodeSpec(Wire, frozen=True, kw_only=True):
    """What prevents scheduling on a node."""

    unschedulable: bool = False
    taints: tuple[NodeTaint, ...] = ()


class NodeStatus(Wire, frozen=True, kw_only=True):
    """The resources of a node."""

    allocatable: dict[str, str] = field(default_factory=dict)


class NodeMetadata(ObjectIdentity, frozen=True, kw_only=True):
    """The metadata of a node."""

    labels: dict[str, str] = field(default_factory=dict)


class Node(Wire, frozen=True, kw_only=True):
    """A node that may run pods."""

    metadata: NodeMetadata = NodeMetadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    def may_take_more(self, before: Node) -> bool:
        """Report whether it may fit a pod that it did not fit in an earlier state."""
        return (
            self.metadata.labels != before.metadata.labels
            or self.status != before.status
            or self.spec.taints != before.spec.taints
            or (before.spec.unschedulable and not self.spec.unschedulable)
        )

    def offers_same_as(self, other: Node) -> bool:
        """Report whether it is the same to pods as another state of it."""
        return (self.metadata.labels, self.spec, self.status) == (
            other.metadata.labels,
            other.spec,
            other.status,
        )
