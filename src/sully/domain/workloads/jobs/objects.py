"""Jobs, as the controller and plans read them.

They are whole types: what was read can be written back. The decisions are in failures.py (how
failures count, when a Job fails), tracking.py, pods.py and sync.py (what the
controller does next).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from sully.domain.workloads.workloads import Workload
from sully.machinery.meta import Wire, find_condition, is_condition_true

CONTROLLER: Final = "kubernetes.io/job-controller"
ENDS: Final = ("Complete", "Failed")
"""The conditions of a finished Job."""

Action = str
"""Count, Ignore, FailJob or FailIndex."""


class ConditionPattern(Wire, frozen=True, kw_only=True):
    """A condition of a pod."""

    type: str = ""
    status: str = "True"


class ExitCodes(Wire, frozen=True, kw_only=True):
    """Exit codes of containers."""

    container_name: str | None = None
    operator: str = "In"
    values: tuple[int, ...] = ()


class FailureRule(Wire, frozen=True, kw_only=True):
    """What to do about some failed pods."""

    action: Action = "Count"
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: tuple[ConditionPattern, ...] | None = None


class FailurePolicy(Wire, frozen=True, kw_only=True):
    """What to do about failed pods; the first rule that matches decides."""

    rules: tuple[FailureRule, ...] = ()


class SuccessRule(Wire, frozen=True, kw_only=True):
    """Indexes that have to succeed."""

    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(Wire, frozen=True, kw_only=True):
    """When an Indexed Job has succeeded early; the first rule that matches decides."""

    rules: tuple[SuccessRule, ...] = ()


class JobSpec(Wire, frozen=True, kw_only=True):
    """How many pods are desired, and how failures count."""

    parallelism: int = 1
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    pod_failure_policy: FailurePolicy | None = None
    pod_replacement_policy: str = "TerminatingOrFailed"
    active_deadline_seconds: int | None = None
    suspend: bool = False
    success_policy: SuccessPolicy | None = None
    ttl_seconds_after_finished: int | None = None
    selector: dict[str, Any] | None = None
    template: dict[str, Any] = msgspec.field(default_factory=dict)
    managed_by: str = CONTROLLER


class JobCondition(Wire, frozen=True, kw_only=True):
    """One aspect of the state of a Job."""

    type: str = ""
    status: str = ""
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class UncountedPods(Wire, frozen=True, kw_only=True):
    """Pods that have terminated and are not yet part of the numbers, by uid."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Wire, frozen=True, kw_only=True):
    """How many pods have succeeded and failed."""

    conditions: tuple[JobCondition, ...] = ()
    start_time: datetime | None = None
    completion_time: datetime | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedPods | None = None
    ready: int | None = None


class Job(Workload, frozen=True, kw_only=True):
    """Pods that run to completion."""

    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)

    @property
    def replaces_terminating(self) -> bool:
        """Report whether a pod counts as failed as soon as it is deleted."""
        return self.spec.pod_replacement_policy != "Failed"

    @property
    def is_managed_elsewhere(self) -> bool:
        """Report whether another controller than that of Kubernetes manages it."""
        return self.spec.managed_by != CONTROLLER

    @property
    def is_indexed(self) -> bool:
        """Report whether each pod has an index."""
        return self.spec.completion_mode == "Indexed"

    @property
    def is_finished(self) -> bool:
        """Report whether it is complete or has failed."""
        return any(map(self.has_condition, ENDS))

    def condition(self, type_: str) -> JobCondition | None:
        """Return a condition, or None."""
        return find_condition(self.status.conditions, type_)

    def has_condition(self, type_: str) -> bool:
        """Report whether a condition is true."""
        return is_condition_true(self.status.conditions, type_)
