"""Snapshots of a running server: all that is requested, and gaps with their reason."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

import manifests
from client.foreign import connected
from sully.client.direct import DirectTransport
from sully.client.transport import Key, UnreachableError
from sully.machinery.compat import Compat
from sully.machinery.errors import InternalError
from sully.testing.builders import GPU, device, manifest, slice_
from sully.testing.clock import NOON
from sully.testing.cluster import in_process
from sully.views.kinds import CLAIMS, CONSUMER_PODS, PATCHES, RULES, SLICES, TAINT_RECORDS
from sully.views.snapshot.kinds import CONSTRAINT_KINDS, DEVICES, NODES, PODS
from sully.views.snapshot.loading import PAGE_SIZE, list_all, load, with_nodes
from sully.views.snapshot.snapshot import Gap


def one_device(number: int) -> dict[str, Any]:
    return manifest(slice_(f"slice-{number}", device(), pool=f"pool-{number}"))


async def test_everything_is_listed() -> None:
    async with in_process() as plane:
        transport = DirectTransport(plane.direct())
        for number in range(1, 6):
            await transport.create(SLICES, one_device(number))

        result = await load(transport, DEVICES, now=NOON)
        in_pages = await list_all(transport, SLICES, page_size=2)

    assert [page.metadata.name for page in in_pages] == [f"slice-{n}" for n in range(1, 6)]
    assert result.taken == NOON
    assert result.gaps == ()
    assert len(result.of(SLICES)) == 5
    assert result.inventory.device(GPU) is not None


async def test_what_kubernetes_does_not_have_is_a_gap() -> None:
    async with in_process(compat=Compat.KUBERNETES) as plane:
        result = await load(DirectTransport(plane.direct()), (SLICES, TAINT_RECORDS), now=NOON)

    assert result.gaps == (
        Gap(TAINT_RECORDS, "not served", "the server has no taintrecords.sully.dev"),
    )


async def test_a_resource_as_two_types_is_listed_once() -> None:
    asked = []
    obj = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"nodeName": "x"}}

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [obj]})

    async with connected(answer) as transport:
        result = await load(transport, (CONSUMER_PODS, PODS), now=NOON)

    assert asked == ["/api/v1/pods"]
    for kind in (CONSUMER_PODS, PODS):
        pod: Any = result.get(kind, Key("n", "p"))
        assert pod.spec.node_name == "x"


async def test_an_older_server_is_read_in_its_version() -> None:
    old = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}},
    }

    async def answer(request: web.Request) -> web.Response:
        if "/v1beta1/" not in request.path:
            return web.Response(status=404, text="404 page not found")
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [old]})

    async with connected(answer) as transport:
        claim = (await load(transport, (CLAIMS,), now=NOON)).get(CLAIMS, Key("n", "c"))

    assert claim is not None
    (request,) = claim.spec.devices.requests or ()
    assert request.exactly is not None
    assert request.exactly.device_class_name == "gpu"


def refusal(code: int, reason: str) -> web.Response:
    status = {
        "kind": "Status",
        "status": "Failure",
        "message": "no",
        "reason": reason,
        "code": code,
    }
    return web.json_response(status, status=code)


async def test_what_may_not_be_seen_is_a_gap_and_nothing_else() -> None:
    async def answer(request: web.Request) -> web.Response:
        if "pods" in request.path:
            return refusal(403, "Forbidden")
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": None})

    async with connected(answer) as transport:
        result = await load(transport, (CONSUMER_PODS, RULES, PATCHES), now=NOON)

    assert result.gaps == (Gap(CONSUMER_PODS, "not allowed", "no"),)


async def test_pages_that_expire_are_listed_again() -> None:
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.query.get("continue") or request.query.get("limit", "all"))
        if "continue" in request.query:
            return refusal(410, "Expired")
        more = "token" if "limit" in request.query else ""
        metadata = {"resourceVersion": "1", "continue": more}
        return web.json_response({"metadata": metadata, "items": [one_device(1), one_device(2)]})

    async with connected(answer) as transport:
        result = await load(transport, (SLICES,), now=NOON)

    assert asked == [str(PAGE_SIZE), "token", "all"]
    assert len(result.of(SLICES)) == 2


async def test_another_failure_is_that_of_the_whole() -> None:
    async def answer(request: web.Request) -> web.Response:
        return refusal(500, "InternalError")

    async with connected(answer) as transport:
        with pytest.raises(InternalError):
            await load(transport, DEVICES, now=NOON)


async def test_a_server_that_is_unreachable() -> None:
    async def answer(request: web.Request) -> web.Response:
        raise AssertionError("nobody is there")

    async with connected(answer) as transport:
        await transport.close()
        with pytest.raises(UnreachableError):
            await load(transport, DEVICES, now=NOON)


FORBIDDEN = {
    "one namespace is allowed": ("a", ("p",), (("pods", "a"), ("devicetaintrules", ""))),
    "none is asked for": ("", (), (("pods", ""), ("devicetaintrules", ""))),
    "another is allowed": ("b", (), (("pods", ""), ("devicetaintrules", ""))),
}


@pytest.mark.parametrize(("at_least", "pods", "gaps"), FORBIDDEN.values(), ids=FORBIDDEN)
async def test_who_may_list_one_namespace(
    at_least: str, pods: tuple[str, ...], gaps: tuple[tuple[str, str], ...]
) -> None:
    obj = {"metadata": {"name": "p", "namespace": "a", "uid": "u"}}

    async def answer(request: web.Request) -> web.Response:
        if request.path != "/api/v1/namespaces/a/pods":
            body = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not you"}
            return web.json_response(body, status=403)
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [obj]})

    async with connected(answer) as transport:
        result = await load(transport, (CONSUMER_PODS, RULES), now=NOON, at_least=at_least)

    assert tuple(pod.metadata.name for pod in result.of(CONSUMER_PODS).values()) == pods
    assert tuple((gap.kind.plural, gap.only_namespace) for gap in result.gaps) == gaps
    assert {gap.reason for gap in result.gaps} == {"not allowed"}


PLAIN_POD = manifests.pod("p", {}, namespace="n", uid="u")
WITH_CLAIM = PLAIN_POD | {
    "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
}
SELECTING = PLAIN_POD | {
    "spec": {
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "namespaceSelector": {}}
                ]
            }
        }
    }
}
NEEDED: dict[str, tuple[Any, set[str]]] = {
    "no pod needs more": (PLAIN_POD, set()),
    "a pod names a volume claim": (
        WITH_CLAIM,
        {"persistentvolumeclaims", "persistentvolumes", "storageclasses"},
    ),
    "a pod selects namespaces": (SELECTING, {"namespaces"}),
}


@pytest.mark.parametrize(("pod", "want"), NEEDED.values(), ids=NEEDED.keys())
async def test_some_kinds_are_listed_only_for_pods_that_need_them(pod: Any, want: set[str]) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        plural = request.path.rpartition("/")[2]
        asked.append(plural)
        if plural == "persistentvolumes":
            return refusal(403, "Forbidden")
        items = [pod] if plural == "pods" else []
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})

    async with connected(answer) as transport:
        kinds = (*CONSTRAINT_KINDS, PODS)
        result = await load(transport, kinds, now=NOON)

    assert asked[0] == "pods"
    assert set(asked[1:]) == want
    hidden = {gap.kind.plural for gap in result.gaps}
    assert hidden == want & {"persistentvolumes"}, "what may not be seen is a gap"


NODE_ANSWERS = {"allowed": (200, ["node-1"]), "not allowed": (403, []), "not served": (404, [])}


@pytest.mark.parametrize(("code", "nodes"), NODE_ANSWERS.values(), ids=NODE_ANSWERS)
async def test_nodes_are_read_at_the_same_time(code: int, nodes: list[str]) -> None:
    has_nodes = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        if not request.path.endswith("/nodes"):
            await has_nodes.wait()
            return web.json_response({"metadata": {}, "items": [one_device(1)]})
        has_nodes.set()
        if code != 200:
            return refusal(code, {403: "Forbidden", 404: "NotFound"}[code])
        return web.json_response({"metadata": {}, "items": [{"metadata": {"name": "node-1"}}]})

    async with connected(answer) as transport:
        result = await with_nodes(transport, load(transport, (SLICES,), now=NOON))

    assert [node.metadata.name for node in result.of(NODES).values()] == nodes
    assert len(result.of(SLICES)) == 1
    assert result.gaps == ()


async def test_a_failure_beside_nodes_is_that_of_the_whole() -> None:
    async def answer(request: web.Request) -> web.Response:
        return refusal(500, "InternalError")

    async with connected(answer) as transport:
        with pytest.raises(InternalError):
            await with_nodes(transport, load(transport, DEVICES, now=NOON))
