"""PATCH: four kinds of patches, end to end, and what none of them may do."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifests import ONE, RULES, TWO, pod, rule, secret
from property_examples import examples
from serving import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Asgi, Http, Obj, fresh, local

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True)
class Case:
    media: str
    patch: Any
    want: dict[str, Any]


CHANGED = {
    "JSON patch": Case(
        JSON_PATCH,
        [
            {"op": "test", "path": "/data/k", "value": ONE},
            {"op": "replace", "path": "/data/k", "value": TWO},
            {"op": "add", "path": "/data/n", "value": ONE},
        ],
        {"k": TWO, "n": ONE},
    ),
    "an empty JSON patch": Case(JSON_PATCH, [], {"k": ONE}),
    "merge patch": Case(MERGE, {"data": {"n": TWO}}, {"k": ONE, "n": TWO}),
    "merge patch that removes": Case(MERGE, {"data": {"k": None}}, {}),
    "strategic merge patch": Case(STRATEGIC, {"data": {"n": TWO}}, {"k": ONE, "n": TWO}),
    "strategic patch that replaces": Case(
        STRATEGIC, {"data": {"$patch": "replace", "n": TWO}}, {"n": TWO}
    ),
    "apply": Case(
        APPLY,
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"n": TWO}},
        {"k": ONE, "n": TWO},
    ),
    "apply in YAML": Case(
        APPLY,
        'apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {"n": Mg==}\n',
        {"k": ONE, "n": TWO},
    ),
}


@pytest.mark.parametrize("case", CHANGED.values(), ids=CHANGED.keys())
async def test_patched(http: Http, namespace_path: str, case: Case) -> None:
    path = f"{namespace_path}/secrets/a"
    before = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    after = (await http.patch(path, case.patch, case.media, fieldManager="m")).ok(200)
    again = await http.patch(path, case.patch, case.media, fieldManager="m")

    assert after.get("data", {}) == case.want
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    if again.code == 200:
        assert again.json == after
    assert (await http.get(path)).ok() == after


async def test_lists_of_containers_merge_by_name(calm: Asgi) -> None:
    (await calm.post("/api/v1/namespaces/default/pods", pod("a"))).ok(201)
    patch = {"spec": {"containers": [{"name": "c", "image": "other"}]}}

    after = (await calm.patch("/api/v1/namespaces/default/pods/a", patch, STRATEGIC)).ok()

    (container,) = after["spec"]["containers"]
    assert (container["name"], container["image"]) == ("c", "other")
    assert container["terminationMessagePath"] == "/dev/termination-log"


async def test_the_selector_of_a_budget_does_not_merge(calm: Asgi) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    (await calm.post(path, {"metadata": {"name": "a"}, "spec": spec})).ok(201)
    patch = {"spec": {"selector": {"matchLabels": {"c": "d"}}}}

    after = (await calm.patch(f"{path}/a", patch, STRATEGIC)).ok()

    assert after["spec"]["selector"] == {"matchLabels": {"c": "d"}}


@dataclass(frozen=True)
class Refusal:
    media: str
    patch: Any
    code: int
    text: str
    query: dict[str, str] = field(default_factory=dict)


def config(**more: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, **more}


M = {"fieldManager": "m"}
REFUSED = {
    "another type of body": Refusal(JSON, {}, 415, "415: Unsupported Media Type"),
    "JSON patch that is not a list": Refusal(
        JSON_PATCH,
        {"op": "add"},
        400,
        "cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    ),
    "JSON patch that is not JSON": Refusal(JSON_PATCH, b"[", 400, "invalid JSON patch"),
    "JSON patch that expects something else": Refusal(
        JSON_PATCH,
        [{"op": "test", "path": "/data/k", "value": TWO}],
        422,
        "the server rejected our request due to an error in our request",
    ),
    "JSON patch of what is not there": Refusal(
        JSON_PATCH, [{"op": "remove", "path": "/data/x"}], 422, "the server rejected our request"
    ),
    "JSON patch that leaves a list": Refusal(
        JSON_PATCH,
        [{"op": "replace", "path": "", "value": []}],
        422,
        "the server rejected our request due to an error in our request",
    ),
    "JSON patch that copies without end": Refusal(
        JSON_PATCH,
        [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 10_000}}]
        + [{"op": "copy", "from": "/metadata", "path": f"/metadata/x{n}"} for n in range(40)],
        422,
        "",
    ),
    "merge patch that is not an object": Refusal(
        MERGE, [], 400, "cannot unmarshal array into Go value"
    ),
    "merge patch that is null": Refusal(MERGE, b"null", 400, "Invalid JSON Patch"),
    "merge patch that is not JSON": Refusal(MERGE, b"{", 400, "invalid JSON patch"),
    "merge patch of a wrong type": Refusal(
        MERGE, {"data": []}, 422, "json: cannot unmarshal array into Go struct field Secret.data"
    ),
    "another name": Refusal(
        MERGE, {"metadata": {"name": "b"}}, 400, "does not match the name on the URL"
    ),
    "another kind": Refusal(MERGE, {"kind": "Pod"}, 422, "unknown conversion"),
    "another uid": Refusal(MERGE, {"metadata": {"uid": "b"}}, 422, "field is immutable"),
    "an old version": Refusal(
        MERGE, {"metadata": {"resourceVersion": "1"}}, 409, "the object has been modified"
    ),
    "no metadata at all": Refusal(
        MERGE, {"metadata": 5}, 422, "cannot unmarshal number into Go struct"
    ),
    "unknown field, strictly": Refusal(
        MERGE,
        {"colour": 1},
        422,
        'strict decoding error: unknown field "colour"',
        {"fieldValidation": "Strict"},
    ),
    "force without apply": Refusal(
        MERGE,
        {},
        422,
        "force: Forbidden: may not be specified for non-apply patch",
        {"force": "true"},
    ),
    "apply without a manager": Refusal(
        APPLY, config(), 422, "fieldManager: Required value: is required for apply patch"
    ),
    "apply of another kind": Refusal(
        APPLY, config() | {"kind": "Pod"}, 400, "invalid object type: /v1, Kind=Pod", M
    ),
    "apply of nothing": Refusal(APPLY, b"", 400, "invalid object type: /, Kind=", M),
    "apply of a list": Refusal(
        APPLY, b"[1]", 400, "while decoding JSON: json: cannot unmarshal array into Go value", M
    ),
    "apply of bad JSON": Refusal(
        APPLY, b"{", 400, "error decoding patch: error converting YAML to JSON: yaml: line 1", M
    ),
    "without a name": Refusal(
        STRATEGIC, {"metadata": {"$patch": "replace"}}, 400, "was undeterminable: name must be"
    ),
    "strategic patch of a wrong type": Refusal(
        STRATEGIC, {"data": 5}, 422, "cannot restore map from int64"
    ),
    "strategic patch of metadata that is a number": Refusal(
        STRATEGIC, {"metadata": 5}, 422, "cannot restore struct from: int64"
    ),
    "apply of bad YAML": Refusal(APPLY, b"[1", 400, "error encoding patch: yaml: line 1", M),
    "apply with managed fields": Refusal(
        APPLY,
        config(metadata={"name": "a", "managedFields": []}),
        400,
        "metadata.managedFields must be nil",
        M,
    ),
    "apply of another name": Refusal(
        APPLY, config(metadata={"name": "b"}), 400, "does not match the name on the URL (a)", M
    ),
    "apply of an unknown field": Refusal(
        APPLY, config(color=1), 400, ".color: field not declared", M
    ),
    "apply with metadata that is a list": Refusal(
        APPLY, config(metadata=[1]), 400, ".metadata: expected map, got &{[1]}", M
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
async def test_refused(http: Http, namespace_path: str, case: Refusal) -> None:
    path = f"{namespace_path}/secrets/a"
    before = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    answer = await http.patch(path, case.patch, case.media, **case.query)

    assert answer.code == case.code, answer.body[:400]
    assert case.text in answer.message
    assert (await http.get(path)).ok() == before


@pytest.mark.parametrize("media", [JSON_PATCH, MERGE, STRATEGIC])
async def test_what_is_not_there(http: Http, namespace_path: str, media: str) -> None:
    answer = await http.patch(
        f"{namespace_path}/secrets/a", [] if media == JSON_PATCH else {}, media
    )

    assert (answer.code, answer.message) == (404, 'secrets "a" not found')


def managers(obj: Obj) -> dict[str, list[str]]:
    return {
        f"{entry['manager']}/{entry['operation']}": sorted(entry["fieldsV1"])
        for entry in obj["metadata"]["managedFields"]
    }


@pytest.mark.parametrize("cleared", [[], [{}]], ids=["no entry", "an empty entry"])
async def test_managed_fields_cleared(http: Http, namespace_path: str, cleared: list[Obj]) -> None:
    path = f"{namespace_path}/secrets/a"
    await http.patch(path, config(data={"k": ONE}), APPLY, fieldManager="m")

    done = (await http.patch(path, {"metadata": {"managedFields": cleared}}, MERGE)).ok()
    updated = (await http.patch(path, {"data": {"n": TWO}}, MERGE, fieldManager="u")).ok()
    applied = (await http.patch(path, config(data={"k": ONE}), APPLY, fieldManager="m")).ok()

    assert "managedFields" not in done["metadata"]
    assert "managedFields" not in updated["metadata"]  # only apply starts a new record
    assert "m/Apply" in managers(applied)


async def test_apply_makes_and_keeps(http: Http, namespace_path: str) -> None:
    path = f"{namespace_path}/secrets/a"

    made = await http.patch(path, config(data={"k": ONE}), APPLY, fieldManager="m")
    again = await http.patch(path, config(data={"k": ONE}), APPLY, fieldManager="m")

    assert (made.code, again.code) == (201, 200)
    assert again.json == made.json
    assert managers(made.json) == {"m/Apply": ["f:data"]}


async def test_apply_with_a_uid_makes_nothing(http: Http) -> None:
    name = fresh("rule")

    answer = await http.patch(f"{RULES}/{name}", rule(name, uid="x"), APPLY, fieldManager="m")

    assert answer.code == 409
    assert (await http.get(f"{RULES}/{name}")).code == 404


async def test_conflicts_and_force(calm: Asgi) -> None:
    name = fresh("rule")
    path = f"{RULES}/{name}"
    (await calm.patch(path, rule(name, "NoSchedule"), APPLY, fieldManager="alice")).ok(201)

    refused = await calm.patch(path, rule(name, "NoExecute"), APPLY, fieldManager="bob")
    shown = (await calm.get(path)).ok()
    query = {"fieldManager": "bob", "force": "true"}
    forced = (await calm.patch(path, rule(name, "NoExecute"), APPLY, **query)).ok()

    assert (refused.code, refused.message) == (
        409,
        'Apply failed with 1 conflict: conflict with "alice": .spec.taint.effect',
    )
    assert refused.json["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "alice"',
            "field": ".spec.taint.effect",
        }
    ]
    assert shown["spec"]["taint"]["effect"] == "NoSchedule"
    assert forced["spec"]["taint"]["effect"] == "NoExecute"


async def test_what_is_no_longer_applied_is_deleted(http: Http, namespace_path: str) -> None:
    path = f"{namespace_path}/secrets/a"
    (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)
    (await http.patch(path, config(data={"n": ONE}), APPLY, fieldManager="m")).ok()

    after = (await http.patch(path, config(), APPLY, fieldManager="m")).ok()

    # The field of the creator stays.
    assert after["data"] == {"k": ONE}


async def test_patches_of_the_status(calm: Asgi) -> None:
    before = (await calm.post("/api/v1/namespaces/default/pods", pod("a"))).ok(201)
    path = "/api/v1/namespaces/default/pods/a/status"

    for media, patch in (
        (MERGE, {"status": {"message": "1"}, "spec": {"activeDeadlineSeconds": 1}}),
        (STRATEGIC, {"status": {"message": "2"}, "spec": {"activeDeadlineSeconds": 1}}),
        (JSON_PATCH, [{"op": "add", "path": "/status/message", "value": "3"}]),
        (
            APPLY,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a"},
                "status": {"reason": "r"},
            },
        ),
    ):
        after = (await calm.patch(path, patch, media, fieldManager="m")).ok()
        assert after["spec"] == before["spec"]

    assert (after["status"]["message"], after["status"]["reason"]) == ("3", "r")
    missing = await calm.patch(
        "/api/v1/namespaces/default/pods/b/status",
        {"apiVersion": "v1", "kind": "Pod"},
        APPLY,
        fieldManager="m",
    )
    assert (missing.code, missing.message) == (404, 'pods "b" not found')


async def test_a_dry_run_changes_nothing(http: Http, namespace_path: str) -> None:
    path = f"{namespace_path}/secrets/a"
    before = (await http.post(f"{namespace_path}/secrets", secret("a"))).ok(201)

    for media, patch in (
        (MERGE, {"data": {"k": TWO}}),
        (APPLY, config(data={"n": ONE})),
    ):
        shown = (await http.patch(path, patch, media, fieldManager="m", dryRun="All")).ok()
        assert shown["data"] != before["data"]
    fresh_one = await http.patch(
        f"{namespace_path}/secrets/b",
        config(metadata={"name": "b"}),
        APPLY,
        fieldManager="m",
        dryRun="All",
    )

    assert fresh_one.code == 201
    assert (await http.get(f"{namespace_path}/secrets/b")).code == 404
    assert (await http.get(path)).ok() == before


# Nothing empty: an empty map is owned but not stored, and a manager that wants nothing is not
# remembered, so that in both cases the second apply finds another object, as in Kubernetes.
CONFIGS = st.fixed_dictionaries(
    {"type": st.just("Opaque")},
    optional={
        "data": st.dictionaries(
            st.sampled_from("klm"), st.sampled_from([ONE, TWO]), min_size=1, max_size=3
        ),
        "labels": st.dictionaries(
            st.sampled_from("ab"), st.sampled_from(["1", ""]), min_size=1, max_size=2
        ),
    },
)


@settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.tuples(st.sampled_from(["m", "n"]), CONFIGS), min_size=1, max_size=4))
async def test_applying_twice_is_applying_once(steps: list[tuple[str, Obj]]) -> None:
    async with local() as server:
        path = "/api/v1/namespaces/default/secrets/a"
        for manager, expected in steps:
            labels = {"labels": expected["labels"]} if "labels" in expected else {}
            rest = {key: value for key, value in expected.items() if key != "labels"}
            body = yaml.safe_dump(config(**rest, metadata={"name": "a", **labels}))
            query = {"fieldManager": manager, "force": "true"}
            once = await server.patch(path, body, APPLY, **query)
            twice = await server.patch(path, body, APPLY, **query)

            assert twice.code == 200
            assert twice.json == once.json
            for key, value in expected.get("data", {}).items():
                assert once.json["data"][key] == value


async def test_strict_problems_of_a_json_patch_are_in_its_order(http: Http) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    name = fresh()
    (await http.post(path, {"metadata": {"name": name}})).ok(201)
    patch = b'[{"op":"add","path":"/data","value":{"a":"1"},"odd":2,"op":"add"}]'

    answer = await http.call("PATCH", f"{path}/{name}", patch, JSON_PATCH, fieldValidation="Strict")

    assert answer.code == 422
    assert answer.message.endswith(
        'json patch unknown field "[0].odd", json patch duplicate field "[0].op"'
    )


FIRST_WRONG_TYPE: dict[str, tuple[str, str]] = {
    "fields of the object": ('{"data":5,"binaryData":6}', "ConfigMap.binaryData"),
    "fields inside": ('{"metadata":{"labels":5,"annotations":6}}', "metadata.annotations"),
    "the object before what is inside": ('{"metadata":{"labels":5},"data":5}', "ConfigMap.data"),
}


@pytest.mark.parametrize(("patch", "field"), FIRST_WRONG_TYPE.values(), ids=FIRST_WRONG_TYPE.keys())
async def test_the_first_wrong_type_of_a_merged_object(patch: str, field: str) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    async with local() as server:
        (await server.post(maps, {"metadata": {"name": "a"}, "data": {"k": "v"}})).ok(201)

        answer = await server.patch(f"{maps}/a", patch.encode(), MERGE)

    assert answer.code == 422
    assert f"into Go struct field {field} of type" in answer.message.replace("ObjectMeta.", "")
