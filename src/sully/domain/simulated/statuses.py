"""What a kubelet writes into the status of a pod, as strategic merge patches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sully.api.core.pods.conditions import POD_SCHEDULED
from sully.domain.scheduling.objects import Container, Pod
from sully.domain.simulated.pods import running_since
from sully.machinery.formats.timestamps import format_time

Obj = dict[str, Any]

_CREATING = {"waiting": {"reason": "ContainerCreating"}}
_INITIALIZING = {"waiting": {"reason": "PodInitializing"}}


def creating(pod: Pod, *, host: str, now: datetime) -> Obj:
    """Return the patch for a pod that is not running yet."""
    waits = _INITIALIZING if pod.spec.init_containers else _CREATING
    unready = _names(pod.spec.containers)
    why = {
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(unready)}]",
    }
    initialized: Obj = {"status": "True"}
    if pod.spec.init_containers:
        names = " ".join(_names(pod.spec.init_containers))
        initialized = {
            "status": "False",
            "reason": "ContainersNotInitialized",
            "message": f"containers with incomplete status: [{names}]",
        }
    conditions = {
        "PodReadyToStartContainers": {"status": "False"},
        "Initialized": initialized,
        "Ready": {"status": "False"} | why,
        "ContainersReady": {"status": "False"} | why,
        POD_SCHEDULED: {"status": "True"},
    }
    return _patch(
        pod,
        phase="Pending",
        startTime=format_time(now),
        **_host(host),
        conditions=_conditions(pod, conditions, now),
        initContainerStatuses=[_container(pod, c, waits) for c in pod.spec.init_containers],
        containerStatuses=[_container(pod, c, waits) for c in pod.spec.containers],
    )


def running(pod: Pod, *, host: str, address: str, now: datetime) -> Obj:
    """Return the patch for a running pod."""
    moment = format_time(now)
    runs = {"running": {"startedAt": moment}}
    started = pod.status.start_time
    conditions: dict[str, Obj] = {
        "PodReadyToStartContainers": {"status": "True"},
        "Initialized": {"status": "True"},
        "Ready": _ready(pod),
        "ContainersReady": {"status": "True"},
        POD_SCHEDULED: {"status": "True"},
    }
    return _patch(
        pod,
        phase="Running",
        startTime=format_time(started) if started is not None else moment,
        podIP=address,
        podIPs=[{"ip": address}],
        **_host(host),
        conditions=_conditions(pod, conditions, now),
        initContainerStatuses=[
            _container(pod, container, runs, ready=True)
            if container.is_sidecar
            else _initialized(pod, container, moment)
            for container in pod.spec.init_containers
        ],
        containerStatuses=[_container(pod, c, runs, ready=True) for c in pod.spec.containers],
    )


def readiness(pod: Pod, *, now: datetime) -> Obj:
    """Return the patch for the readiness of a running pod."""
    return _patch(pod, conditions=_conditions(pod, {"Ready": _ready(pod)}, now))


def ended(pod: Pod, *, code: int, now: datetime) -> Obj:
    """Return the patch for a pod that ended with this exit code."""
    since = running_since(pod) or now
    reason = "PodCompleted" if code == 0 else "PodFailed"
    unready = {"status": "False", "reason": reason}
    conditions: dict[str, Obj] = {
        "PodReadyToStartContainers": {"status": "False"},
        "Initialized": {"status": "True"} | ({"reason": reason} if code == 0 else {}),
        "Ready": unready,
        "ContainersReady": unready,
        POD_SCHEDULED: {"status": "True"},
    }
    return _patch(
        pod,
        phase="Succeeded" if code == 0 else "Failed",
        conditions=_conditions(pod, conditions, now),
        initContainerStatuses=[
            _stopped(pod, container, 0, since, now)
            if container.is_sidecar
            else _initialized(pod, container, format_time(since))
            for container in pod.spec.init_containers
        ],
        containerStatuses=[
            _stopped(pod, container, code, since, now) for container in pod.spec.containers
        ],
    )


def _patch(pod: Pod, **status: Any) -> Obj:
    known = {name: value for name, value in status.items() if value != []}
    if pod.metadata.generation:
        known["observedGeneration"] = pod.metadata.generation
    # The uid guards against a new pod that took the old one's name.
    return {"metadata": {"uid": pod.metadata.uid}, "status": known}


def _host(host: str) -> Obj:
    return {"hostIP": host, "hostIPs": [{"ip": host}]}


def _names(containers: Iterable[Container]) -> list[str]:
    return [container.name for container in containers]


def _conditions(pod: Pod, desired: dict[str, Obj], now: datetime) -> list[Obj]:
    made = []
    for kind, fields in desired.items():
        before = pod.condition(kind)
        moment = format_time(now)
        if before is not None and before.status == fields["status"]:
            if before.last_transition_time is not None:
                moment = format_time(before.last_transition_time)
            if (before.reason, before.message) == (
                fields.get("reason", ""),
                fields.get("message", ""),
            ):
                continue
        # Conditions that no longer hold are removed explicitly: lists are merged by type.
        bare = {"reason": None, "message": None}
        made.append(bare | {"type": kind, "lastTransitionTime": moment} | fields)
    return made


def _ready(pod: Pod) -> Obj:
    """Report whether a pod is ready whose containers are."""
    for gate in pod.spec.readiness_gates:
        condition = pod.condition(gate.condition_type)
        if condition is None:
            message = f'corresponding condition of pod readiness gate "{gate.condition_type}" does'
            return _not_ready(f"{message} not exist.")
        if condition.status != "True":
            message = f'the status of pod readiness gate "{gate.condition_type}" is not "True", but'
            return _not_ready(f"{message} {condition.status}")
    return {"status": "True"}


def _not_ready(message: str) -> Obj:
    return {"status": "False", "reason": "ReadinessGatesNotReady", "message": message}


def _container(pod: Pod, container: Container, state: Obj, *, ready: bool = False) -> Obj:
    status: Obj = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }
    if ready:
        status["containerID"] = _identity(pod, container)
        status["imageID"] = f"simulated://{hashlib.sha256(container.image.encode()).hexdigest()}"
    return status


def _identity(pod: Pod, container: Container) -> str:
    text = f"{pod.metadata.uid}/{container.name}"
    return f"simulated://{hashlib.sha256(text.encode()).hexdigest()}"


def _initialized(pod: Pod, container: Container, moment: str) -> Obj:
    """Return the status of an init container, which ended when the others were started."""
    done = _ended(0, "Completed", moment, moment)
    return _container(pod, container, {"terminated": done}, ready=True)


def _stopped(pod: Pod, container: Container, code: int, since: datetime, now: datetime) -> Obj:
    reason = "Completed" if code == 0 else "Error"
    state = _ended(code, reason, format_time(since), format_time(now))
    state["containerID"] = _identity(pod, container)
    made = _container(pod, container, {"terminated": state}, ready=True)
    return made | {"ready": False}


def _ended(code: int, reason: str, began: str, ended_at: str) -> Obj:
    return {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": ended_at}
