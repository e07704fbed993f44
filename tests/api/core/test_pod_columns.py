"""How pods print."""

from typing import Any

import pytest

from api.core.bodies import container, pod
from api.core.writing import cells, create

Obj = dict[str, Any]
START = "2026-03-01T11:59:00Z"


def _running(name: str = "c", **fields: Any) -> Obj:
    return {"name": name, "ready": True, "state": {"running": {}}, **fields}


def _waiting(reason: str, name: str = "c") -> Obj:
    return {"name": name, "state": {"waiting": {"reason": reason}}}


def _ended(name: str = "c", **fields: Any) -> Obj:
    return {"name": name, "state": {"terminated": fields}}


DELETED = {"deletionTimestamp": "2026-03-01T12:00:30Z"}
SIDECAR = [container(name="s", restartPolicy="Always"), container(name="i")]
READY = {"type": "Ready", "status": "True"}

CASES: dict[str, tuple[Obj, Obj, Obj, Obj]] = {
    "new": ({}, {}, {}, {"Ready": "0/1", "Status": "Pending", "Restarts": "0", "Age": "60s"}),
    "running": (
        {},
        {"phase": "Running", "containerStatuses": [_running()]},
        {},
        {"Ready": "1/1", "Status": "Running"},
    ),
    "image missing": (
        {},
        {"containerStatuses": [_waiting("ImagePullBackOff")]},
        {},
        {"Ready": "0/1", "Status": "ImagePullBackOff"},
    ),
    "crashed": (
        {},
        {"phase": "Failed", "containerStatuses": [_ended(exitCode=3)]},
        {},
        {"Status": "ExitCode:3"},
    ),
    "killed": (
        {},
        {"phase": "Failed", "containerStatuses": [_ended(exitCode=137, signal=9)]},
        {},
        {"Status": "Signal:9"},
    ),
    "restarted": (
        {},
        {
            "phase": "Running",
            "containerStatuses": [
                _running(
                    restartCount=2,
                    lastState={"terminated": {"finishedAt": "2026-03-01T11:59:30Z"}},
                )
            ],
        },
        {},
        {"Restarts": "2 (30s ago)"},
    ),
    "init container at work": (
        {"initContainers": SIDECAR},
        {"initContainerStatuses": [_running("s", started=True), _running("i")]},
        {},
        {"Ready": "1/2", "Status": "Init:1/2"},
    ),
    "init container failed": (
        {"initContainers": SIDECAR},
        {"initContainerStatuses": [_ended("s", exitCode=1, reason="Error")]},
        {},
        {"Status": "Init:Error"},
    ),
    "one of two completed": (
        {},
        {
            "phase": "Running",
            "conditions": [READY],
            "containerStatuses": [_ended(exitCode=0, reason="Completed"), _running("d")],
        },
        {},
        {"Status": "Running"},
    ),
    "gated": ({"schedulingGates": [{"name": "a"}]}, {}, {}, {"Status": "SchedulingGated"}),
    "evicted": ({}, {"phase": "Failed", "reason": "Evicted"}, {}, {"Status": "Evicted"}),
    "terminating": ({}, {"phase": "Running"}, DELETED, {"Status": "Terminating"}),
    "ended, terminating": ({}, {"phase": "Succeeded"}, DELETED, {"Status": "Succeeded"}),
    "node lost": ({}, {"phase": "Running", "reason": "NodeLost"}, DELETED, {"Status": "Unknown"}),
    "placed": (
        {"nodeName": "n1", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
        {
            "podIPs": [{"ip": "10.0.0.1"}],
            "nominatedNodeName": "n2",
            "conditions": [{"type": "a", "status": "True"}],
        },
        {},
        {"IP": "10.0.0.1", "Node": "n1", "Nominated Node": "n2", "Readiness Gates": "1/2"},
    ),
    "nothing known": (
        {},
        {},
        {},
        {
            "IP": "<none>",
            "Node": "<none>",
            "Nominated Node": "<none>",
            "Readiness Gates": "<none>",
        },
    ),
}


@pytest.mark.parametrize(("spec", "status", "metadata", "want"), CASES.values(), ids=CASES.keys())
def test_row(spec: Obj, status: Obj, metadata: Obj, want: Obj) -> None:
    obj = create("pods", pod(**spec)).obj
    obj["status"] |= status
    obj["metadata"] |= metadata | {"creationTimestamp": START}

    row = cells("pods", obj)

    assert {name: row[name] for name in want} == want
