"""POST: names, namespaces, fields, bodies, options; and that a refused object is not there."""

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from manifests import ONE, RULES, pod, pod_spec, rule, secret
from serving import APPLY, YAML, Asgi, Http, Obj, fresh, local
from sully.app import ADMIN
from sully.runtime.ids import Ids
from sully.server.inprocess import InProcess
from sully.server.requests import ResourceRef
from sully.testing.clock import FakeClock

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def names(http: Http, collection: str) -> list[str]:
    items = (await http.get(collection)).ok()["items"]
    return [item["metadata"]["name"] for item in items]


async def test_the_server_shows_what_only_it_may_report(http: Http, namespace_path: str) -> None:
    expected = secret(
        "a",
        uid="mine",
        creationTimestamp="2000-01-01T00:00:00Z",
        deletionTimestamp="2000-01-01T00:00:00Z",
        deletionGracePeriodSeconds=5,
        generation=7,
        selfLink="/x",
    )

    made = (await http.post(f"{namespace_path}/secrets", expected)).ok(201)

    metadata = made["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] > "2001"
    assert metadata["namespace"] == namespace_path.rsplit("/", 1)[-1]
    assert metadata["resourceVersion"].isdigit()
    assert not {"deletionTimestamp", "selfLink"} & set(metadata)
    assert (await http.get(f"{namespace_path}/secrets/a")).ok() == made


async def test_generated_names(http: Http, namespace_path: str) -> None:
    collection = f"{namespace_path}/secrets"

    made = [(await http.post(collection, secret(generateName="many-"))).ok(201) for _ in range(20)]

    result = {item["metadata"]["name"] for item in made}
    assert len(result) == 20
    assert all(name.startswith("many-") and len(name) == 10 for name in result)
    assert {item["metadata"]["generateName"] for item in made} == {"many-"}
    assert set(await names(http, collection)) == result


async def test_a_long_base_is_cut(http: Http, namespace_path: str) -> None:
    made = (await http.post(f"{namespace_path}/secrets", secret(generateName="a" * 70))).ok(201)

    assert len(made["metadata"]["name"]) == 63


class Repeating(random.Random):
    """Draws the same names again and again, a few times."""

    def __init__(self, repeats: int) -> None:
        super().__init__(1)
        self._left = repeats

    def choices(self, population: Any, *_: Any, k: int = 1, **__: Any) -> Any:
        if self._left:
            self._left -= 1
            return list("bbbbb")
        return super().choices(population, k=k)


@pytest.mark.parametrize(("repeats", "code"), [(3, 201), (8, 201), (9, 409)])
async def test_a_taken_name_is_drawn_again(repeats: int, code: int) -> None:
    """Eight draws an object: the first one and seven more."""
    async with local(ids=Ids(Repeating(repeats))) as server:
        collection = "/api/v1/namespaces/default/secrets"
        (await server.post(collection, secret(generateName="a-"))).ok(201)

        answer = await server.post(collection, secret(generateName="a-"))

    assert answer.code == code
    if code == 409:
        assert answer.json["reason"] == "AlreadyExists"


@dataclass(frozen=True)
class Case:
    body: Any
    code: int
    text: str
    query: dict[str, str] = field(default_factory=dict)
    media: str = "application/json"
    collection: str = ""  # default: secrets of the namespace


def namespaced(name: str, namespace: str) -> Obj:
    return secret(name, namespace=namespace)


SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of"
REFUSED = {
    "no name": Case(
        secret(), 422, "metadata.name: Required value: name or generateName is required"
    ),
    "bad name": Case(secret("A"), 422, f'metadata.name: Invalid value: "A": {SUBDOMAIN}'),
    "long name": Case(secret("a" * 254), 422, "must be no more than 253 characters"),
    "bad base": Case(
        secret(generateName="A-"), 422, f'metadata.generateName: Invalid value: "A-": {SUBDOMAIN}'
    ),
    "another namespace": Case(
        secret("a", namespace="other"),
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    "a namespace that is not there": Case(
        secret("a"),
        404,
        'namespaces "nowhere" not found',
        collection="/api/v1/namespaces/nowhere/secrets",
    ),
    "bad label": Case(secret("a", labels={"a b": "x"}), 422, "metadata.labels: Invalid value"),
    "bad label value": Case(
        secret("a", labels={"a": "x y"}), 422, "metadata.labels: Invalid value"
    ),
    "bad annotation": Case(secret("a", annotations={"a b": ""}), 422, "metadata.annotations: Inv"),
    "large annotations": Case(
        secret("a", annotations={"a": "x" * 262144}),
        422,
        "metadata.annotations: Too long: may not be more than 262144 bytes",
    ),
    "bad finalizer": Case(
        secret("a", finalizers=["x"]), 422, "name is neither a standard finalizer"
    ),
    "owner without uid": Case(
        secret("a", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}]),
        422,
        "metadata.ownerReferences[0].uid: Required value: must not be empty",
    ),
    "an event as owner": Case(
        secret(
            "a", ownerReferences=[{"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "e"}]
        ),
        422,
        'metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e",'
        '"uid":"e"}: /v1, Kind=Event is disallowed from being an owner',
    ),
    "two controllers": Case(
        secret(
            "a",
            ownerReferences=[
                {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True}
                for n in "pq"
            ],
        ),
        422,
        "Only one reference can have Controller set to true",
    ),
    "with a resourceVersion": Case(
        secret("a", resourceVersion="5"),
        400,
        "resourceVersion should not be set on objects to be created",
    ),
    "a long field manager in a bad dry run": Case(
        secret("a"),
        422,
        "is invalid: [fieldManager: Too long: may not be more than 128 bytes, dryRun: Unsupported",
        query={"dryRun": "Some", "fieldManager": "m" * 129},
    ),
    "another kind": Case(
        {"kind": "Pod", "apiVersion": "v1"},
        400,
        'Pod in version "v1" cannot be handled as a Secret: converting (v1.Pod) to (core.Secret):'
        " unknown conversion",
    ),
    "another version of it": Case(
        rule("a"),
        400,
        "the API version in the data (resource.k8s.io/v1) does not match the expected API version"
        " (resource.k8s.io/v1beta2)",
        collection="/apis/resource.k8s.io/v1beta2/devicetaintrules",
    ),
    "a kind that is unknown": Case(
        {"kind": "Thing", "apiVersion": "v1"},
        400,
        'Thing in version "v1" cannot be handled as a Secret: no kind "Thing" is registered for'
        ' version "v1"',
    ),
    "a group that is unknown": Case(
        {"kind": "Secret", "apiVersion": "x/v1"}, 400, 'no kind "Secret" is registered for'
    ),
    "a kind that is not text": Case(
        {"kind": [1]}, 400, "json: cannot unmarshal array into Go struct field .kind of type string"
    ),
    "a version with two groups": Case(
        {"apiVersion": "a/b/c"}, 400, "unexpected GroupVersion string: a/b/c"
    ),
    "no JSON": Case(b"{", 400, "json parse error: unexpected end of JSON input ({)"),
    "a list": Case(b"[1]", 400, "json: cannot unmarshal array into Go value of type struct"),
    "a text": Case(b'"x"', 400, "json: cannot unmarshal string into Go value of type struct"),
    "too deep": Case(b'{"a":' * 5000, 400, "exceeded max depth"),
    "too deep, in YAML": Case(b"[" * 500_000, 400, "exceeded max depth", media=YAML),
    "a bomb": Case(
        "a: &a [" + "x," * 500 + "]\nb: &b [" + "*a," * 500 + "]\nc: [" + "*b," * 500 + "]",
        400,
        "excessive aliasing",
        media=YAML,
    ),
    "null": Case(b"null", 422, "metadata.name: Required value"),
    "nothing": Case(b"", 400, "unexpected end of JSON input (<empty>)"),
    "a kind that every group has": Case(
        {"kind": "Status", "apiVersion": "v1"},
        400,
        "converting (v1.Status) to (core.Secret): unknown conversion",
    ),
    "empty YAML": Case(b"# nothing", 422, "metadata.name: Required value", media=YAML),
    "too large": Case(
        b"x" * (3 * 1024 * 1024 + 1), 413, "Request entity too large: limit is 3145728"
    ),
    "too large to store": Case(
        secret("a", "MTIz" * 400_000), 422, "Too long: may not be more than 1048576 bytes"
    ),
    "a type that nobody reads": Case(b"{}", 415, "unknown format", media="text/plain"),
    "a patch": Case(b"{}", 415, "unknown format", media=APPLY),
    "a wrong type": Case(
        {"metadata": {"name": 5}},
        400,
        'Secret in version "v1" cannot be handled as a Secret: json: cannot unmarshal number'
        " into Go"
        " struct field ObjectMeta.metadata.name of type string",
    ),
    "bad dryRun": Case(
        secret("a"), 422, 'dryRun: Unsupported value: ["Some"]', query={"dryRun": "Some"}
    ),
    "bad fieldValidation": Case(
        secret("a"),
        422,
        'fieldValidation: Unsupported value: "Loud": supported values: "", "Ignore", "Strict",'
        ' "Warn"',
        query={"fieldValidation": "Loud"},
    ),
    "long manager": Case(
        secret("a"),
        422,
        "fieldManager: Too long: may not be more than 128 bytes",
        query={"fieldManager": "m" * 129},
    ),
    "manager that cannot be printed": Case(
        secret("a"),
        422,
        'fieldManager: Invalid value: "a\\nb": invalid character U+000A (at position 1)',
        query={"fieldManager": "a\nb"},
    ),
    "unknown field, strictly": Case(
        secret("a") | {"colour": 1},
        400,
        'strict decoding error: unknown field "colour"',
        query={"fieldValidation": "Strict"},
    ),
    "repeated and unknown, strictly": Case(
        b'{"metadata":{"name":"a","name":"a","x":1}}',
        400,
        'strict decoding error: duplicate field "metadata.name", unknown field "metadata.x"',
        query={"fieldValidation": "Strict"},
    ),
    "repeated in YAML, strictly": Case(
        b"metadata: {name: a, name: b}",
        400,
        'strict decoding error: yaml: unmarshal errors:\n  line 1: key "name" already set in map',
        query={"fieldValidation": "Strict"},
        media=YAML,
    ),
    "to all namespaces": Case(
        secret("a"), 405, "does not allow this", collection="/api/v1/secrets"
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
async def test_refused(http: Http, namespace_path: str, case: Case) -> None:
    before = (await http.get(f"{namespace_path}/secrets")).ok()
    rules = await names(http, RULES)

    answer = await http.post(
        case.collection or f"{namespace_path}/secrets", case.body, case.media, **case.query
    )

    assert answer.code == case.code, answer.body[:300]
    assert case.text in answer.message
    assert answer.json["kind"] == "Status"
    assert (await http.get(f"{namespace_path}/secrets")).ok()["items"] == before["items"] == []
    assert await names(http, RULES) == rules


@pytest.mark.parametrize("version", ["0", "x", ""])
async def test_a_resource_version_that_is_none(
    http: Http, namespace_path: str, version: str
) -> None:
    body = secret("a", resourceVersion=version)

    made = (await http.post(f"{namespace_path}/secrets", body)).ok(201)

    assert made["metadata"]["resourceVersion"] not in ("", version)


async def test_a_dry_run_leaves_nothing(http: Http, namespace_path: str) -> None:
    collection = f"{namespace_path}/secrets"
    before = (await http.get(collection)).ok()["metadata"]["resourceVersion"]

    made = (await http.post(collection, secret("a"), dryRun="All")).ok(201)

    assert made["data"] == {"k": ONE}
    assert "resourceVersion" not in made["metadata"]
    assert await names(http, collection) == []
    assert (await http.get(collection)).ok()["metadata"]["resourceVersion"] == before
    (await http.post(collection, secret("a"))).ok(201)
    again = await http.post(collection, secret("a"), dryRun="All")
    assert (again.code, again.json["reason"]) == (409, "AlreadyExists")


async def test_the_same_name_twice(http: Http, namespace_path: str) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("a", "MQ=="))).ok(201)

    answer = await http.post(f"{namespace_path}/secrets", secret("a", "Mg=="))

    assert (answer.code, answer.message) == (409, 'secrets "a" already exists')
    assert (await http.get(f"{namespace_path}/secrets/a")).ok()["data"] == {"k": "MQ=="}


async def test_the_name_of_what_is_being_deleted(http: Http, namespace_path: str) -> None:
    (await http.post(f"{namespace_path}/secrets", secret("a", finalizers=["example.com/f"]))).ok(
        201
    )
    (await http.delete(f"{namespace_path}/secrets/a")).ok()

    answer = await http.post(f"{namespace_path}/secrets", secret("a"))

    assert (answer.code, answer.json["reason"]) == (409, "AlreadyExists")
    assert answer.message == 'object is being deleted: secrets "a" already exists'


async def test_one_of_many_creators_wins(http: Http, namespace_path: str) -> None:
    responses = await asyncio.gather(
        *(
            http.post(f"{namespace_path}/secrets", secret("a", labels={"by": str(n)}))
            for n in range(20)
        )
    )

    won = [answer for answer in responses if answer.code == 201]
    assert len(won) == 1
    assert {answer.code for answer in responses} == {201, 409}
    assert (await http.get(f"{namespace_path}/secrets/a")).ok() == won[0].json


async def test_a_namespace_that_is_deleted_takes_nothing_in() -> None:
    """On a server without controllers, so that the namespace does not go immediately."""
    async with local() as server:
        (await server.post("/api/v1/namespaces", {"metadata": {"name": "old"}})).ok(201)
        collection = "/api/v1/namespaces/old/secrets"
        (await server.post(collection, secret("kept"))).ok(201)
        (await server.delete("/api/v1/namespaces/old")).ok()

        answer = await server.post(collection, secret("a"))
        changed = await server.patch(f"{collection}/kept", {"data": {"k": "Mg=="}})

        assert (answer.code, answer.message) == (
            403,
            'secrets "a" is forbidden: unable to create new content in namespace old because it is'
            " being terminated",
        )
        assert answer.json["details"]["causes"] == [
            {
                "reason": "NamespaceTerminating",
                "message": "namespace old is being terminated",
                "field": "metadata.namespace",
            }
        ]
        assert changed.ok()["data"] == {"k": "Mg=="}


async def test_objects_of_the_cluster_have_no_namespace(http: Http) -> None:
    name = fresh("rule")

    made = (await http.post(RULES, rule(name, namespace="default"))).ok(201)

    assert "namespace" not in made["metadata"]


async def test_what_a_caller_does_with_its_body_later_changes_nothing() -> None:
    """In process no bytes are copied on the way, so the server must not keep the caller's parts."""
    async with local() as server:
        direct = InProcess(server.api, ADMIN)
        parameters = {"deep": [1]}
        config = [{"opaque": {"driver": "a.example.com", "parameters": parameters}}]
        body = {"metadata": {"name": "c"}, "spec": {"config": config}}
        await direct.call(
            "create", ResourceRef("resource.k8s.io", "v1", "deviceclasses"), body=body
        )

        parameters["deep"].append(2)

        result = await direct.call(
            "get", ResourceRef("resource.k8s.io", "v1", "deviceclasses", name="c")
        )
        assert result.obj["spec"]["config"][0]["opaque"]["parameters"] == {"deep": [1]}


ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"


async def test_a_pod_waits_for_the_account_of_a_new_namespace() -> None:
    clock = FakeClock()
    async with local(clock=clock) as server:
        made = asyncio.ensure_future(server.post(PODS, pod("a")))
        await clock.sleepers()
        (await server.post(ACCOUNT, {"metadata": {"name": "default"}})).ok(201)
        clock.advance(1)

        (await made).ok(201)


async def test_a_pod_does_not_wait_indefinitely() -> None:
    clock = FakeClock()
    async with local(clock=clock) as server:
        made = asyncio.ensure_future(server.post(PODS, pod("a")))
        while not made.done():
            await clock.sleepers()
            clock.advance(0.5)
            await asyncio.sleep(0)
        answer = await made
        spec = pod("b")["spec"] | {"serviceAccountName": "other"}
        other = await server.post(PODS, pod("b") | {"spec": spec})
        nowhere = await server.post("/api/v1/namespaces/none/pods", pod("c"))

    assert (answer.code, clock.monotonic()) == (403, 1.5)
    assert 'error looking up service account default/default: serviceaccount "default"' in (
        answer.message
    )
    assert (other.code, nowhere.code) == (403, 404)


LENIENT: dict[str, tuple[str, Obj]] = {
    "leases": ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {}}),
    "budgets": (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"spec": {"selector": {}, "minAvailable": 1}},
    ),
    "custom resources": (
        "/apis/cluster.open-cluster-management.io/v1/managedclusters",
        {"spec": {"hubAcceptsClient": False}},
    ),
}


