"""Pods and those who keep a number of them, as the lifecycle decisions see them.

ReplicaSets, Deployments and budgets are whole types: what was read can be written back. Pods are
a projection. The decisions are in replicas.py, rollout.py, progress.py and budgets.py.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from sully.domain.claims import pods
from sully.machinery.labels import NOTHING, Selector, SelectorError, from_object
from sully.machinery.meta import ObjectMeta, Wire, find_condition

NEVER = 2**31 - 1
"""The number by which a deployment says that it has no deadline, or keeps all revisions."""


class PodCondition(Wire, frozen=True, kw_only=True):
    """One aspect of a pod's state."""

    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None
    reason: str = ""


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """How often a container was started again."""

    restart_count: int = 0


class PodSpec(Wire, frozen=True, kw_only=True):
    """Where a pod runs."""

    node_name: str = ""


class PodStatus(Wire, frozen=True, kw_only=True):
    """How a pod fares."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class PodMetadata(pods.PodMetadata, frozen=True, kw_only=True):
    """Who a pod is, to whom it belongs, and what selects it."""

    creation_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Pod(Wire, frozen=True, kw_only=True):
    """A pod, of which matters whether it counts."""

    metadata: PodMetadata = msgspec.field(default_factory=PodMetadata)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def leaving(self) -> bool:
        """Say whether its deletion was asked for."""
        return self.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        """Say whether all its containers have ended for good."""
        return self.status.phase in pods.FINISHED

    @property
    def active(self) -> bool:
        """Say whether it counts as one of the pods that are wanted."""
        return not self.leaving and not self.finished

    def condition(self, type_: str) -> PodCondition | None:
        """Return an aspect of its state, or None."""
        return find_condition(self.status.conditions, type_)

    @property
    def ready(self) -> bool:
        """Say whether it serves."""
        found = self.condition("Ready")
        return found is not None and found.status == "True"

    @property
    def ready_since(self) -> datetime | None:
        """Return when it began to serve, if it does and that is known."""
        found = self.condition("Ready")
        return found.last_transition_time if found and found.status == "True" else None

    def available_at(self, min_ready_seconds: int) -> datetime | None:
        """Return when it has served for long enough, or None if that cannot be said."""
        since = self.ready_since
        return None if since is None else since + timedelta(seconds=min_ready_seconds)

    def available(self, min_ready_seconds: int, now: datetime) -> bool:
        """Say whether it has served for long enough."""
        if min_ready_seconds == 0:
            return self.ready
        at = self.available_at(min_ready_seconds)
        return at is not None and at <= now


class Workload(Wire, frozen=True, kw_only=True):
    """What those who keep a number of pods share."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def leaving(self) -> bool:
        """Say whether its deletion was asked for."""
        return self.metadata.deletion_timestamp is not None


class WorkloadCondition(Wire, frozen=True, kw_only=True):
    """One aspect of the state of a ReplicaSet."""

    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class ReplicaSetSpec(Wire, frozen=True, kw_only=True):
    """Which pods are wanted, and how many."""

    replicas: int = 1
    min_ready_seconds: int = 0
    selector: dict[str, Any] | None = None
    template: dict[str, Any] = msgspec.field(default_factory=dict)


class ReplicaSetStatus(Wire, frozen=True, kw_only=True):
    """How many there are."""

    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: tuple[WorkloadCondition, ...] = ()


class ReplicaSet(Workload, frozen=True, kw_only=True):
    """A number of equal pods."""

    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = msgspec.field(default_factory=ReplicaSetStatus)


class DeploymentCondition(Wire, frozen=True, kw_only=True):
    """One aspect of the state of a Deployment."""

    type: str = ""
    status: str = ""
    last_update_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class RollingUpdate(Wire, frozen=True, kw_only=True):
    """How many pods a rollout may be above or below the wanted number."""

    max_unavailable: int | str = 0
    max_surge: int | str = 0


class RolloutStrategy(Wire, frozen=True, kw_only=True):
    """How old pods make way for new ones."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Wire, frozen=True, kw_only=True):
    """Which pods are wanted, how many, and how they are replaced."""

    replicas: int = 1
    selector: dict[str, Any] | None = None
    template: dict[str, Any] = msgspec.field(default_factory=dict)
    strategy: RolloutStrategy = msgspec.field(default_factory=RolloutStrategy)
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    paused: bool = False
    progress_deadline_seconds: int | None = None


class DeploymentStatus(Wire, frozen=True, kw_only=True):
    """How far the rollout has got."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    conditions: tuple[DeploymentCondition, ...] = ()
    collision_count: int | None = None

    def condition(self, type_: str) -> DeploymentCondition | None:
        """Return an aspect of the state, or None."""
        return find_condition(self.conditions, type_)


class Deployment(Workload, frozen=True, kw_only=True):
    """Equal pods that are replaced step by step when their template changes."""

    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)

    @property
    def deadline(self) -> timedelta | None:
        """Return how long a rollout may go without progress, or None if indefinitely."""
        seconds = self.spec.progress_deadline_seconds
        return None if seconds in (None, NEVER) else timedelta(seconds=seconds)


class BudgetSpec(Wire, frozen=True, kw_only=True):
    """Which pods are protected, and how many must be available."""

    min_available: int | str | None = None
    selector: dict[str, Any] | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetCondition(Wire, frozen=True, kw_only=True):
    """One aspect of the state of a budget; other writers may have omitted fields."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class BudgetStatus(Wire, frozen=True, kw_only=True):
    """How many evictions the budget allows at the moment."""

    observed_generation: int = 0
    disrupted_pods: dict[str, datetime | None] = msgspec.field(default_factory=dict)
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[BudgetCondition, ...] = ()


class Budget(Wire, frozen=True, kw_only=True):
    """How many pods of a group may be away at the same time, on purpose."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


def selector_of(obj: ReplicaSet | Deployment | Budget) -> Selector:
    """Return which pods an object is about; one that cannot be read is about none."""
    try:
        return from_object(obj.spec.selector)
    except SelectorError:
        return NOTHING


def template_labels(template: dict[str, Any]) -> dict[str, str]:
    """Return the labels that pods of a template carry."""
    labels: dict[str, str] = (template.get("metadata") or {}).get("labels") or {}
    return labels
