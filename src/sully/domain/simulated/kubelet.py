"""What a kubelet would do with a pod next.

`next_step` is called again whenever something happened to the pod or its claims, and at the time
that it named itself. What a step writes is statuses.py.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from sully.domain.scheduling.objects import Pod
from sully.domain.simulated.fleet import PodDelays
from sully.domain.simulated.pods import are_gates_open, exit_of, is_running, running_since
from sully.machinery.formats.timestamps import later

TERMINATED = 143
"""The exit code of a container that does not handle SIGTERM. With 0, the pod of a Job that is
evicted would count as a completed one."""
NOTICEABLE = 1.0
"""The least start time in seconds for which `ContainerCreating` is written."""


class Seen(msgspec.Struct, frozen=True):
    """Since when; the wire has whole seconds, which is too coarse for short times."""

    startable: datetime | None = None
    """Since when its claims are there."""
    terminating_since: datetime | None = None


class Rest(msgspec.Struct, frozen=True):
    """Nothing to do until something happens."""


class RequeueAt(msgspec.Struct, frozen=True):
    """Nothing to do before this time."""

    at: datetime


class Create(msgspec.Struct, frozen=True):
    """Report that the containers are being created."""


class Run(msgspec.Struct, frozen=True):
    """Report that the containers run."""


class UpdateReadiness(msgspec.Struct, frozen=True):
    """Report whether the pod is ready, because a gate opened or closed."""


class End(msgspec.Struct, frozen=True):
    """Report that the containers have ended; a terminating pod is then removed."""

    code: int
    remove: bool = False


class Remove(msgspec.Struct, frozen=True):
    """Nothing of the pod is left on the machine: remove it from the server."""


Step = Rest | RequeueAt | Create | Run | UpdateReadiness | End | Remove
REST = Rest()


def next_step(pod: Pod, seen: Seen, *, delays: PodDelays, now: datetime) -> Step:
    """Return the next step for a pod."""
    if pod.is_terminating:
        return _leave(pod, seen, delays, now)
    if pod.is_terminal:
        return REST
    if is_running(pod):
        return _run(pod, now)
    if pod.status.start_time is None and (seen.startable is None or delays.start >= NOTICEABLE):
        return Create()
    if seen.startable is None:
        return REST
    at = later(seen.startable, delays.start)
    return Run() if at <= now else RequeueAt(at)


def _run(pod: Pod, now: datetime) -> Step:
    ready = pod.condition("Ready")
    if (
        pod.spec.readiness_gates
        and ready is not None
        and _differs(ready.status, are_gates_open(pod))
    ):
        return UpdateReadiness()
    ending, since = exit_of(pod), running_since(pod)
    if ending is None or since is None:
        return REST
    at = later(since, ending.after)
    return End(ending.code) if at <= now else RequeueAt(at)


def _differs(status: str, ready: bool) -> bool:
    return (status == "True") != ready


def _leave(pod: Pod, seen: Seen, delays: PodDelays, now: datetime) -> Step:
    if not is_running(pod):
        let_go = pod.is_terminal and pod.metadata.deletion_grace_period_seconds == 0
        # Without a finalizer it should be deleted: an earlier deletion was interrupted.
        return REST if let_go and pod.metadata.finalizers else Remove()
    at = _stopped_at(pod, seen, delays)
    return End(TERMINATED, remove=True) if at <= now else RequeueAt(at)


def _stopped_at(pod: Pod, seen: Seen, delays: PodDelays) -> datetime:
    """Return when the containers have stopped: in their own time, or when patience is over."""
    deadline = pod.metadata.deletion_timestamp
    since = seen.terminating_since
    if deadline is None or since is None:
        raise ValueError("a pod that is not deleted does not stop")
    grace = pod.metadata.deletion_grace_period_seconds
    seconds = delays.stop if grace is None else min(delays.stop, grace)
    # The deadline counts too: a restart must not repeat the whole grace period.
    return min(later(since, seconds), max(deadline, since))
