"""Why the containers of a pod do not start or have failed, as its kubelet reported it.

For commands and controllers that read a few pods once. The cache of all pods
(`domain/scheduling/objects.py`) has no texts of kubelets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec import field

from sully.api.core.pods.conditions import POD_SCHEDULED
from sully.domain.claims import pods
from sully.domain.scheduling.objects import PodCondition, PodMetadata
from sully.machinery.meta import Wire, find_condition

_STARTING: Final = frozenset(("", "ContainerCreating", "PodInitializing"))
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class ContainerStateWaiting(Wire, frozen=True, kw_only=True):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class ContainerStateTerminated(Wire, frozen=True, kw_only=True):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(Wire, frozen=True, kw_only=True):
    """The state of a container, unless it runs."""

    waiting: ContainerStateWaiting = ContainerStateWaiting()
    terminated: ContainerStateTerminated = ContainerStateTerminated()


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """The status of a container."""

    state: ContainerState = ContainerState()


class ReportedPodStatus(pods.PodStatus, frozen=True, kw_only=True):
    """The state of a pod and its containers, with reasons."""

    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class ReportedPod(pods.Pod, frozen=True, kw_only=True):
    """A pod with what its kubelet reported."""

    metadata: PodMetadata = PodMetadata()
    status: ReportedPodStatus = field(default_factory=ReportedPodStatus)


def start_problems(pod: ReportedPod) -> Iterator[tuple[str, str]]:
    """Yield reason and message of what prevents a pod from starting."""
    for container in pod.status.container_statuses:
        waiting = container.state.waiting
        if waiting.reason not in _STARTING:
            yield waiting.reason, waiting.message
    scheduled = find_condition(pod.status.conditions, POD_SCHEDULED)
    if scheduled is not None and scheduled.status == "False":
        yield scheduled.reason or "Unschedulable", scheduled.message


def failure_message(pods: Iterable[ReportedPod]) -> str:
    """Return why the newest pod that failed has failed, as far as its status shows."""
    failed = [pod for pod in pods if pod.status.phase == "Failed"]
    if not failed:
        return ""
    status = max(failed, key=lambda pod: pod.metadata.creation_timestamp or _LONG_AGO).status
    for container in (*status.init_container_statuses, *status.container_statuses):
        ended = container.state.terminated
        if ended.exit_code:
            text = (ended.message or ended.reason).strip()
            return f"exit code {ended.exit_code}" + (f": {text}" if text else "")
    return status.message or status.reason