@pytest.mark.parametrize(("path", "body"), LENIENT.values(), ids=LENIENT.keys())
async def test_finalizers_without_a_domain_where_kubernetes_takes_them(
    calm: Asgi, path: str, body: Obj
) -> None:
    made = await calm.post(path, {"metadata": {"name": "a", "finalizers": ["mine"]}, **body})

    assert made.ok(201)["metadata"]["finalizers"] == ["mine"]


async def test_an_empty_list_is_null_and_belongs_to_who_sent_it(http: Http) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}

    made = await http.post(roles, body | {"metadata": {"name": fresh("role")}})

    assert made.ok(201)["rules"] is None
    (entry,) = made.json["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:rules": {}}


@pytest.mark.parametrize("own", [{}, {"own": "1"}], ids=["of the template", "of its own"])
async def test_labels_of_a_job(http: Http, own: dict[str, str]) -> None:
    jobs, name = "/apis/batch/v1/namespaces/default/jobs", fresh("job")
    pods = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pods}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": own}}

    made = (await http.post(jobs, body | {"spec": {"template": template}})).ok(201)

    pod_labels = made["spec"]["template"]["metadata"]["labels"]
    assert pod_labels["job-name"] == name
    # Kubernetes has the same labels in both places, also those that it adds.
    assert made["metadata"]["labels"] == (own or pod_labels)


