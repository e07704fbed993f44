"""What may be reported about a pod."""

import copy
from typing import Any

import pytest

from api.core.bodies import pod
from api.core.writing import create, update
from api.resource.bodies import SUBDOMAIN_TEXT
from sully.api.core.pods.strategy import deletion_grace

Obj = dict[str, Any]

CASES: dict[str, tuple[Obj, list[str]]] = {
    "any phase": ({"phase": "Dancing"}, []),
    "claim of the pod": ({"resourceClaimStatuses": [{"name": "gpu"}]}, []),
    "claim twice": (
        {"resourceClaimStatuses": [{"name": "gpu"}, {"name": "gpu"}]},
        ['status.resourceClaimStatuses[1].name: Duplicate value: "gpu"'],
    ),
    "claim that cannot exist": (
        {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "A"}]},
        [
            'status.resourceClaimStatuses[0].resourceClaimName: Invalid value: "A":'
            f" {SUBDOMAIN_TEXT}"
        ],
    ),
    "unknown claim": (
        {"resourceClaimStatuses": [{"name": "other"}]},
        [
            'status.resourceClaimStatuses[0].name: Invalid value: "other": must match the name of'
            " an entry in `spec.resourceClaims`"
        ],
    ),
    "another quality of service": (
        {"qosClass": "Guaranteed"},
        ['status.qosClass: Invalid value: "Guaranteed": field is immutable'],
    ),
    "condition type": (
        {"conditions": [{"type": "/x", "status": "True"}]},
        ['status.conditions[0].Type: Invalid value: "/x": prefix part must be non-empty'],
    ),
    "negative generation": (
        {"observedGeneration": -1},
        ["status.observedGeneration: Invalid value: -1: must be a non-negative integer"],
    ),
}


def _pod(**spec: Any) -> Obj:
    claims = [{"name": "gpu", "resourceClaimName": "x"}]
    return create("pods", pod(resourceClaims=claims, **spec)).obj


@pytest.mark.parametrize(("status", "want"), CASES.values(), ids=CASES.keys())
def test_status(status: Obj, want: list[str]) -> None:
    old = _pod()
    new = copy.deepcopy(old)
    new["status"].update(status)

    assert update("pods", new, old, sub="status").texts() == want


_BOUND = (
    "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
)
NOMINATIONS: dict[str, tuple[str, str, list[str]]] = {
    "set": ("", "n2", [_BOUND]),
    "changed": ("n1", "n2", [_BOUND]),
    "as before": ("n1", "n1", []),
    "cleared": ("n1", "", []),
}


@pytest.mark.parametrize(("before", "after", "want"), NOMINATIONS.values(), ids=NOMINATIONS.keys())
def test_nomination_of_a_bound_pod(before: str, after: str, want: list[str]) -> None:
    old = _pod(nodeName="n1")
    old["status"]["nominatedNodeName"] = before
    new = copy.deepcopy(old)
    new["status"]["nominatedNodeName"] = after

    assert update("pods", new, old, sub="status").texts() == want


def test_spec_and_owners_stay() -> None:
    old = _pod()
    new = copy.deepcopy(old)
    new["spec"]["nodeName"] = "n"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}
    new["metadata"]["ownerReferences"] = [owner]
    del new["status"]["qosClass"]

    written = update("pods", new, old, sub="status")

    assert written.problems == []
    assert written.obj == old


def test_ended_containers_stay_ended() -> None:
    old = _pod(restartPolicy="Never")
    ended = {"name": "c", "state": {"terminated": {"exitCode": 0}}}
    old["status"]["containerStatuses"] = [ended]
    new = copy.deepcopy(old)
    new["status"]["containerStatuses"][0]["state"] = {"running": {}}

    assert update("pods", new, old, sub="status").texts() == [
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated"
        " state"
    ]


def test_observed_generations_are_not_lost() -> None:
    old = _pod()
    old["status"]["observedGeneration"] = 3
    old["status"]["conditions"] = [{"type": "Ready", "status": "True", "observedGeneration": 2}]
    new = copy.deepcopy(old)
    del new["status"]["observedGeneration"]
    new["status"]["conditions"] = [{"type": "Ready", "status": "False"}]

    status = update("pods", new, old, sub="status").obj["status"]

    assert status["observedGeneration"] == 3
    assert status["conditions"][0]["observedGeneration"] == 2


def test_addresses_agree() -> None:
    old = _pod()
    new = copy.deepcopy(old)
    new["status"]["podIP"] = "10.0.0.9"

    status = update("pods", new, old, sub="status").obj["status"]

    assert (status["podIP"], status["podIPs"]) == ("10.0.0.9", [{"ip": "10.0.0.9"}])


GRACE: dict[str, tuple[Obj, Obj, int | None, int]] = {
    "default": ({"nodeName": "n"}, {}, None, 30),
    "own": ({"nodeName": "n", "terminationGracePeriodSeconds": 7}, {}, None, 7),
    "asked for": ({"nodeName": "n"}, {}, 5, 5),
    "not scheduled": ({}, {}, 5, 0),
    "ended": ({"nodeName": "n"}, {"phase": "Failed"}, None, 0),
    "less than nothing": ({"nodeName": "n"}, {}, -3, 1),
}


@pytest.mark.parametrize(("spec", "status", "asked", "want"), GRACE.values(), ids=GRACE.keys())
def test_grace_of_a_deletion(spec: Obj, status: Obj, asked: int | None, want: int) -> None:
    pod = _pod(**spec)
    pod["status"].update(status)

    assert deletion_grace(pod, asked) == want
