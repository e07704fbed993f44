"""Responses in protobuf: the same objects as in JSON, for every verb."""

from __future__ import annotations

from typing import Any

import pytest

from serving import Answer, Asgi, local
from sully.api.tables import META
from sully.machinery.serialization.protobuf import read_envelope, read_message
from sully.machinery.serialization.protobuf_wire import fields_of
from sully.server.http.protobuf.types import type_of

Obj = dict[str, Any]
PROTOBUF = "application/vnd.kubernetes.protobuf"
REPRESENTATIONS = f"application/json, application/yaml, {PROTOBUF}"
METADATA = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
DEFAULT = "/api/v1/namespaces/default"
PODS = f"{DEFAULT}/pods"
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
OBJECTS: dict[str, tuple[str, Obj]] = {
    "configmap with binary data": (
        f"{DEFAULT}/configmaps",
        {"metadata": {"name": "a", "labels": {"x": ""}}, "binaryData": {"b": "AAEC"}, "data": {}},
    ),
    "pod with embedded messages": (
        PODS,
        {
            "metadata": {"name": "web", "annotations": {"x": "é" * 100}},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "ports": [{"containerPort": 80}],
                        "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 3},
                        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                    }
                ],
                "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}],
                "terminationGracePeriodSeconds": 0,
            },
        },
    ),
    "rule with a time": (
        RULES,
        {
            "metadata": {"name": "hot"},
            "spec": {
                "deviceSelector": {"driver": "gpu.example.com"},
                "taint": {
                    "key": "example.com/hot",
                    "effect": "NoSchedule",
                    "timeAdded": "2026-01-02T03:04:05Z",
                },
            },
        },
    ),
    "slice with attributes": (
        "/apis/resource.k8s.io/v1/resourceslices",
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "n",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": "gpu-0",
                        "attributes": {"index": {"int": -7}, "ok": {"bool": False}},
                        "capacity": {"memory": {"value": "80Gi"}},
                    }
                ],
            },
        },
    ),
    "claim with opaque parameters": (
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
        {
            "metadata": {"name": "c"},
            "spec": {
                "devices": {
                    "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}],
                    "config": [
                        {"opaque": {"driver": "gpu.example.com", "parameters": {"a": [1, "x"]}}}
                    ],
                }
            },
        },
    ),
    "lease with microseconds": (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {"metadata": {"name": "l"}, "spec": {"renewTime": "1969-12-31T23:59:59.250000Z"}},
    ),
    "definition with schemas": (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": "boxes.example.com"},
            "spec": {
                "group": "example.com",
                "names": {"plural": "boxes", "kind": "Box"},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "number", "minimum": 0.5, "default": 1},
                                    "tags": {
                                        "type": "array",
                                        "items": {"type": "string", "enum": ["a", "b"]},
                                    },
                                    "free": {"type": "object", "additionalProperties": True},
                                },
                            }
                        },
                    }
                ],
            },
        },
    ),
    "budget with a percentage": (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": {"minAvailable": "50%"}},
    ),
}


def opened(server: Asgi, raw: bytes) -> Obj:
    envelope = read_envelope(raw)
    kind = type_of(server.api.scheme, envelope.api_version, envelope.kind)
    message = read_message(envelope.raw, kind)
    return {"kind": envelope.kind, "apiVersion": envelope.api_version, **message}


def chunks(raw: bytes) -> list[tuple[int, bytes]]:
    return [(number, part) for number, _, part in fields_of(raw) if isinstance(part, bytes)]


def without_empty(value: Any) -> Any:
    """Remove empty lists, maps and null, which protobuf cannot decide from what is not there."""
    if isinstance(value, dict):
        fields = {
            key: without_empty(item) for key, item in value.items() if item not in ([], {}, None)
        }
        return fields
    return [without_empty(item) for item in value] if isinstance(value, list) else value


def shown(server: Asgi, answer: Answer) -> Obj:
    assert answer.header("content-type") == PROTOBUF
    result: Obj = without_empty(opened(server, answer.body))
    return result


async def make(server: Asgi, path: str, body: Obj) -> Obj:
    if path == PODS:
        await server.post(f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "default"}})
    created: Obj = (await server.post(path, body)).ok(201)
    return created


@pytest.mark.parametrize(("path", "body"), OBJECTS.values(), ids=OBJECTS.keys())
async def test_an_object_is_the_same_as_in_json(path: str, body: Obj) -> None:
    async with local() as server:
        created = await make(server, path, body)
        answer = await server.get(f"{path}/{created['metadata']['name']}", f"{PROTOBUF}, */*")

        assert shown(server, answer) == without_empty(created)


