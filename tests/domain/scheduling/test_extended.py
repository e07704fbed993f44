"""Extended resources that device classes stand for, and the claim a pod gets for them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import msgspec
import pytest

from sully.api.resource.types import DeviceClass
from sully.domain.claims.lifecycle import EXTENDED
from sully.domain.scheduling.extended import (
    Backings,
    Mapped,
    extend,
    generated_name,
    mapping_status,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import may_be_backed, requests_of
from sully.testing import builders
from sully.testing.builders import pod_as

GPU, NIC = "example.com/gpu", "example.com/nic"


def class_(name: str, resource: str | None = None, *, day: int = 1) -> DeviceClass:
    made = builders.class_(name, extended_resource_name=resource)
    created = datetime(2030, 1, day, tzinfo=UTC)
    return msgspec.structs.replace(
        made, metadata=msgspec.structs.replace(made.metadata, creation_timestamp=created)
    )


def container(name: str, *, restart: str = "", **requests: str) -> dict[str, Any]:
    expected = {{"gpu": GPU, "nic": NIC}.get(key, key): value for key, value in requests.items()}
    result: dict[str, Any] = {"name": name, "resources": {"requests": expected}}
    return result | ({"restartPolicy": restart} if restart else {})


def pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> Pod:
    spec = {"containers": list(containers), "initContainers": list(init)}
    return pod_as(Pod, "p", namespace="a", node="", uid="u", spec=spec)


CLASSES = {GPU: class_("gpus", GPU), NIC: class_("nics", NIC)}


def asked(target: Pod) -> tuple[dict[str, tuple[str, int]], list[tuple[str, str, str]]]:
    """Return the requests by name, and which container uses which for what."""
    expected = requests_of(target)
    result = extend(target, {name: entry for name, entry in CLASSES.items() if name in expected})
    requests = {
        request.name: (request.exactly.device_class_name, request.exactly.count)
        for request in result.claim.spec.devices.requests or ()
        if request.exactly is not None
    }
    return requests, [
        (mapping.container, mapping.resource, mapping.request) for mapping in result.mappings
    ]


G, N = "gpus", "nics"
CASES: dict[str, tuple[Pod, dict[str, tuple[str, int]], list[tuple[str, str, str]]]] = {
    "one container": (
        pod(container("c", gpu="2")),
        {"container-0-request-0": (G, 2)},
        [("c", GPU, "container-0-request-0")],
    ),
    "requests are numbered in order of their names, also those of the node": (
        pod(container("c", cpu="1", gpu="2", nic="1")),
        {"container-0-request-1": (G, 2), "container-0-request-2": (N, 1)},
        [("c", GPU, "container-0-request-1"), ("c", NIC, "container-0-request-2")],
    ),
    "two containers": (
        pod(container("c", gpu="1"), container("d"), container("e", gpu="3")),
        {"container-0-request-0": (G, 1), "container-2-request-0": (G, 3)},
        [("c", GPU, "container-0-request-0"), ("e", GPU, "container-2-request-0")],
    ),
    "an init container uses what later ones have": (
        pod(container("c", gpu="2"), init=(container("i", gpu="1"),)),
        {"container-1-request-0": (G, 2)},
        [("c", GPU, "container-1-request-0"), ("i", GPU, "container-1-request-0")],
    ),
    "an init container needs more": (
        pod(container("c", gpu="2"), init=(container("i", gpu="5"),)),
        {"container-0-request-0": (G, 3), "container-1-request-0": (G, 2)},
        [
            ("c", GPU, "container-1-request-0"),
            ("i", GPU, "container-1-request-0"),
            ("i", GPU, "container-0-request-0"),
        ],
    ),
    "the neediest of the init containers counts for all": (
        pod(
            container("c", gpu="1"),
            init=(container("i", gpu="3"), container("j", gpu="4")),
        ),
        {"container-1-request-0": (G, 3), "container-2-request-0": (G, 1)},
        [
            ("c", GPU, "container-2-request-0"),
            ("i", GPU, "container-2-request-0"),
            ("i", GPU, "container-1-request-0"),
            ("j", GPU, "container-2-request-0"),
            ("j", GPU, "container-1-request-0"),
        ],
    ),
    "a sidecar keeps its devices": (
        pod(container("c", gpu="1"), init=(container("s", restart="Always", gpu="1"),)),
        {"container-0-request-0": (G, 1), "container-1-request-0": (G, 1)},
        [("s", GPU, "container-0-request-0"), ("c", GPU, "container-1-request-0")],
    ),
}


@pytest.mark.parametrize(("target", "requests", "mappings"), CASES.values(), ids=CASES.keys())
def test_the_claim_of_a_pod(
    target: Pod, requests: dict[str, tuple[str, int]], mappings: list[tuple[str, str, str]]
) -> None:
    assert asked(target) == (requests, mappings)


def test_the_claim_reports_whose_it_is() -> None:
    claim = extend(pod(container("c", gpu="1")), {GPU: CLASSES[GPU]}).claim
    owner = claim.metadata.controller()

    assert claim.metadata.annotations == {EXTENDED: "true"}
    assert claim.metadata.generate_name == "p-extended-resources-"
    assert owner is not None
    assert (owner.kind, owner.name, owner.uid) == ("Pod", "p", "u")
    assert generated_name(claim, "abcde") == "p-extended-resources-abcde"


def test_the_status_of_the_pod() -> None:
    assert mapping_status([Mapped("c", GPU, "r")], "claim") == {
        "requestMappings": [{"containerName": "c", "resourceName": GPU, "requestName": "r"}],
        "resourceClaimName": "claim",
    }


STANDING: dict[str, tuple[tuple[DeviceClass, ...], str, str]] = {
    "by the name it gives": ((class_("gpus", GPU),), GPU, "gpus"),
    "by its own name": ((class_("gpus"),), "deviceclass.resource.kubernetes.io/gpus", "gpus"),
    "nobody": ((class_("gpus", GPU),), NIC, ""),
    "the newest of two": ((class_("a", GPU, day=1), class_("b", GPU, day=2)), GPU, "b"),
    "of two that are as new the first by name": ((class_("b", GPU), class_("a", GPU)), GPU, "a"),
}


@pytest.mark.parametrize(("classes", "resource", "want"), STANDING.values(), ids=STANDING.keys())
def test_which_class_stands_for_a_resource(
    classes: tuple[DeviceClass, ...], resource: str, want: str
) -> None:
    for order in permutations(classes):
        backings = Backings()
        for item in order:
            backings.change(None, item)
        result = backings.find(resource)
        assert (result.metadata.name if result is not None else "") == want


def test_a_class_that_stands_for_something_else_now() -> None:
    backings, old, new = Backings(), class_("gpus", GPU), class_("gpus", NIC)
    backings.change(None, old)
    backings.change(old, new)
    assert backings.find(GPU) is None
    assert list(backings.backed({NIC: 1, "cpu": 1})) == [NIC]
    backings.change(new, None)
    assert backings.backed({NIC: 1}) == {}


@pytest.mark.parametrize(
    ("resource", "want"),
    [
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/x", False),
        ("requests.example.com/x", False),
        (GPU, True),
        ("deviceclass.resource.kubernetes.io/x", True),
    ],
)
def test_what_may_be_backed(resource: str, want: bool) -> None:
    assert may_be_backed(resource) is want


def test_what_devices_provide_is_not_taken_from_the_node() -> None:
    mapping = {"containerName": "c", "resourceName": GPU, "requestName": "r"}
    status = {"resourceClaimName": "x", "requestMappings": [mapping]}
    spec = {"nodeName": "n", "containers": [container("c", gpu="1", cpu="1")]}
    bound = msgspec.convert({"spec": spec, "status": {"extendedResourceClaimStatus": status}}, Pod)

    assert list(requests_of(bound)) == ["cpu"]
