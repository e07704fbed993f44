"""The owners of pods that a plan reads, where the server has them and the user may list them."""

from __future__ import annotations

from typing import Any

from sully.client.transport import Kind
from sully.domain.workloads.daemonsets import DaemonSet
from sully.domain.workloads.jobs.objects import Job
from sully.domain.workloads.statefulsets import StatefulSet

JOBS: Kind[Job] = Kind("batch", "v1", "jobs", "Job", Job)
STATEFUL_SETS: Kind[StatefulSet] = Kind("apps", "v1", "statefulsets", "StatefulSet", StatefulSet)
DAEMON_SETS: Kind[DaemonSet] = Kind("apps", "v1", "daemonsets", "DaemonSet", DaemonSet)
OWNER_KINDS: tuple[Kind[Any], ...] = (JOBS, STATEFUL_SETS, DAEMON_SETS)