@pytest.mark.parametrize(("path", "body"), OBJECTS.values(), ids=OBJECTS.keys())
async def test_a_list_is_the_same_as_in_json(path: str, body: Obj) -> None:
    async with local() as server:
        created = await make(server, path, body)
        listed = (await server.get(path)).ok()
        answer = await server.get(path, PROTOBUF)

        assert answer.header("content-type") == PROTOBUF
        envelope = read_envelope(answer.body)
        item = type_of(server.api.scheme, created["apiVersion"], created["kind"])
        parts = chunks(envelope.raw)
        items = [read_message(raw, item) for number, raw in parts if number == 2]
        meta = read_message(parts[0][1], server.api.scheme.tables.get(META, "ListMeta"))
        assert envelope.kind == listed["kind"]
        assert meta == listed["metadata"]
        assert [without_empty(item) for item in items] == without_empty(listed["items"])


async def test_writes_and_failures_are_answered_in_protobuf() -> None:
    headers = {"accept": f"{PROTOBUF},application/json"}
    maps = f"{DEFAULT}/configmaps"
    body = {"metadata": {"name": "a"}}
    async with local() as server:
        created = await server.call("POST", maps, body, headers=headers)
        again = await server.call("POST", maps, body, headers=headers)
        deleted = await server.call("DELETE", f"{maps}/a", headers=headers)

        assert (created.code, shown(server, created)["kind"]) == (201, "ConfigMap")
        assert (again.code, shown(server, again)["reason"]) == (409, "AlreadyExists")
        assert shown(server, again)["details"] == {"name": "a", "kind": "configmaps"}
        assert (deleted.code, shown(server, deleted)["status"]) == (200, "Success")


async def test_metadata_only() -> None:
    async with local() as server:
        created = await make(server, f"{DEFAULT}/configmaps", {"metadata": {"name": "a"}})
        answer = await server.get(f"{DEFAULT}/configmaps/a", METADATA)
        listed = await server.get(
            f"{DEFAULT}/configmaps", METADATA.replace("Metadata;", "MetadataList;")
        )

        got = shown(server, answer)
        assert (got["kind"], got["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert got["metadata"] == without_empty(created["metadata"])
        assert read_envelope(listed.body).kind == "PartialObjectMetadataList"


NOT_IN_PROTOBUF = {
    "a table": (f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1,application/json", DEFAULT),
    "a kind that is a custom resource": (
        f"{PROTOBUF},application/json",
        CLUSTERS,
    ),
}


@pytest.mark.parametrize(("accept", "path"), NOT_IN_PROTOBUF.values(), ids=NOT_IN_PROTOBUF.keys())
async def test_the_next_form_is_used(accept: str, path: str) -> None:
    async with local() as server:
        answer = await server.get(path, accept)

    assert answer.ok()["kind"]
    assert answer.header("content-type") == "application/json"


async def test_what_has_no_form_in_protobuf_is_not_acceptable() -> None:
    async with local() as server:
        clusters = await server.get(CLUSTERS, PROTOBUF)
        html = await server.get(PODS, "text/html")

    accepted = f"only the following media types are accepted: {REPRESENTATIONS}"
    assert (clusters.code, clusters.message) == (406, accepted)
    assert (html.code, html.message.partition("\n\n")[0]) == (406, "406: Not Acceptable")


def frames(raw: bytes) -> list[tuple[str, bytes]]:
    """Return the type and the object of each event of a watch."""
    events = []
    while raw:
        size = int.from_bytes(raw[:4], "big")
        parts = dict(chunks(raw[4 : 4 + size]))
        embedded = dict(chunks(parts[2]))
        events.append((parts[1].decode(), embedded[1]))
        raw = raw[4 + size :]
    return events


async def test_a_watch_sends_frames() -> None:
    maps = f"{DEFAULT}/configmaps"
    headers = {"accept": PROTOBUF}
    async with local() as server:
        created = await make(server, maps, {"metadata": {"name": "a"}, "data": {"k": "v"}})
        initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        options = {"allowWatchBookmarks": "true", **initial}
        async with server.watch(maps, headers, **options) as sent:
            await sent.reached(lambda sent: len(frames(b"".join(sent.chunks))) == 2)
            deleted = (await server.delete(f"{maps}/a")).ok()
            await sent.reached(lambda sent: len(frames(b"".join(sent.chunks))) == 3)
            events = frames(b"".join(sent.chunks))
            media = dict(sent.headers)["content-type"]

        objects = [without_empty(opened(server, raw)) for _, raw in events]
        assert media == f"{PROTOBUF};stream=watch"
        assert [kind for kind, _ in events] == ["ADDED", "BOOKMARK", "DELETED"]
        assert objects[0] == without_empty(created)
        assert objects[1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert (objects[2]["data"], deleted["status"]) == ({"k": "v"}, "Success")
