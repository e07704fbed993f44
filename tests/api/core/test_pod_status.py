"""What may be reported about a pod."""

import copy
from typing import Any

import pytest

from api.core.bodies import pod
from api.core.writing import create, update
from api.resource.bodies import SUBDOMAIN_TEXT
from sully.api.core.pods.strategy import deletion_grace

Obj = dict[str, Any]

STATUS = "allocatedResourcesStatus"
ALLOCATED = "status.containerStatuses"


def _allocated(resource: str, name: str = "c", **report: str) -> Obj:
    reports = [{"resourceID": "r", **report}]
    return {"name": name, STATUS: [{"name": resource, "resources": reports}]}


CASES: dict[str, tuple[Obj, list[str]]] = {
    "any phase": ({"phase": "Dancing"}, []),
    "claim of the pod": ({"resourceClaimStatuses": [{"name": "gpu"}]}, []),
    "claim twice": (
        {"resourceClaimStatuses": [{"name": "gpu"}, {"name": "gpu"}]},
        ['status.resourceClaimStatuses[1].name: Duplicate value: "gpu"'],
    ),
    "health of what containers have": (
        {
            "containerStatuses": [
                _allocated("claim:gpu", health="Healthy"),
                _allocated("cpu", health="Unknown"),
            ]
        },
        [],
    ),
    "health of what containers do not have": (
        {
            "containerStatuses": [
                _allocated("claim:gpu/one", health="Healthy"),
                _allocated("memory", health="Odd", message=""),
                _allocated("memory", name="other", health="Healthy"),
            ],
            "ephemeralContainerStatuses": [_allocated("cpu", health="Healthy")],
        },
        [
            f'{ALLOCATED}[0].{STATUS}[0].name: Invalid value: "claim:gpu/one": must match one of'
            " the container's resource claims as 'claim:<claimName>/<requestName>' when"
            " container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty",
            f'{ALLOCATED}[1].{STATUS}[0].name: Invalid value: "memory": must match one of the'
            " container's resource requests",
            f'{ALLOCATED}[1].{STATUS}[0].resources[0].health: Unsupported value: "Odd": supported'
            ' values: "Healthy", "Unhealthy", "Unknown"',
            f"{ALLOCATED}[1].{STATUS}[0].resources[0].message: Required value: must be non-empty"
            " if specified",
            f"status.ephemeralContainerStatuses[0].{STATUS}: Forbidden: must not be specified in"
            " container status",
        ],
    ),
    "addresses of which one is none": (
        {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "2001:db8::x"}]},
        [
            'status.podIPs[1]: Invalid value: "2001:db8::x": must be a valid IP address, (e.g.'
            " 10.9.8.7 or 2001:db8::ffff)",
            "status.podIPs: Internal error: failed to check for dual stack with error:invalid"
            " IP[1]: 2001:db8::x",
            'status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"2001:db8::x"}]: may specify'
            " no more than one IP for each IP family",
        ],
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
    "observed generations": (
        {"observedGeneration": -1, "conditions": [{"type": "Ready", "observedGeneration": -2}]},
        [
            "status.conditions[0].observedGeneration: Invalid value: -2: must be a non-negative"
            " integer",
            "status.observedGeneration: Invalid value: -1: must be a non-negative integer",
        ],
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
    old["spec"]["containers"][0]["resources"] = {
        "claims": [{"name": "gpu"}],
        "requests": {"cpu": "1"},
    }
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


SPECS_OF_STATUS_WRITES: dict[str, Obj] = {
    "as stored": {"containers": [{"name": "c", "image": "example.com/app:1"}]},
    "without containers": {},
    "of another form": {
        "containers": [{"name": "d", "livenessProbe": {"httpGet": {"port": 80}}}],
        "volumes": [{"name": "v", "secret": {}}],
        "restartPolicy": "Never",
    },
}


@pytest.mark.parametrize("spec", SPECS_OF_STATUS_WRITES.values(), ids=SPECS_OF_STATUS_WRITES.keys())
def test_a_status_write_keeps_the_spec_whatever_it_sends(spec: Obj) -> None:
    old = create("pods", pod()).obj
    body = {**pod(), "spec": spec, "status": {"phase": "Running", "podIP": "10.0.0.1"}}

    written = update("pods", body, old, sub="status")

    assert written.problems == []
    assert written.obj["spec"] == old["spec"]
    assert written.obj["status"]["podIPs"] == [{"ip": "10.0.0.1"}]
