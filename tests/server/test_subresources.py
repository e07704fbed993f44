"""Parts of objects with verbs of their own: scale, binding, eviction, finalize."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest

import manifests
from manifests import budget, pod, replica_set
from serving import APPLY, JSON_PATCH, MERGE, Asgi, Obj, local
from sully.store.base import Commit, Op
from sully.store.memory import MemoryStore

pytestmark = pytest.mark.asyncio(loop_scope="session")
PODS = "/api/v1/namespaces/default/pods"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


async def test_reading_a_scale(calm: Asgi) -> None:
    made = (await calm.post(SETS, replica_set("a", 3))).ok(201)

    scale = (await calm.get(f"{SETS}/a/scale")).ok()

    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 0, "selector": "app=a"}
    for name in ("name", "namespace", "uid", "resourceVersion"):
        assert scale["metadata"][name] == made["metadata"][name]


async def test_writing_a_scale(calm: Asgi) -> None:
    before = (await calm.post(SETS, replica_set("a", 3))).ok(201)
    path = f"{SETS}/a/scale"
    scale = (await calm.get(path)).ok()

    replaced = (await calm.put(path, scale | {"spec": {"replicas": 5}})).ok()
    merged = (await calm.patch(path, {"spec": {"replicas": 7}}, MERGE)).ok()
    patch = [{"op": "replace", "path": "/spec/replicas", "value": 9}]
    patched = (await calm.patch(path, patch, JSON_PATCH)).ok()
    after = (await calm.get(f"{SETS}/a")).ok()

    assert [s["spec"]["replicas"] for s in (replaced, merged, patched)] == [5, 7, 9]
    assert after["spec"] == before["spec"] | {"replicas": 9}
    assert after["metadata"]["generation"] == 4


SCALES: dict[str, tuple[str, str, Any, int, str]] = {
    "an old version": (
        "PUT",
        "",
        {"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"replicas": 1}},
        409,
        "the object has been modified",
    ),
    "less than none": (
        "PATCH",
        MERGE,
        {"spec": {"replicas": -1}},
        422,
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ),
    "a text": (
        "PATCH",
        MERGE,
        {"spec": {"replicas": "many"}},
        422,
        "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32",
    ),
    "another name": (
        "PUT",
        "",
        {"metadata": {"name": "b"}, "spec": {"replicas": 1}},
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    ),
    "no name": ("PUT", "", {"spec": {"replicas": 1}}, 400, "name must be provided"),
    "another namespace": (
        "PUT",
        "",
        {"metadata": {"name": "a", "namespace": "b"}, "spec": {"replicas": 1}},
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    "another kind": (
        "PUT",
        "",
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "a"}},
        400,
        'ReplicaSet in version "v1" cannot be handled as a Scale: converting (v1.ReplicaSet) to'
        " (autoscaling.Scale): unknown conversion",
    ),
    "an unknown kind": (
        "PUT",
        "",
        {"apiVersion": "autoscaling/v1", "kind": "Other", "metadata": {"name": "a"}},
        400,
        'Other in version "v1" cannot be handled as a Scale: no kind "Other" is registered for'
        ' version "autoscaling/v1" in scheme',
    ),
    "a patch to another version": (
        "PATCH",
        MERGE,
        {"apiVersion": "autoscaling/v2"},
        422,
        '}": no kind "Scale" is registered for version "autoscaling/v2" in scheme',
    ),
    "an applied configuration of another kind": (
        "PATCH",
        APPLY,
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"replicas": 1}},
        400,
        "invalid object type: apps/v1, Kind=ReplicaSet",
    ),
    "an applied configuration of no kind of thing": ("PATCH", APPLY, [], 400, "must be an object"),
    "an applied configuration with a field that is not there": (
        "PATCH",
        APPLY,
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"copies": 1}},
        400,
        ".spec.copies: field not declared in schema",
    ),
    "a list": ("PUT", "", [], 400, "json: cannot unmarshal array into Go value of type v1.Scale"),
    "a patch that makes nothing": ("PATCH", MERGE, b"null", 400, "name must be provided"),
    "a patch that makes a list": (
        "PATCH",
        JSON_PATCH,
        [{"op": "replace", "path": "", "value": []}],
        422,
        "the server rejected our request due to an error in our request",
    ),
    "no patch": ("PATCH", JSON_PATCH, {}, 400, "cannot unmarshal object into Go value"),
    "an unknown type": ("PATCH", "text/plain", b"x", 415, "Unsupported Media Type"),
    "another verb": ("DELETE", "", None, 405, "does not allow this method"),
}


@pytest.mark.parametrize(
    ("method", "media", "body", "code", "text"), SCALES.values(), ids=SCALES.keys()
)
async def test_scales_refused(
    calm: Asgi, method: str, media: str, body: Any, code: int, text: str
) -> None:
    before = (await calm.post(SETS, replica_set("a", 3))).ok(201)

    who: dict[str, Any] = {"fieldManager": "m"} if media == APPLY else {}
    answer = await calm.call(method, f"{SETS}/a/scale", body, media or "application/json", **who)

    assert answer.code == code, answer.body
    assert text in answer.message
    assert (await calm.get(f"{SETS}/a")).ok() == before


def scale(replicas: int) -> Obj:
    return manifests.body("Scale", "a", {"replicas": replicas})


async def owners(calm: Asgi) -> list[str]:
    """Return who owns the number of copies, in order."""
    managed_fields = (await calm.get(f"{SETS}/a")).ok()["metadata"]["managedFields"]
    return [
        " ".join((item["manager"], item["operation"], item.get("subresource", "")))
        for item in managed_fields
        if "f:replicas" in item["fieldsV1"].get("f:spec", {})
    ]


async def test_applying_a_scale(calm: Asgi) -> None:
    """Whoever owns the number, by whatever way, is asked; the number is owned like any field."""
    path = f"{SETS}/a/scale"
    (await calm.post(SETS, replica_set("a", 3), fieldManager="maker")).ok(201)

    unnamed = await calm.patch(path, scale(5), APPLY)
    assert (unnamed.code, unnamed.json["details"]["causes"][0]["field"]) == (422, "fieldManager")
    refused = await calm.patch(path, scale(5), APPLY, fieldManager="m")
    assert refused.code == 409
    assert 'conflict with "maker"' in refused.message
    assert await owners(calm) == ["maker Update "]

    (await calm.patch(path, scale(3), APPLY, fieldManager="m")).ok(200)
    assert await owners(calm) == ["m Apply scale", "maker Update "]
    forced = (await calm.patch(path, scale(5), APPLY, fieldManager="m", force="true")).ok(200)
    assert forced["spec"] == {"replicas": 5}
    assert await owners(calm) == ["m Apply scale"]
    again = (await calm.patch(path, scale(5), APPLY, fieldManager="m")).ok(200)
    assert again == forced

    (await calm.patch(path, {"spec": {"replicas": 6}}, MERGE, fieldManager="hand")).ok(200)
    assert await owners(calm) == ["hand Update scale"]
    refused = await calm.patch(path, scale(7), APPLY, fieldManager="m")
    assert 'conflict with "hand" with subresource "scale" using autoscaling/v1' in refused.message


# The writes of a Scale, as manager and count, who owns the count then, and with whom another
# number conflicts. Recorded.
SCALED: dict[str, tuple[list[tuple[str, int]], list[str], str]] = {
    "by the one who created it": ([("maker", 5)], ["maker Update scale"], "maker"),
    "by another": ([("hand", 5)], ["hand Update scale"], "hand"),
    "to what it was": ([("hand", 3)], ["maker Update "], "before-first-apply"),
    "to zero": ([("hand", 0)], [], ""),
    "to zero and back": ([("hand", 0), ("hand", 5)], [], "before-first-apply"),
}


@pytest.mark.parametrize("way", ["put", "patch"])
@pytest.mark.parametrize(("writes", "want", "other"), SCALED.values(), ids=SCALED.keys())
async def test_who_owns_the_count(
    calm: Asgi, way: str, writes: list[tuple[str, int]], want: list[str], other: str
) -> None:
    """A Scale does not show a count of zero, so nobody owns it."""
    path = f"{SETS}/a/scale"
    (await calm.post(SETS, replica_set("a", 3), fieldManager="maker")).ok(201)

    for manager, count in writes:
        if way == "put":
            (await calm.put(path, scale(count), fieldManager=manager)).ok()
        else:
            merge = {"spec": {"replicas": count}}
            (await calm.patch(path, merge, MERGE, fieldManager=manager)).ok()

    assert await owners(calm) == want
    applied = await calm.patch(path, scale(9), APPLY, fieldManager="m")
    assert applied.code == (409 if other else 200)
    assert not other or f'conflict with "{other}"' in applied.message


@pytest.mark.parametrize("mode", ["Strict", "Warn", "Ignore"])
@pytest.mark.parametrize("part", ["scale", "scale by patch", "binding", "eviction"])
async def test_fields_that_parts_do_not_have(calm: Asgi, part: str, mode: str) -> None:
    (await calm.post(SETS, replica_set("a", 3))).ok(201)
    (await calm.post(PODS, pod("a"))).ok(201)
    unknown, where = {"odd": 1}, {"fieldValidation": mode}
    match part:
        case "scale":
            answer = await calm.put(f"{SETS}/a/scale", scale(3) | unknown, **where)
        case "scale by patch":
            answer = await calm.patch(f"{SETS}/a/scale", unknown, MERGE, **where)
        case "binding":
            answer = await calm.post(f"{PODS}/a/binding", binding() | unknown, **where)
        case _:
            body = {"metadata": {"name": "a"}} | unknown
            answer = await calm.post(f"{PODS}/a/eviction", body, **where)

    if mode == "Strict":
        assert answer.code == (422 if "patch" in part else 400)
        assert 'strict decoding error: unknown field "odd"' in answer.message
    else:
        assert answer.code in (200, 201)
        assert ['299 - "unknown field \\"odd\\""'] * (mode == "Warn") == answer.warnings


async def test_a_scale_as_a_table(calm: Asgi) -> None:
    (await calm.post(SETS, replica_set("a", 3))).ok(201)

    table = (await calm.get(f"{SETS}/a/scale", TABLE)).ok()
    part = (await calm.get(f"{SETS}/a/scale", TABLE.replace("Table", "PartialObjectMetadata"))).ok()

    assert [definition["name"] for definition in table["columnDefinitions"]] == [
        "Name",
        "Desired",
        "Available",
        "Age",
    ]
    assert [row["cells"][:3] for row in table["rows"]] == [["a", 3, 0]]
    assert (part["kind"], part["metadata"]["name"]) == ("PartialObjectMetadata", "a")


def binding(name: str = "a", node: str = "n1", **metadata: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"kind": "Node", "name": node},
    }


@pytest.mark.parametrize("path", [f"{PODS}/a/binding", "/api/v1/namespaces/default/bindings"])
async def test_binding_a_pod(calm: Asgi, path: str) -> None:
    (await calm.post(PODS, pod("a"))).ok(201)

    dry = await calm.post(path, binding(), dryRun="All")
    unbound = (await calm.get(f"{PODS}/a")).ok()
    answer = await calm.post(path, binding(annotations={"x": "y"}))
    after = (await calm.get(f"{PODS}/a")).ok()

    assert (dry.code, answer.code) == (201, 201)
    assert answer.json["status"] == "Success"
    assert "nodeName" not in unbound["spec"]
    assert after["spec"]["nodeName"] == "n1"
    assert after["metadata"]["annotations"]["x"] == "y"
    assert [c["status"] for c in after["status"]["conditions"] if c["type"] == "PodScheduled"] == [
        "True"
    ]


@pytest.mark.parametrize(
    "path",
    ["pods/a/binding", "bindings", "pods/a/eviction", "serviceaccounts/a/token"],
)
async def test_parts_of_objects_in_a_namespace_that_does_not_exist(calm: Asgi, path: str) -> None:
    body = binding() if "binding" in path else {"metadata": {"name": "a"}}

    answer = await calm.post(f"/api/v1/namespaces/none/{path}", body)

    assert (answer.code, answer.message) == (404, 'namespaces "none" not found')


async def test_bindings_are_only_created(calm: Asgi) -> None:
    path = "/api/v1/namespaces/default/bindings"

    listed, nobodys = await calm.get(path), await calm.post(path, {"target": {"name": "n1"}})

    assert (listed.code, nobodys.code) == (405, 400)


async def test_only_one_binding_wins(calm: Asgi) -> None:
    (await calm.post(PODS, pod("a"))).ok(201)

    responses = await asyncio.gather(
        *(calm.post(f"{PODS}/a/binding", binding(node=f"n{n}")) for n in range(10))
    )

    (winner,) = [n for n, answer in enumerate(responses) if answer.code == 201]
    assert {answer.code for answer in responses} == {201, 409}
    assert (await calm.get(f"{PODS}/a")).ok()["spec"]["nodeName"] == f"n{winner}"


BINDINGS: dict[str, tuple[str, Any, int, str]] = {
    "no such pod": ("b", binding("b"), 404, 'pods "b" not found'),
    "another pod": ("a", binding("b"), 400, "name in URL does not match name in Binding object"),
    "another uid": ("a", binding(uid="x"), 409, "Precondition failed: UID in precondition: x"),
    "no node": ("a", binding(node=""), 400, "target.name: Required value"),
    "not a node": (
        "a",
        binding() | {"target": {"kind": "Pod", "name": "n"}},
        400,
        'target.kind: Unsupported value: "Pod"',
    ),
    "a list": ("a", [], 400, "cannot unmarshal array into Go value of type v1.Binding"),
}


@pytest.mark.parametrize(("name", "body", "code", "text"), BINDINGS.values(), ids=BINDINGS.keys())
async def test_bindings_refused(calm: Asgi, name: str, body: Any, code: int, text: str) -> None:
    (await calm.post(PODS, pod("a"))).ok(201)

    answer = await calm.post(f"{PODS}/{name}/binding", body)

    assert answer.code == code, answer.body
    assert text in answer.message
    assert "nodeName" not in (await calm.get(f"{PODS}/a")).ok()["spec"]


def eviction(name: str, **options: Any) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": {"gracePeriodSeconds": 0, **options},
    }


BAD_EVICTIONS: dict[str, tuple[Obj, dict[str, str], str]] = {
    "options that are checked before the body": (
        {"kind": "Pod", "apiVersion": "policy/v1"},
        {"dryRun": "x"},
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]',
    ),
    "an unknown policy": (
        eviction("a", propagationPolicy="x"),
        {"dryRun": "All"},
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x"',
    ),
}


@pytest.mark.parametrize(
    ("body", "query", "text"), BAD_EVICTIONS.values(), ids=BAD_EVICTIONS.keys()
)
async def test_options_of_evictions(
    calm: Asgi, body: Obj, query: dict[str, str], text: str
) -> None:
    (await calm.post(PODS, pod("a"))).ok(201)

    answer = await calm.post(f"{PODS}/a/eviction", body, **query)

    assert (answer.code, answer.message.startswith(text)) == (422, True), answer.body


async def running(server: Asgi, name: str) -> None:
    """Make a pod that runs and is ready."""
    body = pod(name, labels={"app": "x"})
    body["spec"]["nodeName"] = "n"
    (await server.post(PODS, body)).ok(201)
    ready = [{"type": "Ready", "status": "True"}]
    status = {"status": {"phase": "Running", "conditions": ready}}
    (await server.patch(f"{PODS}/{name}/status", status)).ok()


async def allow(server: Asgi, name: str, number: int) -> None:
    """Report what a controller would: how many pods may be evicted."""
    generation = (await server.get(f"{BUDGETS}/{name}")).ok()["metadata"]["generation"]
    counted = dict.fromkeys(("currentHealthy", "desiredHealthy", "expectedPods"), 3)
    status = {**counted, "disruptionsAllowed": number, "observedGeneration": generation}
    (await server.patch(f"{BUDGETS}/{name}/status", {"status": status})).ok()


async def names(server: Asgi) -> set[str]:
    return {item["metadata"]["name"] for item in (await server.get(PODS)).ok()["items"]}


async def test_eviction_spends_the_budget() -> None:
    async with local(pods=True) as server:
        for name in ("a", "b", "c"):
            await running(server, name)
        (await server.post(BUDGETS, budget("pdb", 1, app="x"))).ok(201)
        unknown = await server.post(f"{PODS}/a/eviction", eviction("a"))
        await allow(server, "pdb", 1)

        dry = await server.post(f"{PODS}/a/eviction", eviction("a"), dryRun="All")
        all_there = await names(server)
        first = await server.post(f"{PODS}/a/eviction", eviction("a"))
        second = await server.post(f"{PODS}/b/eviction", eviction("b"))
        charged = (await server.get(f"{BUDGETS}/pdb")).ok()
        status = charged["status"]
        managers = {entry["manager"] for entry in charged["metadata"]["managedFields"]}

        assert (unknown.code, dry.code, first.code, second.code) == (429, 201, 201, 429)
        assert first.json["status"] == "Success"
        assert unknown.header("retry-after") == "10"
        assert second.message == (
            "Cannot evict pod as it would violate the pod's disruption budget."
        )
        assert second.json["details"]["causes"][0]["reason"] == "DisruptionBudget"
        assert all_there == {"a", "b", "c"}
        assert await names(server) == {"b", "c"}
        assert status["disruptionsAllowed"] == 0
        assert "kube-apiserver" in managers
        assert list(status["disruptedPods"]) == ["a"]


async def test_many_evictions_spend_no_more_than_there_is() -> None:
    async with local(pods=True) as server:
        every = [f"p{n}" for n in range(10)]
        for name in every:
            await running(server, name)
        (await server.post(BUDGETS, budget("pdb", 1, app="x"))).ok(201)
        await allow(server, "pdb", 4)

        responses = await asyncio.gather(
            *(server.post(f"{PODS}/{name}/eviction", eviction(name)) for name in every)
        )

        codes = [answer.code for answer in responses]
        assert codes.count(201) == 4
        assert len(await names(server)) == 6


async def test_without_a_budget_a_pod_is_evicted(calm: Asgi) -> None:
    (await calm.post(PODS, pod("a"))).ok(201)

    answer = await calm.post(f"{PODS}/a/eviction", eviction("a"))

    assert answer.code == 201
    assert (await calm.get(f"{PODS}/a")).code == 404


async def test_an_evicted_pod_reports_why() -> None:
    async with local(pods=True) as server:
        await running(server, "a")

        (await server.post(f"{PODS}/a/eviction", eviction("a", gracePeriodSeconds=9))).ok(201)

        left = (await server.get(f"{PODS}/a")).ok()
        assert left["metadata"]["deletionGracePeriodSeconds"] == 9
        (mark,) = [c for c in left["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert mark["reason"] == "EvictionByEvictionAPI"


class BusyStore(MemoryStore):
    """A store to which another user writes between two steps of a request."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Awaitable[Any]] = []

    async def commit(self, ops: Sequence[Op]) -> Commit:
        done = await super().commit(ops)
        if self.meanwhile:
            await self.meanwhile.pop()
        return done


