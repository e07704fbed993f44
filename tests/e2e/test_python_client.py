"""The official Python client: typed classes, dynamic client, watches, paging."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kubernetes as k8s
import pytest
from kubernetes.dynamic import DynamicClient

from e2e.raw import Raw
from sully.testing.cluster import Process
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def client(plane: Process) -> Iterator[k8s.client.ApiClient]:
    """Log in with the kubeconfig."""
    with k8s.config.new_client_from_config(str(plane.kubeconfig)) as made:
        yield made


@pytest.fixture
def core(client: k8s.client.ApiClient) -> Any:
    return k8s.client.CoreV1Api(client)


@pytest.fixture
def devices(client: k8s.client.ApiClient) -> Any:
    return k8s.client.ResourceV1Api(client)


def config_map(name: str, **data: str) -> k8s.client.V1ConfigMap:
    return k8s.client.V1ConfigMap(metadata=k8s.client.V1ObjectMeta(name=name), data=data)


def test_typed_objects_live_and_die(core: Any, namespace: str) -> None:
    made = core.create_namespaced_config_map(namespace, config_map("a", x="1"))
    made.data["y"] = "2"
    replaced = core.replace_namespaced_config_map("a", namespace, made)
    read = core.read_namespaced_config_map("a", namespace)
    gone = core.delete_namespaced_config_map("a", namespace)

    assert read.data == {"x": "1", "y": "2"}
    assert read.metadata.uid == made.metadata.uid
    assert read.metadata.resource_version == replaced.metadata.resource_version
    assert (gone["kind"], gone["status"]) == ("Status", "Success")
    with pytest.raises(k8s.client.ApiException) as caught:
        core.read_namespaced_config_map("a", namespace)
    assert (caught.value.status, caught.value.reason) == (404, "Not Found")


def test_a_stale_replace_is_a_conflict(core: Any, namespace: str) -> None:
    old = core.create_namespaced_config_map(namespace, config_map("a", x="1"))
    core.patch_namespaced_config_map("a", namespace, {"data": {"x": "2"}})

    with pytest.raises(k8s.client.ApiException) as caught:
        core.replace_namespaced_config_map("a", namespace, old)

    assert caught.value.status == 409


def test_typed_devices(devices: Any, namespace: str) -> None:
    c = k8s.client
    request = c.V1DeviceRequest(
        name="gpu",
        exactly=c.V1ExactDeviceRequest(
            device_class_name="gpu",
            tolerations=[c.V1DeviceToleration(key="k", operator="Exists", toleration_seconds=60)],
        ),
    )
    claim = c.ResourceV1ResourceClaim(
        metadata=c.V1ObjectMeta(generate_name="claim-"),
        spec=c.V1ResourceClaimSpec(devices=c.V1DeviceClaim(requests=[request])),
    )

    made = devices.create_namespaced_resource_claim(namespace, claim)
    listed = devices.list_namespaced_resource_claim(namespace)

    assert made.metadata.name.startswith("claim-")
    exactly = listed.items[0].spec.devices.requests[0].exactly
    assert (exactly.count, exactly.allocation_mode) == (1, "ExactCount")
    assert exactly.tolerations[0].toleration_seconds == 60


def test_typed_pods_are_bound_and_evicted(core: Any, namespace: str) -> None:
    c = k8s.client
    spec = c.V1PodSpec(containers=[c.V1Container(name="c", image="example.com/c")])
    core.create_namespaced_pod(namespace, c.V1Pod(metadata=c.V1ObjectMeta(name="p"), spec=spec))
    binding = c.V1Binding(
        metadata=c.V1ObjectMeta(name="p"), target=c.V1ObjectReference(kind="Node", name="n")
    )
    # The library cannot read the answer of this one as a Binding.
    core.create_namespaced_pod_binding("p", namespace, binding, _preload_content=False)
    core.patch_namespaced_pod_status("p", namespace, {"status": {"phase": "Running"}})
    pod = core.read_namespaced_pod("p", namespace)
    core.create_namespaced_pod_eviction(
        "p", namespace, c.V1Eviction(metadata=c.V1ObjectMeta(name="p"))
    )
    terminating = core.read_namespaced_pod("p", namespace)

    assert (pod.spec.node_name, pod.status.phase, pod.status.qos_class) == (
        "n",
        "Running",
        "BestEffort",
    )
    assert terminating.metadata.deletion_grace_period_seconds == 30
    assert "DisruptionTarget" not in {condition.type for condition in pod.status.conditions or ()}


PATCHES: dict[str, tuple[str, Any]] = {
    "json": ("application/json-patch+json", [{"op": "add", "path": "/data/y", "value": "2"}]),
    "merge": ("application/merge-patch+json", {"data": {"y": "2"}}),
    "strategic": ("application/strategic-merge-patch+json", {"data": {"y": "2"}}),
    "apply": (
        "application/apply-patch+yaml",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"y": "2"}},
    ),
}


@pytest.mark.parametrize("which", PATCHES)
def test_each_kind_of_patch(which: str, client: k8s.client.ApiClient, namespace: str) -> None:
    maps = DynamicClient(client).resources.get(api_version="v1", kind="ConfigMap")
    maps.create(namespace=namespace, body=config_map("a", x="1").to_dict())
    kind, body = PATCHES[which]
    extra = {"field_manager": "me"} if which == "apply" else {}

    patched = maps.patch(name="a", namespace=namespace, body=body, content_type=kind, **extra)

    assert patched.data.to_dict() == {"x": "1", "y": "2"}


def test_dynamic_server_side_apply(client: k8s.client.ApiClient, namespace: str) -> None:
    rules = DynamicClient(client).resources.get(
        api_version="resource.k8s.io/v1", kind="DeviceTaintRule"
    )
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "hot"},
        "spec": {"taint": {"key": "example.com/hot", "effect": "None"}},
    }

    rules.server_side_apply(body=rule, name="hot", field_manager="one")
    rule["spec"] = {"taint": {"key": "example.com/hot", "effect": "NoSchedule"}}
    with pytest.raises(k8s.dynamic.exceptions.ConflictError) as caught:
        rules.server_side_apply(body=rule, name="hot", field_manager="two")
    forced = rules.server_side_apply(
        body=rule, name="hot", field_manager="two", force_conflicts=True
    )

    assert 'conflict with \\"one\\": .spec.taint.effect' in str(caught.value.body)
    assert forced.spec.taint.effect == "NoSchedule"
    assert forced.metadata.generation == 2


def test_lists_come_in_pages_of_one_snapshot(core: Any, namespace: str) -> None:
    for number in range(7):
        core.create_namespaced_config_map(namespace, config_map(f"page-{number}"))

    first = core.list_namespaced_config_map(namespace, limit=3)
    core.create_namespaced_config_map(namespace, config_map("page-2-too-late"))
    pages = [first]
    while pages[-1].metadata._continue:
        token = pages[-1].metadata._continue
        pages.append(core.list_namespaced_config_map(namespace, limit=3, _continue=token))

    names = [item.metadata.name for page in pages for item in page.items]
    assert [name for name in names if name.startswith("page")] == [
        f"page-{number}" for number in range(7)
    ]
    assert first.metadata.remaining_item_count == len(names) - 3
    assert len({page.metadata.resource_version for page in pages}) == 1


def test_a_watch_shows_what_happened_since_a_list(core: Any, namespace: str) -> None:
    since = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("a"))
    core.patch_namespaced_config_map("a", namespace, {"data": {"x": "1"}})
    core.delete_namespaced_config_map("a", namespace)

    watch = k8s.watch.Watch()
    seen = []
    for event in watch.stream(
        core.list_namespaced_config_map,
        namespace,
        field_selector="metadata.name=a",
        resource_version=since,
        timeout_seconds=PATIENCE,
    ):
        seen.append((event["type"], event["object"].data))
        if len(seen) == 3:
            watch.stop()

    assert seen == [("ADDED", None), ("MODIFIED", {"x": "1"}), ("DELETED", {"x": "1"})]


def test_a_watch_ends_when_its_time_is_up(core: Any, namespace: str) -> None:
    events = list(
        k8s.watch.Watch().stream(
            core.list_namespaced_secret, namespace, timeout_seconds=1, resource_version="0"
        )
    )

    assert events == []


def test_a_mistake_is_reported_in_full(devices: Any, raw: Raw, namespace: str) -> None:
    rule = {"metadata": {"name": "bad"}, "spec": {"taint": {"key": "k", "effect": "Maybe"}}}

    with pytest.raises(k8s.client.ApiException) as caught:
        devices.create_device_taint_rule(rule)

    answer = raw.request("POST", "/apis/resource.k8s.io/v1/devicetaintrules", rule)
    assert caught.value.status == answer.code == 422
    assert answer.json()["details"]["causes"] == [
        {
            "reason": "FieldValueNotSupported",
            "message": 'Unsupported value: "Maybe": '
            'supported values: "NoExecute", "NoSchedule", "None"',
            "field": "spec.taint.effect",
        }
    ]


def test_the_version_and_the_groups(client: k8s.client.ApiClient) -> None:
    version = k8s.client.VersionApi(client).get_code()
    groups: Any = k8s.client.ApisApi(client).get_api_versions()

    assert (version.major, version.minor) == ("1", "37")
    preferred = {group.name: group.preferred_version.version for group in groups.groups}
    assert preferred["resource.k8s.io"] == preferred["apps"] == preferred["policy"] == "v1"
