"""kr8s: an asynchronous client that asks the server what there is."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import kr8s
import kr8s.asyncio
import pytest
from kr8s.asyncio.objects import ConfigMap, Pod, new_class

import manifests
from sully.testing.patience import PATIENCE

pytestmark = [
    pytest.mark.e2e,
    # It has not heard of so new a version yet.
    pytest.mark.filterwarnings("ignore:Kubernetes version"),
]


@pytest.fixture
async def api(kubeconfig: Path, namespace: str) -> AsyncIterator[Any]:
    """Log in with the kubeconfig."""
    made: Any = await kr8s.asyncio.api(kubeconfig=str(kubeconfig), namespace=namespace)
    yield made
    # The library leaves this to the end of the program.
    await made._session.aclose()


def config_map(name: str, namespace: str) -> dict[str, Any]:
    return manifests.config_map(name, {"x": "1"}, namespace=namespace, labels={"app": "a"})


async def test_objects_live_and_die(api: Any, namespace: str) -> None:
    made = await ConfigMap(config_map("a", namespace), api=api)
    await made.create()
    assert await made.exists()

    await made.patch({"data": {"y": "2"}})
    await made.label({"more": "labels"})
    await made.annotate({"why": "a test"})
    await made.refresh()
    assert made.data.to_dict() == {"x": "1", "y": "2"}
    assert dict(made.labels) == {"app": "a", "more": "labels"}
    listed = [
        configmap.name
        async for configmap in api.get(
            "configmaps", namespace=namespace, label_selector={"app": "a"}
        )
    ]
    assert listed == ["a"]

    await made.delete()
    async with asyncio.timeout(PATIENCE):
        await made.wait("delete")
    assert not await made.exists()
    with pytest.raises(kr8s.NotFoundError):
        await ConfigMap.get("a", namespace=namespace, api=api)


async def test_a_watch_shows_what_happens(api: Any, namespace: str) -> None:
    made = await ConfigMap(config_map("a", namespace), api=api)
    await made.create()
    results = []

    async with asyncio.timeout(PATIENCE):
        async for kind, obj in api.watch("configmaps", namespace=namespace, label_selector="app=a"):
            results.append((kind, obj.name))
            if kind == "ADDED":
                await made.patch({"data": {"y": "2"}})
            elif kind == "MODIFIED":
                await made.delete()
            else:
                break

    assert results == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_pods_wait_for_a_condition(api: Any, namespace: str) -> None:
    pod = await Pod(
        {
            "metadata": {"name": "p", "namespace": namespace},
            "spec": {"containers": [{"name": "c", "image": "example.com/c"}]},
        },
        api=api,
    )
    await pod.create()
    since = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": since}
        for kind in ("Ready", "ContainersReady")
    ]

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(pod.wait("condition=Ready"))
        await pod.patch({"status": {"conditions": conditions}}, subresource="status")
        await waiting

    assert await pod.ready()


async def test_kinds_that_it_does_not_know(api: Any, namespace: str) -> None:
    rules = new_class(
        kind="DeviceTaintRule", version="resource.k8s.io/v1", namespaced=False, asyncio=True
    )
    rule = await rules(
        {
            "metadata": {"name": f"rule-{namespace}"},
            "spec": {"taint": {"key": "example.com/hot", "effect": "NoSchedule"}},
        },
        api=api,
    )
    await rule.create()
    names = [item.name async for item in api.get("devicetaintrules.resource.k8s.io")]
    await rule.delete()

    assert f"rule-{namespace}" in names


async def test_what_there_is(api: Any) -> None:
    kinds = {resource["name"] for resource in await api.api_resources()}
    version = await api.version()

    assert {"pods", "configmaps", "resourceclaims", "devicetaintrules", "leases"} <= kinds
    assert version["major"] == "1"
    assert await api.whoami() == "kubernetes-admin"