async def test_what_changes_during_an_eviction_stays() -> None:
    async with local(store := BusyStore(), pods=True) as server:
        await running(server, "a")
        (await server.post(BUDGETS, budget("pdb", 1, app="x"))).ok(201)
        await allow(server, "pdb", 1)
        change = {"status": {"message": "still warm"}}
        store.meanwhile = [server.patch(f"{PODS}/a/status", change)]

        (await server.post(f"{PODS}/a/eviction", eviction("a", gracePeriodSeconds=9))).ok(201)

        assert (await server.get(f"{PODS}/a")).ok()["status"]["message"] == "still warm"


STARTED = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


async def test_a_pod_that_starts_during_its_eviction_needs_the_budget() -> None:
    async with local(store := BusyStore(), pods=True) as server:
        (await server.post(PODS, pod("a", labels={"app": "x"}))).ok(201)
        (await server.post(BUDGETS, budget("pdb", 1, app="x"))).ok(201)
        await allow(server, "pdb", 0)
        store.meanwhile = [server.patch(f"{PODS}/a/status", STARTED)]

        answer = await server.post(f"{PODS}/a/eviction", eviction("a"))

        assert answer.code == 429
        assert await names(server) == {"a"}


async def test_an_eviction_of_one_version_of_a_pod(calm: Asgi) -> None:
    made = (await calm.post(PODS, pod("a"))).ok(201)
    version = made["metadata"]["resourceVersion"]

    other = await calm.post(
        f"{PODS}/a/eviction", eviction("a", preconditions={"resourceVersion": "1"})
    )
    this = await calm.post(
        f"{PODS}/a/eviction", eviction("a", preconditions={"resourceVersion": version})
    )

    assert (other.code, this.code) == (409, 201)
    assert f"(1) does not match the ResourceVersion in record ({version})" in other.message


