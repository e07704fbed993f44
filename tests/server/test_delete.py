"""DELETE: immediately, with a grace period, with finalizers; one or many."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from manifests import RULES, pod, rule, secret
from serving import YAML, Asgi, Http, Obj, fresh, local, types_and_names
from sully.store.base import Commit, Delete, Op, Put
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

pytestmark = pytest.mark.asyncio(loop_scope="session")
HELD: dict[str, Any] = {"finalizers": ["example.com/f"]}
PODS = "/api/v1/namespaces/default/pods"


async def test_what_a_deletion_answers(http: Http, namespace_path: str) -> None:
    made = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    answer = await http.delete(f"{namespace_path}/secrets/a")

    assert answer.ok(200) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "secrets", "uid": made["metadata"]["uid"]},
    }
    again = await http.delete(f"{namespace_path}/secrets/a")
    assert (again.code, again.message) == (404, 'secrets "a" not found')


async def test_kinds_that_answer_with_the_object(http: Http, namespace_path: str) -> None:
    (await http.post(f"{namespace_path}/serviceaccounts", {"metadata": {"name": "a"}})).ok(201)

    answer = (await http.delete(f"{namespace_path}/serviceaccounts/a")).ok()

    assert answer["kind"] in ("ServiceAccount", "Status")
    assert (await http.get(f"{namespace_path}/serviceaccounts/a")).code == 404


@dataclass(frozen=True)
class Case:
    body: Any
    code: int
    text: str
    query: dict[str, Any] = field(default_factory=dict)
    media: str = "application/json"


REFUSED = {
    "another uid": Case(
        {"preconditions": {"uid": "other"}},
        409,
        'Operation cannot be fulfilled on Secret "a": the UID in the precondition (other) does not'
        " match the UID in record (",
    ),
    "another version": Case(
        {"preconditions": {"resourceVersion": "1"}},
        409,
        "the ResourceVersion in the precondition (1) does not match the ResourceVersion in"
        " record (",
    ),
    "unknown policy": Case(
        {"propagationPolicy": "Never"},
        422,
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Never":'
        ' supported values: "Foreground", "Background", "Orphan", "nil"',
    ),
    "unknown policy in the URL": Case(
        None, 422, "propagationPolicy: Unsupported value", {"propagationPolicy": "Never"}
    ),
    "both fields for it": Case(
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        422,
        "orphanDependents and deletionPropagation cannot be both set",
    ),
    "unknown dry run": Case({"dryRun": ["Some"]}, 422, 'dryRun: Unsupported value: ["Some"]'),
    "unknown dry run in the URL": Case(None, 422, "dryRun: Unsupported value", {"dryRun": "Some"}),
    "grace that is not a number": Case(
        {"gracePeriodSeconds": "5"}, 400, "json: cannot unmarshal string"
    ),
    "grace in the URL that is not a number": Case(
        None, 400, 'strconv.ParseInt: parsing "x": invalid syntax', {"gracePeriodSeconds": "x"}
    ),
    "preconditions that are a list": Case(
        {"preconditions": [1]}, 400, "json: cannot unmarshal array"
    ),
    "a uid that is a number": Case(
        {"preconditions": {"uid": 5}}, 400, "json: cannot unmarshal number"
    ),
    "a dry run that is a number": Case({"dryRun": 5}, 400, "json: cannot unmarshal number"),
    "options that are a list": Case(
        b"[]", 400, "couldn't get version/kind; json parse error: json: cannot unmarshal array"
    ),
    "two policies": Case(
        None,
        422,
        'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation',
        {"orphanDependents": "true", "propagationPolicy": "Orphan"},
    ),
    "options that are something else": Case(
        {"kind": "Pod", "apiVersion": "v1"},
        400,
        'no kind "Pod" is registered for version "v1" in scheme'
        ' "pkg/apis/meta/internalversion/scheme/register.go:27"',
    ),
    "options that are not JSON": Case(b"{", 400, "unexpected end of JSON input"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
async def test_refused(http: Http, namespace_path: str, case: Case) -> None:
    before = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    answer = await http.call(
        "DELETE", f"{namespace_path}/secrets/a", case.body, case.media, **case.query
    )
    many = await http.call(
        "DELETE", f"{namespace_path}/secrets", case.body, case.media, **case.query
    )

    assert answer.code == case.code, answer.body
    assert case.text in answer.message
    assert many.code == case.code
    assert (await http.get(f"{namespace_path}/secrets/a")).ok() == before


OPTIONS: dict[str, tuple[Any, dict[str, str], str]] = {
    "nothing": (None, {}, "application/json"),
    "an empty object": ({}, {}, "application/json"),
    "a kind of any group": (
        {"kind": "DeleteOptions", "apiVersion": "apps/v1"},
        {},
        "application/json",
    ),
    "YAML": ("propagationPolicy: Background\n", {}, YAML),
    "in the URL": (None, {"propagationPolicy": "Background", "gracePeriodSeconds": "5"}, YAML),
    "unknown fields": ({"colour": 1}, {}, "application/json"),
    "nulls": ({"preconditions": None, "dryRun": None}, {}, "application/json"),
    "in the URL beside a body, where they do not count": (
        {},
        {"propagationPolicy": "Never", "gracePeriodSeconds": "x"},
        "application/json",
    ),
    "no children": ({"orphanDependents": False}, {}, "application/json"),
}


@pytest.mark.parametrize(("body", "query", "media"), OPTIONS.values(), ids=OPTIONS.keys())
async def test_options(
    http: Http, namespace_path: str, body: Any, query: dict[str, Any], media: str
) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    (await http.call("DELETE", f"{namespace_path}/secrets/a", body, media, **query)).ok(200)

    assert (await http.get(f"{namespace_path}/secrets/a")).code == 404


async def test_preconditions_that_hold(http: Http, namespace_path: str) -> None:
    made = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)["metadata"]
    expected = {name: made[name] for name in ("uid", "resourceVersion")}

    (await http.delete(f"{namespace_path}/secrets/a", {"preconditions": expected})).ok()

    assert (await http.get(f"{namespace_path}/secrets/a")).code == 404


@pytest.mark.parametrize(
    ("body", "query"),
    [(None, {"dryRun": "All"}), ({"dryRun": ["All"]}, {}), ({}, {"dryRun": "All"})],
    ids=["in the URL", "in the body", "in the URL beside a body"],
)
async def test_a_dry_run_deletes_nothing(
    http: Http, namespace_path: str, body: Any, query: dict[str, Any]
) -> None:
    before = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)
    held = (await http.post(f"{namespace_path}/secrets", secret("b", **HELD))).ok(201)

    (await http.delete(f"{namespace_path}/secrets/a", body, **query)).ok()
    shown = (await http.delete(f"{namespace_path}/secrets/b", body, **query)).ok()
    (await http.delete(f"{namespace_path}/secrets", body, **query)).ok()

    assert "deletionTimestamp" in shown["metadata"]
    assert (await http.get(f"{namespace_path}/secrets/a")).ok() == before
    assert (await http.get(f"{namespace_path}/secrets/b")).ok() == held


async def test_finalizers_hold_an_object(http: Http, namespace_path: str) -> None:
    path = f"{namespace_path}/secrets/a"
    made = (
        await http.post(f"{namespace_path}/secrets", secret("a", finalizers=["x.io/1", "x.io/2"]))
    ).ok(201)

    marked = (await http.delete(path)).ok(200)
    again = (await http.delete(path)).ok(200)

    assert marked["kind"] == "Secret"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert again == marked
    start = made["metadata"]["resourceVersion"]
    async with http.watch(f"{namespace_path}/secrets", resourceVersion=start) as lines:
        one = (await http.patch(path, {"metadata": {"finalizers": ["x.io/2"]}})).ok()
        assert one["metadata"]["finalizers"] == ["x.io/2"]
        (await http.patch(path, {"metadata": {"finalizers": None}})).ok()
        events = await lines.take(3)

    assert types_and_names(events) == [("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert (await http.get(path)).code == 404


async def test_the_last_finalizer_goes_by_every_request(http: Http, namespace_path: str) -> None:
    bare: Obj = {"metadata": {"finalizers": []}}
    for name, write in {
        "put": lambda path, obj: http.put(
            path,
            obj | {"metadata": {k: v for k, v in obj["metadata"].items() if k != "finalizers"}},
        ),
        "json-patch": lambda path, _: http.patch(
            path, [{"op": "remove", "path": "/metadata/finalizers"}], "application/json-patch+json"
        ),
        "strategic": lambda path, _: http.patch(
            path,
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/f"]}},
            "application/strategic-merge-patch+json",
        ),
        "merge": lambda path, _: http.patch(path, bare),
    }.items():
        path = f"{namespace_path}/secrets/{name}"
        (await http.post(f"{namespace_path}/secrets", secret(name, **HELD))).ok(201)
        (await http.delete(path)).ok()
        (await write(path, (await http.get(path)).ok())).ok()
        assert (await http.get(path)).code == 404, name


async def test_a_finalizer_that_is_removed_before_the_deletion(
    http: Http, namespace_path: str
) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("a", **HELD))).ok(201)

    (await http.patch(f"{namespace_path}/secrets/a", {"metadata": {"finalizers": None}})).ok()

    assert (await http.get(f"{namespace_path}/secrets/a")).code == 200


async def bound(server: Any, name: str, grace: int = 30, **metadata: Any) -> Obj:
    body = pod(name, **metadata)
    body["spec"] |= {"nodeName": "n", "terminationGracePeriodSeconds": grace}
    result: Obj = (await server.post(PODS, body)).ok(201)
    return result


@dataclass(frozen=True)
class Grace:
    options: dict[str, Any]
    seconds: int  # 0: gone immediately


GRACES = {
    "its own": Grace({}, 30),
    "shorter": Grace({"gracePeriodSeconds": 5}, 5),
    "longer": Grace({"gracePeriodSeconds": 100}, 100),
    "none": Grace({"gracePeriodSeconds": 0}, 0),
    "negative": Grace({"gracePeriodSeconds": -5}, 1),
    "indefinitely": Grace({"gracePeriodSeconds": 2**62}, 2**62),
}


@pytest.mark.parametrize("case", GRACES.values(), ids=GRACES.keys())
async def test_pods_get_time(case: Grace) -> None:
    clock = FakeClock()
    async with local(clock=clock, pods=True) as server:
        await bound(server, "a")

        (await server.delete(f"{PODS}/a", case.options)).ok()
        result = await server.get(f"{PODS}/a")

        if not case.seconds:
            assert result.code == 404
            return
        metadata = result.ok()["metadata"]
        assert metadata["deletionGracePeriodSeconds"] == case.seconds
        assert metadata["deletionTimestamp"] > "2030-01-01T12:00:00Z"
        if case.seconds == 30:
            assert metadata["deletionTimestamp"] == "2030-01-01T12:00:30Z"


async def test_time_can_be_cut_and_not_extended() -> None:
    async with local(pods=True) as server:
        await bound(server, "a")
        left = []
        for seconds in (20, 25, 10):
            (await server.delete(f"{PODS}/a", {"gracePeriodSeconds": seconds})).ok()
            body = (await server.get(f"{PODS}/a")).ok()
            left.append(body["metadata"]["deletionGracePeriodSeconds"])
        (await server.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})).ok()

        assert left == [20, 20, 10]
        assert (await server.get(f"{PODS}/a")).code == 404


async def test_who_is_not_bound_needs_no_time(calm: Asgi) -> None:
    (await calm.post("/api/v1/namespaces/default/pods", pod("a"))).ok(201)

    (await calm.delete("/api/v1/namespaces/default/pods/a")).ok()

    assert (await calm.get("/api/v1/namespaces/default/pods/a")).code == 404


async def test_a_pod_with_time_and_a_finalizer() -> None:
    async with local(pods=True) as server:
        await bound(server, "a", **HELD)
        (await server.delete(f"{PODS}/a")).ok()

        (await server.patch(f"{PODS}/a", {"metadata": {"finalizers": None}})).ok()
        waiting = await server.get(f"{PODS}/a")
        (await server.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})).ok()

        assert waiting.code == 200
        assert (await server.get(f"{PODS}/a")).code == 404


async def test_a_pod_whose_time_is_over_waits_for_its_finalizer() -> None:
    async with local(pods=True) as server:
        await bound(server, "a", **HELD)
        (await server.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})).ok()

        held = (await server.get(f"{PODS}/a")).ok()
        (await server.patch(f"{PODS}/a", {"metadata": {"finalizers": None}})).ok()

        assert held["metadata"]["deletionGracePeriodSeconds"] == 0
        assert (await server.get(f"{PODS}/a")).code == 404


async def test_generation_reports_the_deletion(calm: Asgi) -> None:
    name = fresh("rule")
    (await calm.post(RULES, rule(name, **HELD))).ok(201)

    marked = (await calm.delete(f"{RULES}/{name}")).ok()

    assert marked["metadata"]["generation"] == 2
    (await calm.patch(f"{RULES}/{name}", {"metadata": {"finalizers": None}})).ok()


MANY: dict[str, tuple[dict[str, str], set[str]]] = {
    "all": ({}, set()),
    "by label": ({"labelSelector": "t=a"}, {"b", "c"}),
    "by field": ({"fieldSelector": "metadata.name!=a"}, {"a"}),
    "none": ({"labelSelector": "t=z"}, {"a", "b", "c"}),
    "one page": ({"limit": "2"}, {"c"}),
}


@pytest.mark.parametrize(("query", "left"), MANY.values(), ids=MANY.keys())
async def test_many_together(
    http: Http, namespace_path: str, query: dict[str, str], left: set[str]
) -> None:
    path = f"{namespace_path}/secrets"
    for name in "abc":
        (await http.post(path, secret(name, labels={"t": name}))).ok(201)

    answer = (await http.delete(path, **query)).ok()

    deleted = {item["metadata"]["name"] for item in answer["items"]}
    names = {item["metadata"]["name"] for item in (await http.get(path)).ok()["items"]}
    assert answer["kind"] == "SecretList"
    assert (deleted, names) == (set("abc") - left, left)


async def test_many_together_keep_to_the_rules(http: Http, namespace_path: str) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("held", **HELD))).ok(201)
    (await http.post(f"{namespace_path}/secrets", secret("free"))).ok(201)

    (await http.delete(f"{namespace_path}/secrets")).ok()

    (left,) = (await http.get(f"{namespace_path}/secrets")).ok()["items"]
    assert left["metadata"]["name"] == "held"
    assert "deletionTimestamp" in left["metadata"]


async def test_namespaces_cannot_go_all_together(http: Http) -> None:
    answer = await http.delete("/api/v1/namespaces")

    assert (answer.code, answer.json["reason"]) == (405, "MethodNotAllowed")
    assert (await http.get("/api/v1/namespaces/default")).code == 200


async def test_many_go_in_one_namespace_only(http: Http, namespace_path: str) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    answer = await http.delete("/api/v1/secrets", fieldSelector="metadata.name=a")

    assert (answer.code, answer.json["reason"]) == (405, "MethodNotAllowed")
    assert (await http.get(f"{namespace_path}/secrets/a")).code == 200


async def test_what_was_deleted_can_be_made_again(http: Http, namespace_path: str) -> None:
    first = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)["metadata"]
    (await http.delete(f"{namespace_path}/secrets/a")).ok()

    second = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)["metadata"]

    assert second["uid"] != first["uid"]
    assert int(second["resourceVersion"]) > int(first["resourceVersion"])


class KubeletStore(MemoryStore):
    """A store in which another user deletes or changes a pod just before it is deleted."""

    def __init__(self, instead: str) -> None:
        super().__init__()
        self.instead = instead

    async def commit(self, ops: Sequence[Op]) -> Commit:
        first, instead = ops[0], self.instead
        if isinstance(first, Delete) and first.key.resource == "pods" and instead:
            self.instead = ""
            current = self.newest(first.key)
            assert current is not None
            if instead == "changed":
                await super().commit([Put(first.key, current.value)])
            else:
                await super().commit([Delete(first.key)])
            if instead == "recreated":
                await super().commit([Put(first.key, current.value)])
        return await super().commit(ops)


@pytest.mark.parametrize(
    ("instead", "there"), [("deleted", 404), ("changed", 404), ("recreated", 200)]
)
async def test_a_kubelet_that_is_faster_is_not_an_error(instead: str, there: int) -> None:
    async with local(KubeletStore(instead), pods=True) as server:
        (await server.post(PODS, pod("p"))).ok(201)

        answer = await server.delete(f"{PODS}/p?gracePeriodSeconds=0")

        assert answer.ok(200)["metadata"]["deletionGracePeriodSeconds"] == 0
        assert (await server.get(f"{PODS}/p")).code == there
