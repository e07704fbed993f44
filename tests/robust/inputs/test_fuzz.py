"""Bodies, patches, selectors and expressions that nobody would write: no answer is a 5xx.

Without a socket, so that there is time for many; what a server does over TLS is in the files beside
this one. Values are made by changing good ones: what is wrong everywhere is refused immediately.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust.inputs.changing import SETTINGS, changed, odd, places, values
from serving import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, YAML, Answer, Asgi, local

RESOURCE = "/apis/resource.k8s.io/v1"
CORE = "/api/v1/namespaces/default"

DEVICE = {
    "name": "gpu-0",
    "attributes": {"model": {"string": "a"}, "cores": {"int": 4}, "v": {"version": "1.2.3"}},
    "capacity": {"memory": {"value": "8Gi"}},
    "taints": [{"key": "a.example/b", "effect": "NoSchedule", "value": "x"}],
}
GOOD: dict[str, dict[str, Any]] = {
    f"{CORE}/configmaps": {
        "metadata": {"name": "m", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "data": {"x": "1"},
        "binaryData": {"y": "AAAA"},
    },
    f"{CORE}/pods": {
        "metadata": {"name": "m"},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "env": [{"name": "A", "value": "1"}],
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "claims": []},
                }
            ],
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}],
            "resourceClaims": [{"name": "r", "resourceClaimName": "x"}],
        },
    },
    f"{RESOURCE}/resourceslices": {
        "metadata": {"name": "m"},
        "spec": {
            "driver": "d.example",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [DEVICE],
        },
    },
    f"{RESOURCE}/devicetaintrules": {
        "metadata": {"name": "m"},
        "spec": {
            "deviceSelector": {"driver": "d.example", "pool": "p", "device": "x"},
            "taint": {"key": "a.example/b", "effect": "NoExecute"},
        },
    },
    f"{RESOURCE}/deviceclasses": {
        "metadata": {"name": "m"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'd.example'"}}]},
    },
    f"{RESOURCE}/namespaces/default/resourceclaims": {
        "metadata": {"name": "m"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "r",
                        "exactly": {
                            "deviceClassName": "c",
                            "count": 2,
                            "tolerations": [{"operator": "Exists", "tolerationSeconds": 3}],
                        },
                    }
                ],
                "constraints": [{"requests": ["r"], "matchAttribute": "d.example/model"}],
            }
        },
    },
    "/apis/apps/v1/namespaces/default/deployments": {
        "metadata": {"name": "m"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    },
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": {
        "metadata": {"name": "m"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
    },
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {
        "metadata": {"name": "m"},
        "spec": {"holderIdentity": "h", "renewTime": "2026-01-01T00:00:00.000000Z"},
    },
}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def pointer(path: tuple[str | int, ...]) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def json_patches(good: dict[str, Any]) -> st.SearchStrategy[list[Any]]:
    """Write steps that mostly point at something."""
    paths = st.sampled_from([pointer(path) for path in places(good)]) | odd
    step = st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"])},
        optional={"path": paths, "from": paths, "value": values},
    )
    return st.lists(step | values, max_size=4)


directives = st.sampled_from(
    ["$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers"]
)


def run(work: Callable[[Asgi], Coroutine[Any, Any, None]]) -> None:
    """Do something with a server of its own."""

    async def main() -> None:
        async with local() as server:
            # Without it no pod comes past admission.
            account = {"metadata": {"name": "default"}}
            (await server.post(f"{CORE}/serviceaccounts", account)).ok(201)
            await work(server)

    asyncio.run(main())


def check(answer: Answer) -> None:
    # Kubernetes answers a version from the future as a time-out, because it waits for it.
    future = answer.code == 504 and b'"ResourceVersionTooLarge"' in answer.body
    assert answer.code < 500 or future, answer.body[:2000]
    if answer.code >= 400:
        assert answer.json["kind"] == "Status"


@pytest.mark.parametrize("path", GOOD)
def test_the_good_ones_are_good(path: str) -> None:
    async def work(server: Asgi) -> None:
        assert (await server.post(path, GOOD[path])).code == 201

    run(work)


@pytest.mark.slow
@pytest.mark.parametrize("path", GOOD)
def test_bodies(path: str) -> None:
    @SETTINGS
    @given(st.lists(changed(GOOD[path]), min_size=1, max_size=4), st.sampled_from([JSON, YAML]))
    def attempt(bodies: list[dict[str, Any]], media: str) -> None:
        async def work(server: Asgi) -> None:
            await server.post(path, GOOD[path])
            for body in bodies:
                check(await server.post(path, encoded(body), media))
                check(await server.put(f"{path}/m", encoded(body), media))
                check(await server.put(f"{path}/m/status", encoded(body), media))
            check(await server.get(path, "application/json;as=Table;v=v1;g=meta.k8s.io"))

        run(work)

    attempt()


@pytest.mark.slow
@pytest.mark.parametrize("path", GOOD)
def test_patches(path: str) -> None:
    merges = changed(GOOD[path]) | st.dictionaries(directives | odd, values, max_size=3) | values

    @SETTINGS
    @given(json_patches(GOOD[path]), merges)
    def attempt(steps: list[Any], merge: Any) -> None:
        async def work(server: Asgi) -> None:
            await server.post(path, GOOD[path])
            check(await server.patch(f"{path}/m", encoded(steps), JSON_PATCH))
            for media in (MERGE, STRATEGIC, APPLY):
                sent = encoded(merge)
                check(await server.patch(f"{path}/m", sent, media, fieldManager="f", force="true"))
            check(await server.get(path))

        run(work)

    attempt()


parts = st.sampled_from([*"a,=!()<> /.", "in", "notin", "==", "!=", "metadata.name", "x.example/"])
selectors = st.lists(parts, max_size=10).map("".join) | st.text(max_size=20)


@pytest.mark.slow
def test_queries() -> None:
    options = st.sampled_from(
        [
            "labelSelector",
            "fieldSelector",
            "limit",
            "continue",
            "resourceVersion",
            "resourceVersionMatch",
            "timeoutSeconds",
            "pretty",
            "dryRun",
            "fieldValidation",
            "sendInitialEvents",
            "includeObject",
        ]
    )
    numbers = st.integers(-(2**70), 2**70).map(str)
    queries = st.dictionaries(options, selectors | numbers | odd, max_size=4)

    @SETTINGS
    @given(st.lists(queries, min_size=1, max_size=5))
    def attempt(parameters: list[dict[str, str]]) -> None:
        async def work(server: Asgi) -> None:
            for item in parameters:
                query = {k: v.encode("utf-8", "replace").decode() for k, v in item.items()}
                check(await server.get(f"{CORE}/pods", **query))
                check(await server.delete(f"{CORE}/pods", None, **query))

        run(work)

    attempt()


words = st.sampled_from(
    [
        "device", ".driver", ".attributes", "['d.example']", ".capacity", "x", "true", "1", "2u",
        "1.5", "'a'", "b'a'", "null", "[", "]", "{", "}", "(", ")", ",", ":", "?", "&&", "||", "!",
        "-", "+", "*", "/", "%", "==", "<", "in", ".all(x,", ".map(x,", ".exists(x,", ".size()",
        ".matches('(a*)*')", "has(", "semver('1.2.3')", "quantity('1Gi')", "duration('1h')",
        ".orValue(", "optional.of(", "cel.bind(x,", "'''", "\\", "\0",
    ]
)  # fmt: skip


@pytest.mark.slow
def test_expressions() -> None:
    path = f"{RESOURCE}/deviceclasses"

    @SETTINGS
    @given(st.lists(words, max_size=14).map(" ".join) | st.text(max_size=40))
    def attempt(expression: str) -> None:
        async def work(server: Asgi) -> None:
            spec = {"selectors": [{"cel": {"expression": expression}}]}
            body = {"metadata": {"generateName": "m-"}, "spec": spec}
            check(await server.post(path, encoded(body)))

        run(work)

    attempt()
