"""Whatever is sent: an answer in time, a Status if it is a refusal, and never a failure of ours."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifests import budget, claim, lease, pod, replica_set, rule, secret, slice_
from property_examples import examples
from serving import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, YAML, Answer, Asgi, Obj, local
from sully.machinery.serialization.codec import copy

pytestmark = pytest.mark.asyncio(loop_scope="session")
NAMESPACED = "namespaces/default"
_SELECTOR = {"cel": {"expression": "device.driver == 'x'"}}
_TOLERATION = {"key": "k", "operator": "Exists"}
CLAIM = claim("a", "c", count=1, selectors=[_SELECTOR], tolerations=[_TOLERATION])
CLAIM["spec"]["devices"]["config"] = [
    {"opaque": {"driver": "a.example.com", "parameters": {"x": 1}}}
]
_DEVICE: Obj = {
    "name": "d",
    "attributes": {"a": {"int": 1}},
    "capacity": {"m": {"value": "1Gi"}},
    "taints": [{"key": "k", "effect": "NoSchedule"}],
}
SLICE = slice_("a", "p", _DEVICE, driver="a.example.com", allNodes=True)
EVENT = {
    "metadata": {"name": "a", "namespace": "default"},
    "involvedObject": {"namespace": "default", "name": "x", "kind": "Pod"},
    "reason": "r",
    "firstTimestamp": "2030-01-01T00:00:00Z",
}
KINDS: dict[str, Obj] = {
    f"/api/v1/{NAMESPACED}/secrets": secret("a"),
    f"/api/v1/{NAMESPACED}/configmaps": {"metadata": {"name": "a"}, "data": {"a": "b"}},
    f"/api/v1/{NAMESPACED}/pods": pod("a", labels={"app": "x"}),
    f"/api/v1/{NAMESPACED}/events": EVENT,
    "/api/v1/namespaces": {"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}},
    "/api/v1/nodes": {
        "metadata": {"name": "a"},
        "spec": {"taints": [{"key": "k", "effect": "NoExecute"}]},
    },
    "/apis/resource.k8s.io/v1/devicetaintrules": rule("a"),
    "/apis/resource.k8s.io/v1/deviceclasses": {
        "metadata": {"name": "a"},
        "spec": {"selectors": [{"cel": {"expression": "true"}}]},
    },
    "/apis/resource.k8s.io/v1/resourceslices": SLICE,
    "/apis/resource.k8s.io/v1beta1/resourceslices": SLICE
    | {"spec": SLICE["spec"] | {"devices": []}},
    f"/apis/resource.k8s.io/v1/{NAMESPACED}/resourceclaims": CLAIM,
    f"/apis/resource.k8s.io/v1beta1/{NAMESPACED}/resourceclaims": CLAIM,
    f"/apis/apps/v1/{NAMESPACED}/replicasets": replica_set("a"),
    f"/apis/policy/v1/{NAMESPACED}/poddisruptionbudgets": budget("pdb", 1, app="x"),
    f"/apis/coordination.k8s.io/v1/{NAMESPACED}/leases": lease("a"),
}
MANY = settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.sampled_from([0, -1, 1, 2**31, 2**63, 1.5, 1e300, -0.0])
    | st.text(max_size=8)
    | st.sampled_from(
        ["a", "", "*", "1Gi", "-1", "x/y", "2030-01-01T00:00:00Z", "\ud800", "a" * 300]
    )
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    results = [path]
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        results += places(item, (*path, key))
    return results


def changed(body: Obj, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    made = copy(body)
    inside = made
    for step in at[:-1]:
        inside = inside[step]
    inside[at[-1]] = value
    return made


@st.composite
def bodies(draw: st.DrawFn, path: str) -> Any:
    """Draw an object that is right but for a place or two."""
    body: Any = KINDS[path]
    for _ in range(draw(st.integers(0, 2))):
        body = changed(body, draw(st.sampled_from(places(body))), draw(VALUES))
    return body


def text_of(body: Any) -> bytes:
    return json.dumps(body).encode()


def check(answer: Answer) -> None:
    assert answer.code < 500 or answer.code == 504, answer.body[:500]
    if answer.code >= 400:
        status = answer.json
        assert (status["kind"], status["status"], status["code"]) == (
            "Status",
            "Failure",
            answer.code,
        )
        assert status["reason"]
        assert status["message"]
    elif answer.body:
        assert answer.json["kind"]


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def server() -> AsyncIterator[Asgi]:
    async with local(pods=True) as made:
        yield made


async def fresh_start(server: Asgi) -> None:
    """Have one good object of each kind, and no other."""
    for path, body in KINDS.items():
        if "v1beta1" in path:
            continue
        if path != "/api/v1/namespaces":
            await server.delete(path, {"gracePeriodSeconds": 0})
        await server.post(path, body)


PATHS = st.sampled_from(sorted(KINDS))
WHERE = PATHS.flatmap(lambda path: st.tuples(st.just(path), bodies(path)))


@MANY
@given(
    sent=WHERE, mode=st.sampled_from(["", "Strict", "Ignore"]), name=st.sampled_from(["a", "pdb"])
)
async def test_objects(server: Asgi, sent: tuple[str, Any], mode: str, name: str) -> None:
    path, body = sent
    query = {"fieldValidation": mode} if mode else {}
    data = text_of(body)

    check(await server.post(path, data, **query))
    check(await server.put(f"{path}/{name}", data, **query))
    check(await server.put(f"{path}/{name}/status", data, **query))
    check(await server.get(f"{path}/{name}"))
    check(await server.get(path, "application/json;as=Table;v=v1;g=meta.k8s.io"))
    check(await server.delete(f"{path}/{name}", {"gracePeriodSeconds": 0}))


@MANY
@given(
    sent=WHERE,
    media=st.sampled_from([MERGE, STRATEGIC, APPLY]),
    part=st.sampled_from(["", "/status", "/scale"]),
)
async def test_patches(server: Asgi, sent: tuple[str, Any], media: str, part: str) -> None:
    path, patch = sent
    good = KINDS[path]
    await server.post(path, good)
    name = good["metadata"]["name"]
    query = {"fieldManager": "m", **({"force": "true"} if media == APPLY else {})}

    check(await server.patch(f"{path}/{name}{part}", text_of(patch), media, **query))
    check(await server.get(f"{path}/{name}"))


PLACES = """
/ /metadata /metadata/name /metadata/labels /metadata/managedFields/0 /kind /data/k
/spec /spec/x /spec/containers/0 /spec/containers/- /a~0b~1c x /~
"""
POINTERS = st.sampled_from(["", *PLACES.split()])
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "dance"])},
        optional={"path": POINTERS, "from": POINTERS, "value": VALUES},
    ),
    max_size=4,
)


@MANY
@given(path=PATHS, patch=OPERATIONS | VALUES)
async def test_json_patches(server: Asgi, path: str, patch: Any) -> None:
    good = KINDS[path]
    await server.post(path, good)

    check(await server.patch(f"{path}/{good['metadata']['name']}", text_of(patch), JSON_PATCH))


QUERY = st.fixed_dictionaries(
    {},
    optional={
        "labelSelector": st.text("abx=!,()in ot<>1", max_size=12),
        "fieldSelector": st.sampled_from(
            ["metadata.name=a", "spec.nodeName!=", "x=y", "=", "a\\", "type=,"]
        ),
        "limit": st.sampled_from(["0", "1", "-1", "x", "99999999999999999999"]),
        "continue": st.text(max_size=8) | st.sampled_from(["e30", "bnVsbA", "W10"]),
        "resourceVersion": st.sampled_from(["0", "1", "5", "x", "-1", "9" * 30]),
        "resourceVersionMatch": st.sampled_from(["Exact", "NotOlderThan", "Near"]),
        "includeObject": st.sampled_from(["None", "Object", "Some"]),
        "pretty": st.sampled_from(["true", "0"]),
        "sendInitialEvents": st.sampled_from(["true", "false"]),
        "allowWatchBookmarks": st.just("true"),
        "timeoutSeconds": st.sampled_from(["-1", "x"]),
        "dryRun": st.sampled_from(["All", "Some", ""]),
        "propagationPolicy": st.sampled_from(["Orphan", "Background", "Foreground", "Never"]),
        "gracePeriodSeconds": st.sampled_from(["0", "-1", "x", "9" * 18]),
    },
)
ACCEPT = st.sampled_from(
    [
        "",
        JSON,
        YAML,
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "a/b",
        ";;,=",
    ]
)


@MANY
@given(path=PATHS, query=QUERY, accept=ACCEPT)
async def test_reading_options(server: Asgi, path: str, query: dict[str, str], accept: str) -> None:
    await server.post(path, KINDS[path])

    for answer in (
        await server.get(path, accept, **query),
        await server.get(f"{path}/a", accept, **query),
        # With this timeout a watch ends immediately.
        await server.get(path, accept, **{**query, "watch": "1", "timeoutSeconds": "-1"}),
    ):
        assert answer.code < 500 or answer.code == 504, answer.body[:500]


@MANY
@given(
    path=PATHS,
    query=QUERY,
    body=st.none()
    | VALUES
    | st.dictionaries(
        st.sampled_from(
            ["kind", "dryRun", "preconditions", "gracePeriodSeconds", "propagationPolicy"]
        ),
        VALUES,
    ),
)
async def test_deleting_options(server: Asgi, path: str, query: dict[str, str], body: Any) -> None:
    await server.post(path, KINDS[path])
    data = None if body is None else text_of(body)

    check(await server.delete(f"{path}/a", data, **query))
    check(await server.delete(path, data, **query))


@MANY
@given(
    raw=st.binary(max_size=80) | st.text('{}[]":,&*<>!|-? \nabc01', max_size=60).map(str.encode),
    media=st.sampled_from([JSON, YAML, MERGE, STRATEGIC, JSON_PATCH, APPLY, ""]),
)
async def test_any_bytes(server: Asgi, raw: bytes, media: str) -> None:
    path = f"/api/v1/{NAMESPACED}/secrets"
    await server.post(path, secret("a"))

    check(await server.post(path, raw, media))
    check(await server.put(f"{path}/a", raw, media))
    check(await server.patch(f"{path}/a", raw, media, fieldManager="m"))
    check(await server.delete(f"{path}/a?dryRun=All", raw or None))


@MANY
@given(
    path=st.lists(
        st.sampled_from(
            [
                "api",
                "apis",
                "v1",
                "namespaces",
                "default",
                "pods",
                "status",
                "watch",
                "resource.k8s.io",
                "devicetaintrules",
                "a",
                "",
                "..",
                "%2f",
                "%ff",
                "scale",
            ]
        ),
        max_size=8,
    ),
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
)
async def test_any_path(server: Asgi, path: list[str], method: str) -> None:
    answer = await server.call(
        method, "/" + "/".join(path), b"{}" if method[0] == "P" else None, timeoutSeconds="-1"
    )

    assert answer.code < 500, answer.body[:300]


SUBRESOURCES: st.SearchStrategy[tuple[str, Obj]] = st.sampled_from(
    [
        (
            f"/api/v1/{NAMESPACED}/pods/a/binding",
            {"metadata": {"name": "a"}, "target": {"name": "n"}},
        ),
        (
            f"/api/v1/{NAMESPACED}/pods/a/eviction",
            {"metadata": {"name": "a"}, "deleteOptions": {"dryRun": ["All"]}},
        ),
        (
            "/api/v1/namespaces/a/finalize",
            {"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}},
        ),
        (
            f"/apis/apps/v1/{NAMESPACED}/replicasets/a/scale",
            {"metadata": {"name": "a"}, "spec": {"replicas": 1}},
        ),
    ]
)


@MANY
@given(data=st.data())
async def test_parts(server: Asgi, data: st.DataObject) -> None:
    path, body = data.draw(SUBRESOURCES)
    await fresh_start(server)
    sent = changed(body, data.draw(st.sampled_from(places(body))), data.draw(VALUES))

    for method, media in (
        ("POST", JSON),
        ("PUT", JSON),
        ("PATCH", MERGE),
        ("GET", ""),
        ("DELETE", JSON),
    ):
        check(await server.call(method, path, text_of(sent) if media else None, media))
