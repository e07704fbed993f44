"""A whole control plane: the controllers together, each with no more rights than its role gives."""

from __future__ import annotations

from typing import Any

import pytest

import manifests
from serving import Http, Obj

pytestmark = pytest.mark.asyncio(loop_scope="session")
FOREGROUND = {"propagationPolicy": "Foreground"}
READY = {
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}
        ],
    }
}


def apps(namespace_path: str, plural: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace_path.rpartition('/')[2]}/{plural}"


def policy(namespace_path: str) -> str:
    return f"/apis/policy/v1/namespaces/{namespace_path.rpartition('/')[2]}/poddisruptionbudgets"


def deployment(image: str = "i:1") -> Obj:
    return manifests.deployment("web", 2, image)


async def until(http: Http, path: str, done: Any, name: str = "") -> list[Obj]:
    """Follow a collection until it is as wanted; return it."""
    results: dict[str, Obj] = {}
    query = {"fieldSelector": f"metadata.name={name}"} if name else {}
    listed = (await http.get(path, **query)).ok()
    results = {item["metadata"]["name"]: item for item in listed["items"]}
    if done(list(results.values())):
        return list(results.values())
    version = listed["metadata"]["resourceVersion"]
    async with http.watch(path, resourceVersion=version, **query) as lines:
        while not done(list(results.values())):
            event = await lines.next()
            assert event is not None, f"the watch of {path} ended: {sorted(results)}"
            obj = event["object"]
            results[obj["metadata"]["name"]] = obj
            if event["type"] == "DELETED":
                del results[obj["metadata"]["name"]]
    return list(results.values())


def images(pods: list[Obj]) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods)


async def bring_up(http: Http, namespace_path: str, image: str) -> None:
    """Make pods of an image ready, as they are created, until there are only those."""
    while True:
        pods = (await http.get(f"{namespace_path}/pods")).ok()["items"]
        waiting = [pod for pod in pods if pod["status"]["phase"] == "Pending"]
        for entry in waiting:
            await http.patch(f"{namespace_path}/pods/{entry['metadata']['name']}/status", READY)
        if waiting:
            continue
        if images(pods) == [image] * 2:
            return
        seen = {pod["metadata"]["uid"] for pod in pods}

        def changed(result: list[Obj], seen: set[str] = seen) -> bool:
            return {item["metadata"]["uid"] for item in result} != seen

        await until(http, f"{namespace_path}/pods", changed)


async def test_the_life_of_a_deployment(http: Http, namespace_path: str) -> None:
    (await http.post(apps(namespace_path, "deployments"), deployment())).ok(201)
    await bring_up(http, namespace_path, "i:1")
    (await http.patch(f"{apps(namespace_path, 'deployments')}/web", deployment("i:2"))).ok(200)
    await bring_up(http, namespace_path, "i:2")

    def complete(result: list[Obj]) -> bool:
        return result[0]["status"].get("availableReplicas") == 2

    (done,) = await until(http, apps(namespace_path, "deployments"), complete, "web")
    assert done["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    sets = (await http.get(apps(namespace_path, "replicasets"))).ok()["items"]
    assert sorted(set_["spec"]["replicas"] for set_ in sets) == [0, 2]

    (await http.delete(f"{apps(namespace_path, 'deployments')}/web", FOREGROUND)).ok(200)
    await until(http, apps(namespace_path, "deployments"), lambda result: not result)
    assert (await http.get(apps(namespace_path, "replicasets"))).ok()["items"] == []
    assert (await http.get(f"{namespace_path}/pods")).ok()["items"] == []


async def test_a_budget_holds(http: Http, namespace_path: str) -> None:
    (await http.post(apps(namespace_path, "deployments"), deployment())).ok(201)
    budget = {
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
    }
    (await http.post(policy(namespace_path), budget)).ok(201)
    await bring_up(http, namespace_path, "i:1")
    await until(
        http, policy(namespace_path), lambda result: result[0]["status"]["disruptionsAllowed"] == 1
    )

    first, second = (await http.get(f"{namespace_path}/pods")).ok()["items"]
    responses = [
        (
            await http.post(f"{namespace_path}/pods/{name}/eviction", {"metadata": {"name": name}})
        ).code
        for name in (first["metadata"]["name"], second["metadata"]["name"])
    ]

    assert responses == [201, 429]


async def test_who_names_an_owner_in_another_namespace_is_deleted_and_is_reported(
    http: Http, namespace_path: str
) -> None:
    owner = (
        await http.post(
            "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "x"}}
        )
    ).ok(201)
    named = {name: owner["metadata"][name] for name in ("name", "uid")}
    refs = [{"apiVersion": "v1", "kind": "ConfigMap", **named}]
    child = {"metadata": {"name": "child", "ownerReferences": refs}}
    (await http.post(f"{namespace_path}/configmaps", child)).ok(201)

    await until(http, f"{namespace_path}/configmaps", lambda result: not result, "child")
    (reported,) = await until(http, f"{namespace_path}/events", lambda result: len(result) == 1)

    assert reported["reason"] == "OwnerRefInvalidNamespace"
    (await http.delete(f"/api/v1/namespaces/default/configmaps/{named['name']}")).ok(200)
