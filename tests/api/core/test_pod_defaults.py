"""What pods get that their authors left out."""

from typing import Any

import pytest

from api.core.bodies import container, mounted, pod
from api.core.writing import create
from sully.api.core.pods.images import pull_policy
from sully.machinery.serialization.codec import to_json

IMAGES = {
    "nginx": "Always",
    "nginx:latest": "Always",
    "nginx:1.27": "IfNotPresent",
    "registry.example.com:5000/team/app": "Always",
    "registry.example.com:5000/team/app:v1": "IfNotPresent",
    "app@sha256:0123": "IfNotPresent",
    "app:latest@sha256:0123": "Always",
    "Not/An image": "IfNotPresent",
}


@pytest.mark.parametrize(("image", "want"), IMAGES.items())
def test_pull_policy(image: str, want: str) -> None:
    assert pull_policy(image) == want


def _container(**fields: Any) -> dict[str, Any]:
    return create("pods", pod(container(**fields))).obj["spec"]["containers"][0]


CONTAINERS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "message path": ({}, "terminationMessagePath", "/dev/termination-log"),
    "message policy": ({}, "terminationMessagePolicy", "File"),
    "protocol of a port": (
        {"ports": [{"containerPort": 80}]},
        "ports",
        [{"containerPort": 80, "protocol": "TCP"}],
    ),
    "limits become requests": (
        {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}},
        "resources",
        {
            "limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "500m", "memory": "1Gi"},
        },
    ),
    "amounts are rounded up to thousandths": (
        {"resources": {"requests": {"cpu": "100u"}}},
        "resources",
        {"requests": {"cpu": "1m"}},
    ),
    "probe": (
        {"livenessProbe": {"httpGet": {"port": 80}}},
        "livenessProbe",
        {
            "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
    ),
    "hook": (
        {"lifecycle": {"preStop": {"httpGet": {"port": "web"}}}},
        "lifecycle",
        {"preStop": {"httpGet": {"port": "web", "path": "/", "scheme": "HTTP"}}},
    ),
    "field of the pod in a variable": (
        {"env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        "env",
        [
            {
                "name": "N",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}},
            }
        ],
    ),
}


@pytest.mark.parametrize(("value", "name", "want"), CONTAINERS.values(), ids=CONTAINERS.keys())
def test_container(value: dict[str, Any], name: str, want: Any) -> None:
    assert _container(**value)[name] == want


VOLUMES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no source": ({}, {"emptyDir": {}}),
    "secret": (
        {"secret": {"secretName": "s"}},
        {"secret": {"secretName": "s", "defaultMode": 420}},
    ),
    "config map with its own mode": (
        {"configMap": {"name": "m", "defaultMode": 256}},
        {"configMap": {"name": "m", "defaultMode": 256}},
    ),
    "host path": ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
    "token": (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {
            "projected": {
                "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                "defaultMode": 420,
            }
        },
    ),
    "image": (
        {"image": {"reference": "example.com/data:1"}},
        {"image": {"reference": "example.com/data:1", "pullPolicy": "IfNotPresent"}},
    ),
}


@pytest.mark.parametrize(("value", "want"), VOLUMES.values(), ids=VOLUMES.keys())
def test_volume(value: dict[str, Any], want: dict[str, Any]) -> None:
    written = create("pods", mounted({"name": "v", **value}))

    assert written.obj["spec"]["volumes"][0] == {"name": "v", **want}
    assert written.problems == []


def test_host_network_takes_ports_of_the_node() -> None:
    body = pod(container(ports=[{"containerPort": 80}]), hostNetwork=True)

    port = create("pods", body).obj["spec"]["containers"][0]["ports"][0]

    assert port == {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}


def test_account_is_known_under_its_old_name() -> None:
    spec = create("pods", pod(serviceAccount="default")).obj["spec"]

    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"


QUALITIES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "nothing asked for": ([{}], "BestEffort"),
    "other resources do not count": ([{"limits": {"example.com/x": "1"}}], "BestEffort"),
    "requests only": ([{"requests": {"cpu": "1"}}], "Burstable"),
    "only one limit": ([{"limits": {"cpu": "1"}}], "Burstable"),
    "limits for both": ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
    "request below the limit": (
        [{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}],
        "Burstable",
    ),
    "one container without": ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
}


@pytest.mark.parametrize(("parts", "want"), QUALITIES.values(), ids=QUALITIES.keys())
def test_quality_of_service(parts: list[dict[str, Any]], want: str) -> None:
    containers = [container(name=f"c{i}", resources=part) for i, part in enumerate(parts)]

    assert create("pods", pod(*containers)).obj["status"]["qosClass"] == want


def test_pod_level_requests_follow_containers_then_limits() -> None:
    first = container(name="first", resources={"requests": {"cpu": "3"}})
    body = pod(
        container(resources={"requests": {"cpu": "1"}}),
        initContainers=[first],
        resources={"limits": {"cpu": "4", "memory": "1Gi"}},
    )

    assert create("pods", body).obj["spec"]["resources"] == {
        "limits": {"cpu": "4", "memory": "1Gi"},
        "requests": {"cpu": "3", "memory": "1Gi"},
    }


def test_fields_behind_gates_are_dropped_from_each_of_equal_specs() -> None:
    plain, odd = pod(container()), pod(container(lifecycle={"stopSignal": "SIGTERM"}))

    specs = [create("pods", body).obj["spec"] for body in (plain, odd, plain, odd)]

    assert all("lifecycle" not in spec["containers"][0] for spec in specs)


def test_specs_that_differ_only_in_the_name_of_a_token_are_written_alike() -> None:
    first, second = (create("pods", pod()).obj["spec"] for _ in range(2))
    names = [spec["volumes"][0]["name"] for spec in (first, second)]

    assert to_json(first).replace(names[0].encode(), names[1].encode()) == to_json(second)