EVICTIONS: dict[str, tuple[str, Any, int, str]] = {
    "no such pod": ("b", eviction("b"), 404, 'pods "b" not found'),
    "another pod": ("a", eviction("b"), 400, "name in URL does not match name in Eviction object"),
    "another uid": (
        "a",
        eviction("a", preconditions={"uid": "x"}),
        409,
        "the UID in the precondition (x) does not match the UID in record",
    ),
    "bad options": ("a", eviction("a", propagationPolicy="Never"), 422, "Unsupported value"),
    "a wrong type": (
        "a",
        eviction("a", gracePeriodSeconds="1"),
        400,
        "cannot unmarshal string into Go struct field"
        " DeleteOptions.deleteOptions.gracePeriodSeconds",
    ),
    "a list": ("a", [], 400, "cannot unmarshal array into Go value of type v1.Eviction"),
}


@pytest.mark.parametrize(("name", "body", "code", "text"), EVICTIONS.values(), ids=EVICTIONS.keys())
async def test_evictions_refused(calm: Asgi, name: str, body: Any, code: int, text: str) -> None:
    (await calm.post(PODS, pod("a"))).ok(201)

    answer = await calm.post(f"{PODS}/{name}/eviction", body)

    assert answer.code == code, answer.body
    assert text in answer.message
    assert "deletionTimestamp" not in (await calm.get(f"{PODS}/a")).ok()["metadata"]


