"""Custom resources on a whole control plane: what controllers do with kinds that come later."""

from __future__ import annotations

import pytest

from definitions import DEFINITIONS, GROUP, Obj, custom, definition
from serving import Http, fresh

pytestmark = pytest.mark.asyncio(loop_scope="session")
MAPS = "/api/v1/namespaces/{namespace}/configmaps"


async def defined(http: Http) -> str:
    """Create a definition with a name of its own; return its plural once it is served."""
    plural = f"{fresh('things').replace('-', '')}s"
    made = definition(plural=plural)
    made["spec"]["names"] |= {"kind": "Crontab", "shortNames": []}
    made["spec"]["group"] = f"{plural}.{GROUP}"
    made["metadata"]["name"] = f"{plural}.{plural}.{GROUP}"
    async with http.watch(
        DEFINITIONS, fieldSelector=f"metadata.name={made['metadata']['name']}"
    ) as watch:
        (await http.post(DEFINITIONS, made)).ok(201)
        await watch.until(lambda event: is_established(event["object"]))
    return plural


def is_established(result: Obj) -> bool:
    conditions = result["status"].get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def collection(plural: str, namespace: str) -> str:
    return f"/apis/{plural}.{GROUP}/v1/namespaces/{namespace}/{plural}"


def thing(plural: str, name: str = "a") -> Obj:
    return custom(name) | {"apiVersion": f"{plural}.{GROUP}/v1"}


async def test_objects_go_with_their_owner(http: Http, namespace_path: str) -> None:
    namespace = namespace_path.rpartition("/")[2]
    plural = await defined(http)
    path = collection(plural, namespace)
    owner = (await http.post(MAPS.format(namespace=namespace), {"metadata": {"name": "owner"}})).ok(
        201
    )
    dependent = thing(plural)
    dependent["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    ]

    async with http.watch(path) as watch:
        (await http.post(path, dependent)).ok(201)
        (await http.delete(f"{MAPS.format(namespace=namespace)}/owner")).ok()
        events = await watch.until(lambda event: bool(event["type"] == "DELETED"))

    assert events[-1]["object"]["metadata"]["name"] == "a"


async def test_objects_own_others(http: Http, namespace_path: str) -> None:
    namespace = namespace_path.rpartition("/")[2]
    plural = await defined(http)
    path, maps = collection(plural, namespace), MAPS.format(namespace=namespace)
    owner = (await http.post(path, thing(plural))).ok(201)
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": "a",
        "uid": owner["metadata"]["uid"],
    }
    dependent = {"metadata": {"name": "dependent", "ownerReferences": [reference]}}

    async with http.watch(maps, fieldSelector="metadata.name=dependent") as watch:
        (await http.post(maps, dependent)).ok(201)
        (await http.delete(f"{path}/a")).ok()
        await watch.until(lambda event: bool(event["type"] == "DELETED"))


async def test_objects_go_with_their_namespace(http: Http, namespace_path: str) -> None:
    namespace = namespace_path.rpartition("/")[2]
    plural = await defined(http)
    path = collection(plural, namespace)

    async with http.watch(
        "/api/v1/namespaces", fieldSelector=f"metadata.name={namespace}"
    ) as watch:
        (await http.post(path, thing(plural))).ok(201)
        (await http.delete(namespace_path)).ok()
        await watch.until(lambda event: bool(event["type"] == "DELETED"))

    everywhere = f"/apis/{plural}.{GROUP}/v1/{plural}"
    assert (await http.get(everywhere)).ok()["items"] == []


async def test_quotas_count_objects(http: Http, namespace_path: str) -> None:
    plural = await defined(http)
    resource = f"count/{plural}.{plural}.{GROUP}"
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {resource: "1"}}}
    (await http.post(f"{namespace_path}/resourcequotas", quota)).ok(201)
    path = collection(plural, namespace_path.rpartition("/")[2])

    first = await http.post(path, thing(plural))
    second = await http.post(path, thing(plural, "b"))

    assert (first.code, second.code) == (201, 403)
    assert f"exceeded quota: few, requested: {resource}=1" in second.message
