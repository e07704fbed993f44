"""Workloads that keep a number of pods, and budgets, as the lifecycle decisions see them.

They are whole types: what was read can be written back. The decisions are in replicas.py,
rollout.py, progress.py and budgets.py; a pod is `domain/scheduling/objects.py`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import msgspec

from sully.machinery.meta import ObjectMeta, Wire, find_condition
from sully.machinery.selectors.labels import NOTHING, Selector, SelectorError, from_object

NEVER = 2**31 - 1
"""The number for a deployment that has no deadline, or keeps all revisions."""
BURST: Final = 500
"""How many pods one sync creates or deletes at most: a workload may want billions."""


class Workload(Wire, frozen=True, kw_only=True):
    """What the kinds with a number of replicas share."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_terminating(self) -> bool:
        """Report whether it has a deletion timestamp."""
        return self.metadata.deletion_timestamp is not None


class WorkloadCondition(Wire, frozen=True, kw_only=True):
    """One aspect of the state of a ReplicaSet."""

    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class ReplicaSetSpec(Wire, frozen=True, kw_only=True):
    """Which pods are desired, and how many."""

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


class RollingUpdateDeployment(Wire, frozen=True, kw_only=True):
    """How many pods a rollout may be above or below the desired number."""

    max_unavailable: int | str = 0
    max_surge: int | str = 0


class RolloutStrategy(Wire, frozen=True, kw_only=True):
    """How old pods make way for new ones."""

    type: str = ""
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(Wire, frozen=True, kw_only=True):
    """Which pods are desired, how many, and how they are replaced."""

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
    """How many pods of a group may be unavailable at the same time, on purpose."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


class _HasSelector(Protocol):
    @property
    def selector(self) -> dict[str, Any] | None: ...


class Selecting(Protocol):
    """An object with a label selector in its spec."""

    @property
    def spec(self) -> _HasSelector: ...


def selector_of(obj: Selecting) -> Selector:
    """Return which pods an object is about; one that cannot be read is about none."""
    try:
        return from_object(obj.spec.selector)
    except SelectorError:
        return NOTHING


def template_labels(template: dict[str, Any]) -> dict[str, str]:
    """Return the labels that pods of a template carry."""
    labels: dict[str, str] = (template.get("metadata") or {}).get("labels") or {}
    return labels