async def test_finalizing_a_namespace() -> None:
    """Without controllers, so that the test is the party that lets go."""
    async with local(pods=True) as server:
        path = "/api/v1/namespaces/old"
        (await server.post("/api/v1/namespaces", {"metadata": {"name": "old"}})).ok(201)
        marked = (await server.delete(path)).ok()
        finalized = (await server.put(f"{path}/finalize", marked)).ok()

        bad = await server.put(f"{path}/finalize", marked | {"spec": {"finalizers": ["x"]}})
        done = (await server.put(f"{path}/finalize", marked | {"spec": {}})).ok()

        assert marked["status"]["phase"] == "Terminating"
        assert finalized == marked
        assert (bad.code, bad.json["reason"]) == (422, "Invalid")
        assert done["metadata"]["name"] == "old"
        assert (await server.get(path)).code == 404


async def test_finalizing_a_namespace_that_stays() -> None:
    async with local(pods=True) as server:
        path = "/api/v1/namespaces/old"
        made = (await server.post("/api/v1/namespaces", {"metadata": {"name": "old"}})).ok(201)

        (await server.put(f"{path}/finalize", made | {"spec": {}})).ok()
        left = (await server.get(path)).ok()
        (await server.delete(path)).ok()

        assert left["spec"] == {}
        assert (await server.get(path)).code == 404


async def test_a_namespace_with_finalizers_of_its_own() -> None:
    async with local(pods=True) as server:
        path = "/api/v1/namespaces/old"
        body = {"metadata": {"name": "old", "finalizers": ["example.com/f"]}}
        (await server.post("/api/v1/namespaces", body)).ok(201)
        marked = (await server.delete(path)).ok()

        (await server.put(f"{path}/finalize", marked | {"spec": {}})).ok()
        held = await server.get(path)
        (await server.patch(path, {"metadata": {"finalizers": None}})).ok()

        assert held.code == 200
        assert (await server.get(path)).code == 404


async def test_parts_that_do_not_exist(calm: Asgi) -> None:
    (await calm.post(PODS, pod("a"))).ok(201)

    for path in (f"{PODS}/a/scale", f"{PODS}/a/poem", "/api/v1/namespaces/default/secrets/a/scale"):
        assert (await calm.get(path)).code == 404, path
    for method, part in (("GET", "binding"), ("PUT", "eviction"), ("PATCH", "binding")):
        media = APPLY if method == "PATCH" else "application/json"
        answer = await calm.call(method, f"{PODS}/a/{part}", {}, media)
        assert answer.code == 405, part
