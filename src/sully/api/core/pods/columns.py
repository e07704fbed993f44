"""The columns of pods: how many containers are ready, and what the others wait for."""

from datetime import datetime
from typing import Any

from sully.api.core.columns import AGE, NAME, NONE, plain, since
from sully.api.core.pods.conditions import POD_SCHEDULED
from sully.api.core.pods.phases import TERMINAL_PHASES
from sully.machinery.strategy import Column

Obj = dict[str, Any]


def _containers(spec: Obj) -> int:
    sidecars = [c for c in spec.get("initContainers") or () if _is_sidecar(c)]
    return len(spec.get("containers") or ()) + len(sidecars)


def _is_sidecar(container: Obj) -> bool:
    return container.get("restartPolicy") == "Always"


def _sidecar_names(pod: Obj) -> set[str]:
    return {c["name"] for c in pod["spec"].get("initContainers") or () if _is_sidecar(c)}


def _state(container: Obj, name: str) -> Obj | None:
    state = (container.get("state") or {}).get(name)
    return dict(state) if state is not None else None


def _ending(ended: Obj, prefix: str = "") -> str:
    if ended.get("reason"):
        return prefix + str(ended["reason"])
    if ended.get("signal"):
        return f"{prefix}Signal:{ended['signal']}"
    return f"{prefix}ExitCode:{ended.get('exitCode', 0)}"


def _initialising(pod: Obj) -> str:
    """Return which init container still runs; empty when all are done."""
    sidecars = _sidecar_names(pod)
    for position, container in enumerate(pod["status"].get("initContainerStatuses") or ()):
        ended, waiting = _state(container, "terminated"), _state(container, "waiting")
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if container["name"] in sidecars and container.get("started"):
            continue
        if ended is not None:
            return _ending(ended, "Init:")
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{position}/{len(pod['spec'].get('initContainers') or ())}"
    return ""


def _initialised(pod: Obj) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(c.get("type") == "Initialized" and c.get("status") == "True" for c in conditions)


def _running(pod: Obj, reason: str) -> str:
    """Return the status of the containers: that of the first one with a reason."""
    has_running = False
    for container in reversed(pod["status"].get("containerStatuses") or []):
        waiting, ended = _state(container, "waiting"), _state(container, "terminated")
        if waiting and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None:
            reason = _ending(ended)
        elif container.get("ready") and _state(container, "running") is not None:
            has_running = True
    if reason == "Completed" and has_running:
        conditions = pod["status"].get("conditions") or ()
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
        reason = "Running" if ready else "NotReady"
    return reason


_ENDED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def row_conditions(pod: Obj) -> list[Obj]:
    """Return the condition of a row by which clients hide pods that have ended."""
    phase = pod["status"].get("phase", "")
    if phase not in _ENDED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _ENDED[phase]}]


def _gated(pod: Obj) -> bool:
    for condition in pod["status"].get("conditions") or ():
        if condition.get("type") == POD_SCHEDULED:
            return bool(condition.get("reason") == "SchedulingGated")
    return False


def status_word(pod: Obj) -> str:
    """Return the Status column."""
    status = pod["status"]
    reason = status.get("reason") or status.get("phase", "")
    if _gated(pod):
        reason = "SchedulingGated"
    starting = _initialising(pod)
    reason = starting or reason
    if not starting or _initialised(pod):
        reason = _running(pod, reason)
    if "deletionTimestamp" not in pod["metadata"]:
        return str(reason)
    if status.get("reason") == "NodeLost":
        return "Unknown"
    # A terminated pod shows how it ended, even while it is being deleted.
    return str(reason) if status.get("phase") in TERMINAL_PHASES else "Terminating"


def _ready(pod: Obj) -> str:
    status, sidecars = pod["status"], _sidecar_names(pod)
    first = [
        c
        for c in status.get("initContainerStatuses") or ()
        if c["name"] in sidecars and c.get("started") and c.get("ready")
    ]
    running = [
        c
        for c in status.get("containerStatuses") or ()
        if c.get("ready") and _state(c, "running") is not None
    ]
    starting = bool(_initialising(pod)) and not _initialised(pod)
    ready = len(first) + (0 if starting else len(running))
    return f"{ready}/{_containers(pod['spec'])}"


def _restarts(pod: Obj, now: datetime) -> str:
    statuses = [*(pod["status"].get("containerStatuses") or ())]
    sidecars = _sidecar_names(pod)
    first = [*(pod["status"].get("initContainerStatuses") or ())]
    starting = bool(_initialising(pod)) and not _initialised(pod)
    counted = first if starting else [*(c for c in first if c["name"] in sidecars), *statuses]
    count = sum(c.get("restartCount", 0) for c in counted)
    ends = [((c.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for c in counted]
    last = max((end for end in ends if end), default=None)
    return f"{count} ({since(last, now)} ago)" if count and last else str(count)


def _address(pod: Obj) -> str:
    addresses = pod["status"].get("podIPs") or [{}]
    return addresses[0].get("ip") or NONE


def _gates(pod: Obj) -> str:
    gates = [gate.get("conditionType") for gate in pod["spec"].get("readinessGates") or ()]
    if not gates:
        return NONE
    conditions = pod["status"].get("conditions") or ()
    true = {c.get("type") for c in conditions if c.get("status") == "True"}
    return f"{sum(gate in true for gate in gates)}/{len(gates)}"


COLUMNS = (
    NAME,
    Column("Ready", plain(_ready), description="Ready containers of all."),
    Column("Status", plain(status_word), description="State of the pod, or why it is not running."),
    Column("Restarts", _restarts, description="Restarts of all containers, and the last one."),
    AGE,
    Column("IP", plain(_address), priority=1, description="Address of the pod."),
    Column(
        "Node",
        plain(lambda pod: pod["spec"].get("nodeName") or NONE),
        priority=1,
        description="Node the pod runs on.",
    ),
    Column(
        "Nominated Node",
        plain(lambda pod: pod["status"].get("nominatedNodeName") or NONE),
        priority=1,
        description="Node on which pods are preempted for the pod.",
    ),
    Column(
        "Readiness Gates",
        plain(_gates),
        priority=1,
        description="Fulfilled conditions of those the pod must meet to be ready.",
    ),
)
