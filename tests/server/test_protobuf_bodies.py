"""Requests in protobuf: every kind of body that Go clients send."""

import base64
from typing import Any

import pytest

import manifests
from machinery.protobuf.encoder import RECORDED, chunk, envelope, metadata, short, whole
from serving import Asgi, local

PROTOBUF = "application/vnd.kubernetes.protobuf"
DEFAULT = "/api/v1/namespaces/default"
PODS = f"{DEFAULT}/pods"
MAPS = f"{DEFAULT}/configmaps"
SERVED = [
    record
    for record in RECORDED
    if record["command"].startswith("create") and not record["path"].endswith("/token")
]
POD = manifests.pod("web")


async def make(server: Asgi, path: str, body: Any) -> Any:
    return (await server.post(path, body)).ok(201)


async def make_pod(server: Asgi) -> None:
    await make(server, f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "default"}})
    await make(server, PODS, POD)


@pytest.mark.parametrize("record", SERVED, ids=short)
async def test_both_forms_of_a_recorded_request_make_the_same_object(record: Any) -> None:
    made = []
    for body, media in ((record["means"], "application/json"), (_body(record), PROTOBUF)):
        async with local() as server:
            if record["command"] != "create namespace shop":
                await make(server, "/api/v1/namespaces", {"metadata": {"name": "shop"}})
            answer = await server.post(record["path"], body, media, fieldValidation="Strict")
            made.append(answer.ok(201))

    assert made[0] == made[1]


def _body(record: Any) -> bytes:
    return base64.b64decode(record["body"])


async def test_the_kind_may_be_left_to_the_path() -> None:
    async with local() as server:
        answer = await server.post(MAPS, envelope("", "", metadata(name="a")), PROTOBUF)

    assert answer.ok(201)["kind"] == "ConfigMap"


async def test_replace() -> None:
    async with local() as server:
        await make(server, MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}})
        data = chunk(2, chunk(1, "x") + chunk(2, "2"))
        body = envelope("v1", "ConfigMap", metadata(name="a") + data)
        answer = await server.put(f"{MAPS}/a", body, PROTOBUF)

    assert answer.ok(200)["data"] == {"x": "2"}


async def test_options_of_a_deletion() -> None:
    async with local() as server:
        uid = (await make(server, MAPS, {"metadata": {"name": "a"}}))["metadata"]["uid"]
        other = envelope("v1", "DeleteOptions", chunk(2, chunk(1, "other")))
        refused = await server.call("DELETE", f"{MAPS}/a", other, PROTOBUF)
        same = envelope("v1", "DeleteOptions", whole(1, 0) + chunk(2, chunk(1, uid)))
        gone = await server.call("DELETE", f"{MAPS}/a", same, PROTOBUF)

    assert refused.code == 409
    assert gone.ok(200)["status"] == "Success"


async def test_eviction() -> None:
    async with local() as server:
        await make_pod(server)
        expected = metadata(name="web", namespace="default") + chunk(2, whole(1, 0))
        body = envelope("policy/v1", "Eviction", expected)
        answer = await server.post(f"{PODS}/web/eviction", body, PROTOBUF)
        after = await server.get(f"{PODS}/web")

    assert answer.ok(201)["status"] == "Success"
    assert after.code == 404


async def test_binding() -> None:
    async with local() as server:
        await make_pod(server)
        node = chunk(2, chunk(1, "Node") + chunk(3, "n1"))
        body = envelope("v1", "Binding", metadata(name="web") + node)
        (await server.post(f"{PODS}/web/binding", body, PROTOBUF)).ok(201)
        pod = await server.get(f"{PODS}/web")

    assert pod.ok()["spec"]["nodeName"] == "n1"


async def test_scale() -> None:
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": POD["spec"]}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    async with local() as server:
        await make(server, deployments, {"metadata": {"name": "web"}, "spec": spec})
        expected = metadata(name="web", namespace="default") + chunk(2, whole(1, 4))
        body = envelope("autoscaling/v1", "Scale", expected)
        answer = await server.put(f"{deployments}/web/scale", body, PROTOBUF)

    assert answer.ok(200)["spec"] == {"replicas": 4}


async def test_a_slice_with_its_devices() -> None:
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    version = chunk(1, "model") + chunk(2, chunk(4, "a100"))
    taint = chunk(1, "example.com/broken") + chunk(3, "NoSchedule")
    device = chunk(1, "gpu-0") + chunk(2, version) + chunk(8, taint)
    pool = chunk(1, "n1") + whole(2, 1) + whole(3, 1)
    spec = chunk(1, "gpu.example.com") + chunk(2, pool) + chunk(3, "n1") + chunk(6, device)
    body = envelope("resource.k8s.io/v1", "ResourceSlice", metadata(name="s") + chunk(2, spec))
    async with local() as server:
        made = (await server.post(slices, body, PROTOBUF)).ok(201)["spec"]

    assert made["pool"] == {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    assert made["devices"][0]["attributes"] == {"model": {"string": "a100"}}
    assert made["devices"][0]["taints"][0]["effect"] == "NoSchedule"


SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'
REFUSED: dict[str, tuple[bytes, int, str]] = {
    "JSON under the wrong name": (
        b'{"kind":"ConfigMap"}',
        400,
        "the object provided is unrecognized (must be of type ConfigMap): provided data does not"
        " appear to be a protobuf message, expected prefix [107 56 115 0]"
        ' ({"kind":"ConfigMap"})',
    ),
    "a long body is cut": (
        b"k8s\x00" + b"\xff" * 40,
        400,
        "the object provided is unrecognized (must be of type ConfigMap): proto: integer overflow"
        f" ({(b'k8s' + bytes(1) + bytes([255]) * 26).hex()} ...)",
    ),
    "nothing": (
        b"",
        400,
        "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)",
    ),
    "a broken message": (
        envelope("v1", "ConfigMap", b"\x0a\x05"),
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF',
    ),
    "a kind nobody has": (
        envelope("v1", "Nonsense", b""),
        400,
        'Nonsense in version "v1" cannot be handled as a ConfigMap: no kind "Nonsense" is'
        f' registered for version "v1" {SCHEME}',
    ),
    "another kind": (
        envelope("v1", "Secret", metadata(name="a")),
        400,
        'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to'
        " (core.ConfigMap): unknown conversion",
    ),
    "a kind without numbers": (
        envelope("resource.k8s.io/v1alpha3", "ResourceSlicePatch", b""),
        415,
        "the body of the request was in an unknown format - accepted media types include:"
        " application/json, application/yaml",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_refused(name: str) -> None:
    body, code, message = REFUSED[name]
    async with local() as server:
        answer = await server.post(MAPS, body, PROTOBUF)

    assert (answer.code, answer.message) == (code, message)


async def test_the_accepted_types_are_named() -> None:
    async with local() as server:
        answer = await server.post(MAPS, b"x", "application/cbor")

    assert answer.code == 415
    assert answer.message.endswith(f": application/json, application/yaml, {PROTOBUF}")


@pytest.mark.parametrize("validation", ["Warn", "Strict"])
async def test_a_number_that_no_table_has_is_reported(validation: str) -> None:
    body = envelope("v1", "ConfigMap", metadata(name="a") + whole(99, 7))
    async with local() as server:
        answer = await server.post(MAPS, body, PROTOBUF, fieldValidation=validation)

    if validation == "Strict":
        assert answer.code == 400
        assert 'unknown field "protobuf:99"' in answer.message
    else:
        assert answer.code == 201
        assert answer.warnings == ['299 - "unknown field \\"protobuf:99\\""']