async def test_problems_show_an_empty_list_as_it_was_sent(http: Http) -> None:
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    spec = {"driver": "d", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}}
    spec |= {"nodeSelector": {"nodeSelectorTerms": []}}
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": spec}

    got = await http.post(slices, body | {"metadata": {"name": fresh("slice")}})

    assert "nodeSelectorTerms: Invalid value: []: must have exactly one" in got.message


ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
WRONG_TYPES: dict[str, tuple[str, Obj, str]] = {
    "a struct in an embedded one": (
        ADMISSION,
        {"spec": {"matchConstraints": {"resourceRules": [{"resources": 5}]}}},
        ".resourceRules.RuleWithOperations.Rule.resources of type []string",
    ),
    "an embedded struct": (
        ADMISSION,
        {"spec": {"matchConstraints": {"resourceRules": [{"operations": 5}]}}},
        ".resourceRules.RuleWithOperations.operations of type []v1.OperationType",
    ),
    "a scope": (
        ADMISSION,
        {"spec": {"matchConstraints": {"resourceRules": [{"scope": 5}]}}},
        ".resourceRules.RuleWithOperations.Rule.scope of type v1.ScopeType",
    ),
    "a preemption policy": (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"value": 1, "preemptionPolicy": 5},
        "PriorityClass.preemptionPolicy of type v1.PreemptionPolicy",
    ),
}


@pytest.mark.parametrize("case", WRONG_TYPES.values(), ids=WRONG_TYPES.keys())
async def test_errors_name_the_types_of_go(http: Http, case: tuple[str, Obj, str]) -> None:
    path, body, text = case

    got = await http.post(path, {"metadata": {"name": "a"}, **body})

    assert got.code == 400
    assert got.message.endswith(text)


async def test_pods_of_one_template_are_stored_alike(http: Http, namespace_path: str) -> None:
    spec = pod_spec(template="gpu", automountServiceAccountToken=False)
    collection = f"{namespace_path}/pods"
    for name in ("a", "b", "c"):
        (await http.post(collection, pod(name, labels={"of": name}, spec=spec))).ok(201)

    pods = [(await http.get(f"{collection}/{name}")).ok() for name in ("a", "b", "c")]

    assert [_without_identity(one) for one in pods] == [_without_identity(pods[0])] * 3


def _without_identity(obj: Obj) -> str:
    """Return an object as JSON, in its order of fields, without what each object has its own."""
    own = ("name", "uid", "resourceVersion", "creationTimestamp", "labels")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in own}
    entries = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in metadata["managedFields"]
    ]
    return json.dumps({**obj, "metadata": {**metadata, "managedFields": entries}})
