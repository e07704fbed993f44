"""Custom resources: what a definition makes a server do, from its creation to its deletion."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from definitions import (
    DEFINITIONS,
    GROUP,
    INTEGER,
    STRING,
    Defining,
    Obj,
    custom,
    definition,
    fields,
    version,
)
from serving import APPLY, MERGE, STRATEGIC, Asgi, local
from sully.store.memory import MemoryStore
from sully.testing.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="session")
OBJECTS = f"/apis/{GROUP}/v1/namespaces/default/crontabs"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest_asyncio.fixture(loop_scope="session")
async def defining() -> AsyncIterator[Defining]:
    async with local() as server:
        await server.api.definitions.start()
        yield Defining(server)


def conditions(result: Obj) -> dict[str, tuple[str, str]]:
    entries = result["status"]["conditions"] or []
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in entries}


async def test_a_definition_is_served(defining: Defining) -> None:
    server = defining.server
    assert (await server.get(OBJECTS)).code == 404

    result = await defining.define(definition())

    assert conditions(result) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert result["status"]["storedVersions"] == ["v1"]
    assert result["spec"]["names"]["listKind"] == "CrontabList"
    (await server.post(OBJECTS, custom(spec={"a": "b"}))).ok(201)
    listed = (await server.get(OBJECTS)).ok()
    assert [(item["kind"], item["spec"]) for item in listed["items"]] == [("Crontab", {"a": "b"})]


async def test_discovery_and_openapi_follow_definitions(defining: Defining) -> None:
    server = defining.server
    before = (await server.get("/openapi/v3")).ok()

    await defining.define(definition())

    (resource,) = (await server.get(f"/apis/{GROUP}/v1")).ok()["resources"]
    assert (resource["name"], resource["kind"]) == ("crontabs", "Crontab")
    assert resource["shortNames"] == ["cr"]
    assert GROUP in {group["name"] for group in (await server.get("/apis")).ok()["groups"]}
    after = (await server.get("/openapi/v3")).ok()
    assert set(after["paths"]) - set(before["paths"]) == {f"apis/{GROUP}/v1"}
    document = (await server.get(f"/openapi/v3/apis/{GROUP}/v1")).ok()
    schema = document["components"]["schemas"]["com.example.stable.v1.Crontab"]
    assert schema["properties"]["spec"] == fields(a=STRING)
    assert "allOf" in schema["properties"]["metadata"]
    assert "com.example.stable.v1.Crontab" in (await server.get("/openapi/v2")).ok()["definitions"]


LIMITS: Obj = {
    "title": "A title",
    "minLength": 0,
    "maxLength": 9,
    "pattern": "^a|b$",
    "format": "byte",
    "example": "a",
    "externalDocs": {"url": "https://example.com"},
}
OPEN: Obj = {"x-kubernetes-preserve-unknown-fields": True}
ANY_NUMBER: Obj = {"x-kubernetes-int-or-string": True}
IN_V2: dict[str, tuple[Obj, Obj]] = {
    "limits of a text": ({**STRING, **LIMITS}, {**STRING, **LIMITS}),
    "limits of a number": (
        {**INTEGER, "minimum": -1, "maximum": 2.5, "exclusiveMaximum": True, "multipleOf": 2},
        {**INTEGER, "minimum": -1, "maximum": 2.5, "exclusiveMaximum": True, "multipleOf": 2},
    ),
    "limits of a list": (
        {"type": "array", "items": {**STRING, "default": "a"}, "minItems": 1, "maxItems": 2},
        {"type": "array", "items": STRING, "minItems": 1, "maxItems": 2},
    ),
    "a map": (
        {"type": "object", "additionalProperties": {**STRING, "nullable": True}},
        {"type": "object", "additionalProperties": {}},
    ),
    "a map of anything": (
        {"type": "object", "additionalProperties": True, "maxProperties": 3},
        {"type": "object", "additionalProperties": True, "maxProperties": 3},
    ),
    "null": ({**STRING, "nullable": True, "enum": ["a"]}, {"enum": ["a"]}),
    "null in a required field": (
        fields(a=STRING, b={**STRING, "nullable": True}) | {"required": ["a", "b"]},
        fields(a=STRING, b={}) | {"required": ["a"]},
    ),
    "unknown fields": ({**fields(a=STRING), **OPEN}, OPEN),
    "a text or a number": ({**ANY_NUMBER, "pattern": "%$"}, {**ANY_NUMBER, "pattern": "%$"}),
    "alternatives": ({**STRING, "anyOf": [{"pattern": "a"}], "not": {"pattern": "b"}}, STRING),
}
GNOSTIC = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.mark.parametrize(("schema", "shown"), IN_V2.values(), ids=IN_V2.keys())
async def test_openapi_2_has_what_it_can_express(
    defining: Defining, schema: Obj, shown: Obj
) -> None:
    await defining.define(definition(fields(a=schema)))

    definitions = (await defining.server.get("/openapi/v2")).ok()["definitions"]

    served = definitions["com.example.stable.v1.Crontab"]["properties"]
    assert served["spec"]["properties"]["a"] == shown
    assert served["metadata"]["$ref"].endswith(".ObjectMeta")
    assert (await defining.server.get("/openapi/v2", GNOSTIC)).code == 200


async def test_an_update_looks_for_its_object_before_it_validates(defining: Defining) -> None:
    await defining.define(definition(fields(a=STRING)))
    invalid = custom(spec={"a": 1})

    assert (await defining.server.put(f"{OBJECTS}/a", invalid)).code == 404

    (await defining.server.post(OBJECTS, custom())).ok(201)
    assert (await defining.server.put(f"{OBJECTS}/a", invalid)).code == 422


async def test_openapi_2_names_no_fields_of_objects_with_others(defining: Defining) -> None:
    defined = definition()
    defined["spec"]["versions"][0]["schema"]["openAPIV3Schema"] |= OPEN

    await defining.define(defined)

    name, server = "com.example.stable.v1.Crontab", defining.server
    second = (await server.get("/openapi/v2")).ok()["definitions"][name]
    assert set(second) == {"type", "x-kubernetes-group-version-kind"}
    third = (await server.get(f"/openapi/v3/apis/{GROUP}/v1")).ok()["components"]["schemas"][name]
    assert set(third["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}


SPEC = fields(
    cron={**STRING, "maxLength": 5},
    replicas={**INTEGER, "minimum": 1, "default": 1},
    color={**STRING, "enum": ["red", "green"]},
    ports={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port"],
        "items": {**fields(port=INTEGER, name=STRING), "required": ["port"]},
    },
    any={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    target={"x-kubernetes-int-or-string": True},
    maybe={**STRING, "nullable": True},
) | {"x-kubernetes-validations": [{"rule": "!has(self.cron) || self.cron != 'never'"}]}
STORED: dict[str, tuple[Obj, Obj]] = {
    "a default": ({}, {"replicas": 1}),
    "a null for a default": ({"replicas": None}, {"replicas": 1}),
    "an unknown field": ({"more": 1}, {"replicas": 1}),
    "unknown fields that are preserved": (
        {"any": {"x": [None, {"y": 1}]}},
        {"any": {"x": [None, {"y": 1}]}, "replicas": 1},
    ),
    "null where it is a value": ({"maybe": None}, {"maybe": None, "replicas": 1}),
    "null where it is none": ({"cron": None}, {"replicas": 1}),
    "a text or a number": ({"target": "80%"}, {"target": "80%", "replicas": 1}),
}


@pytest.mark.parametrize(("sent", "stored"), STORED.values(), ids=STORED.keys())
async def test_what_is_stored(defining: Defining, sent: Obj, stored: Obj) -> None:
    await defining.define(definition(SPEC))

    made = (await defining.server.post(OBJECTS, custom(spec=sent))).ok(201)

    assert made["spec"] == stored


REFUSED: dict[str, tuple[Obj, str]] = {
    "a type": (
        {"cron": 3},
        'spec.cron: Invalid value: "integer": spec.cron in body must be of type string: "integer"',
    ),
    "a length": ({"cron": "123456"}, "spec.cron: Too long: may not be more than 5 bytes"),
    "a number": (
        {"replicas": 0},
        "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal"
        " to 1",
    ),
    "a choice": (
        {"color": "blue"},
        'spec.color: Unsupported value: "blue": supported values: "red", "green"',
    ),
    "a choice before rules": (
        {"color": "blue", "cron": "never"},
        'supported values: "red", "green", <nil>: Invalid value: null: some validation rules were'
        " not checked because the object was invalid",
    ),
    "an item twice": (
        {"ports": [{"port": 1}, {"port": 1}]},
        'spec.ports[1]: Duplicate value: {"port":1}',
    ),
    "an item without its key": ({"ports": [{}]}, "spec.ports[0].port: Required value"),
    "a rule": (
        {"cron": "never"},
        "spec: Invalid value: failed rule: !has(self.cron) || self.cron != 'never'",
    ),
}


@pytest.mark.parametrize(("sent", "text"), REFUSED.values(), ids=REFUSED.keys())
async def test_what_is_refused(defining: Defining, sent: Obj, text: str) -> None:
    await defining.define(definition(SPEC))

    answer = await defining.server.post(OBJECTS, custom(spec=sent))

    assert answer.code == 422
    assert text in answer.message


async def test_unknown_fields_are_reported(defining: Defining) -> None:
    await defining.define(definition(SPEC))
    sent = custom(spec={"more": 1, "ports": [{"port": 1, "x": 2}]}, extra=1)

    warned = await defining.server.post(OBJECTS, sent, dryRun="All")
    strict = await defining.server.post(OBJECTS, sent, fieldValidation="Strict")

    names = ("extra", "spec.more", "spec.ports[0].x")
    assert [name in text for name, text in zip(names, warned.warnings, strict=True)] == [True] * 3
    assert strict.code == 400
    quoted = ", ".join(f'unknown field "{name}"' for name in names)
    assert f"strict decoding error: {quoted}" in strict.message


async def test_patches(defining: Defining) -> None:
    server = defining.server
    await defining.define(definition(SPEC))
    (await server.post(OBJECTS, custom(spec={"cron": "a"}))).ok(201)

    merged = (await server.patch(f"{OBJECTS}/a", {"spec": {"color": "red"}}, MERGE)).ok()
    strategic = await server.patch(f"{OBJECTS}/a", {"spec": {}}, STRATEGIC)

    assert merged["spec"] == {"cron": "a", "color": "red", "replicas": 1}
    assert merged["metadata"]["generation"] == 2
    assert strategic.code == 415


async def test_apply_owns_fields_without_a_schema_one_by_one(defining: Defining) -> None:
    server = defining.server
    await defining.define(definition(SPEC))
    one = custom(spec={"any": {"x": {"y": 1}, "l": [1]}, "ports": [{"port": 1, "name": "a"}]})
    two = custom(spec={"any": {"x": {"z": 2}}, "ports": [{"port": 2}]})

    (await server.patch(f"{OBJECTS}/a", one, APPLY, fieldManager="one")).ok(201)
    both = (await server.patch(f"{OBJECTS}/a", two, APPLY, fieldManager="two")).ok()
    conflict = await server.patch(
        f"{OBJECTS}/a", custom(spec={"any": {"l": [2]}}), APPLY, fieldManager="two"
    )
    less = custom(spec={"ports": [{"port": 1, "name": "a"}]})
    rest = (await server.patch(f"{OBJECTS}/a", less, APPLY, fieldManager="one")).ok()

    assert both["spec"]["any"] == {"x": {"y": 1, "z": 2}, "l": [1]}
    assert [port["port"] for port in both["spec"]["ports"]] == [1, 2]
    assert 'conflict with "one": .spec.any.l' in conflict.message
    assert rest["spec"]["any"] == {"x": {"z": 2}}


WITH_PARTS = version(
    fields(size=INTEGER, color=STRING),
    subresources={
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
    selectableFields=[{"jsonPath": ".spec.color"}],
    additionalPrinterColumns=[
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
    ],
)


async def test_a_definition_with_an_unknown_format_is_warned_about(defining: Defining) -> None:
    body = definition({"type": "string", "format": "color"})

    made = await defining.server.post(DEFINITIONS, body)

    made.ok(201)
    assert made.warnings == ['299 - "unrecognized format \\"color\\""']


@pytest.mark.parametrize("path", ["scale", "other"])
async def test_a_path_below_an_object_that_is_not_served(defining: Defining, path: str) -> None:
    await defining.define(definition())
    (await defining.server.post(OBJECTS, custom())).ok(201)

    answer = await defining.server.get(f"{OBJECTS}/a/{path}")

    assert (answer.code, answer.message) == (404, f'crontabs.{GROUP} "a" not found')


async def test_status_has_an_endpoint_of_its_own(defining: Defining) -> None:
    server = defining.server
    await defining.define(definition(None, WITH_PARTS))
    made = (await server.post(OBJECTS, custom(status={"replicas": 9}))).ok(201)

    change = {"status": {"replicas": 2}, "spec": {"size": 7}}
    changed = (await server.patch(f"{OBJECTS}/a/status", change)).ok()
    patched = (await server.patch(f"{OBJECTS}/a", change | {"status": {"replicas": 5}})).ok()

    assert "status" not in made
    assert (changed["spec"], changed["status"]) == ({}, {"replicas": 2})
    assert (patched["spec"], patched["status"]) == ({"size": 7}, {"replicas": 2})
    assert [obj["metadata"]["generation"] for obj in (made, changed, patched)] == [1, 1, 2]


async def test_scale_reads_and_writes_the_paths_of_the_definition(defining: Defining) -> None:
    server = defining.server
    await defining.define(definition(None, WITH_PARTS))
    (await server.post(OBJECTS, custom(spec={"size": 2}))).ok(201)
    status = {"status": {"replicas": 1, "selector": "app=a"}}
    (await server.patch(f"{OBJECTS}/a/status", status)).ok()

    scale = (await server.get(f"{OBJECTS}/a/scale")).ok()
    scaled = (await server.patch(f"{OBJECTS}/a/scale", {"spec": {"replicas": 4}})).ok()
    negative = await server.patch(f"{OBJECTS}/a/scale", {"spec": {"replicas": -1}})

    assert (scale["spec"], scale["status"]) == (
        {"replicas": 2},
        {"replicas": 1, "selector": "app=a"},
    )
    assert scaled["spec"] == {"replicas": 4}
    table = (await server.get(f"{OBJECTS}/a/scale", TABLE)).ok()
    columns = [(x["name"], x["type"], x["format"]) for x in table["columnDefinitions"]]
    assert (columns[0], columns[-1]) == (("Name", "string", "name"), ("Age", "date", ""))
    assert (await server.get(f"{OBJECTS}/a")).ok()["spec"] == {"size": 4}
    assert ".spec.size: Invalid value: -1: should be a non-negative integer" in negative.message


async def test_scale_of_an_object_without_a_count(defining: Defining) -> None:
    server = defining.server
    await defining.define(definition(None, WITH_PARTS))
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    for name in ("merged", "applied", "replaced"):
        (await server.post(OBJECTS, custom(name))).ok(201)

    read = await server.get(f"{OBJECTS}/merged/scale")
    empty = await server.patch(f"{OBJECTS}/merged/scale", {"metadata": {"labels": {"a": "b"}}})
    merged = await server.patch(f"{OBJECTS}/merged/scale", {"spec": {"replicas": 4}})
    applied = await server.patch(
        f"{OBJECTS}/applied/scale",
        scale | {"spec": {"replicas": 5}},
        APPLY,
        fieldManager="m",
        force="true",
    )
    strategic = await server.patch(f"{OBJECTS}/merged/scale", {"spec": {"replicas": 4}}, STRATEGIC)
    other = await server.patch(f"{OBJECTS}/merged/scale", {"kind": "Other"})
    deleted = await server.delete(f"{OBJECTS}/merged/scale")
    replaced = await server.put(
        f"{OBJECTS}/replaced/scale", scale | {"metadata": {"name": "replaced"}}
    )

    assert (read.code, read.message) == (
        500,
        'Internal error occurred: the spec replicas field ".spec.size" does not exist',
    )
    assert (empty.code, empty.message) == (
        400,
        'the spec replicas field ".spec.size" cannot be empty',
    )
    assert merged.ok()["spec"] == {"replicas": 4}
    assert applied.code == 500
    assert applied.message.startswith("failed to create manager for existing fields: ")
    assert (strategic.code, deleted.code) == (415, 405)
    assert deleted.message == f'delete is not supported on resources of kind "crontabs.{GROUP}"'
    assert 'no kind "Other" is registered for version "autoscaling/v1"' in other.message
    assert replaced.ok()["spec"] == {}
    assert (await server.get(f"{OBJECTS}/replaced")).ok()["spec"] == {"size": 0}
    # To field management, a Scale has only the managers of the count; without any it notes none.
    for name in ("merged", "replaced"):
        entries = (await server.get(f"{OBJECTS}/{name}")).ok()["metadata"].get("managedFields", [])
        assert not [entry for entry in entries if "subresource" in entry]


async def test_columns_and_selectable_fields(defining: Defining) -> None:
    server = defining.server
    await defining.define(definition(None, WITH_PARTS))
    for name, color in (("a", "red"), ("b", "blue")):
        (await server.post(OBJECTS, custom(name, {"size": 3, "color": color}))).ok(201)

    table = (await server.get(OBJECTS, TABLE)).ok()
    red = (await server.get(OBJECTS, fieldSelector="spec.color=red")).ok()
    unknown = await server.get(OBJECTS, fieldSelector="spec.size=3")

    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Size", "Phase"]
    assert [row["cells"] for row in table["rows"]] == [["a", 3, None], ["b", 3, None]]
    assert [item["metadata"]["name"] for item in red["items"]] == ["a"]
    assert (unknown.code, unknown.message) == (400, "field label not supported: spec.size")


async def test_versions_show_the_same_object_each_by_its_schema(defining: Defining) -> None:
    server = defining.server
    new = version(fields(a=STRING, b={**STRING, "default": "x"}), "v2")
    await defining.define(definition(None, version(fields(a=STRING)), new))

    (await server.post(OBJECTS, custom(spec={"a": "1"}))).ok(201)
    path = OBJECTS.replace("/v1/", "/v2/")
    second = (await server.get(f"{path}/a")).ok()
    group = (await server.get(f"/apis/{GROUP}")).ok()

    assert (second["apiVersion"], second["spec"]) == (f"{GROUP}/v2", {"a": "1", "b": "x"})
    assert [entry["version"] for entry in group["versions"]] == ["v2", "v1"]


async def test_a_changed_definition_changes_what_is_shown(defining: Defining) -> None:
    server = defining.server
    await defining.define(definition(fields(a=STRING)))
    (await server.post(OBJECTS, custom(spec={"a": "1"}))).ok(201)
    assert (await server.get(f"{OBJECTS}/a")).ok()["spec"] == {"a": "1"}

    await defining.define(definition(fields(b={**INTEGER, "default": 3})))

    assert (await server.get(f"{OBJECTS}/a")).ok()["spec"] == {"b": 3}
    assert (await server.get(OBJECTS)).ok()["items"][0]["spec"] == {"b": 3}


RULES = fields(
    size={**INTEGER, "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "grows"}]},
    name={
        **STRING,
        "x-kubernetes-validations": [{"rule": "self != 'x'", "messageExpression": "'not ' + self"}],
    },
)


async def test_transition_rules(defining: Defining) -> None:
    server = defining.server
    await defining.define(definition(RULES))
    (await server.post(OBJECTS, custom(spec={"size": 3}))).ok(201)

    smaller = await server.patch(f"{OBJECTS}/a", {"spec": {"size": 2}})
    larger = await server.patch(f"{OBJECTS}/a", {"spec": {"size": 4}})
    named = await server.patch(f"{OBJECTS}/a", {"spec": {"name": "x"}})

    assert "spec.size: Invalid value: 2: grows" in smaller.message
    assert larger.code == 200
    assert 'spec.name: Invalid value: "x": not x' in named.message


async def test_a_stricter_schema_does_not_block_what_did_not_change(defining: Defining) -> None:
    server = defining.server
    await defining.define(definition(fields(a=STRING, b=STRING)))
    (await server.post(OBJECTS, custom(spec={"a": "long", "b": "x"}))).ok(201)
    await defining.define(definition(fields(a={**STRING, "maxLength": 2}, b=STRING)))

    other = await server.patch(f"{OBJECTS}/a", {"spec": {"b": "y"}})
    same = await server.patch(f"{OBJECTS}/a", {"spec": {"a": "longer"}})

    assert (other.code, same.code) == (200, 422)


async def test_expensive_rules_are_evaluated_off_the_loop(defining: Defining) -> None:
    rule = "self.list.all(x, self.list.exists(y, x == y))"
    spec = fields(list={"type": "array", "maxItems": 1000, "items": INTEGER})
    spec["x-kubernetes-validations"] = [{"rule": rule}]
    await defining.define(definition(spec))

    made = await defining.server.post(OBJECTS, custom(spec={"list": [*range(300)]}))
    endless = await defining.server.post(OBJECTS, custom("b", {"list": [*range(1000)]}))

    assert made.code == 201
    assert "no further validation rules will be run" in endless.message


async def test_names_in_use_are_not_accepted_until_they_are_free(defining: Defining) -> None:
    first, second = definition(plural="crontabs"), definition(plural="crews")
    await defining.define(first)

    refused = await defining.define(second)
    (await defining.server.delete(f"{DEFINITIONS}/{first['metadata']['name']}")).ok()
    await defining.settle()
    path = f"{DEFINITIONS}/{second['metadata']['name']}"
    accepted = (await defining.server.get(path)).ok()

    assert conditions(refused) == {
        "NamesAccepted": ("False", "ShortNamesConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert conditions(accepted)["Established"] == ("True", "InitialNamesAccepted")


async def test_deleting_a_definition_deletes_its_objects(defining: Defining) -> None:
    server = defining.server
    path = f"{DEFINITIONS}/crontabs.{GROUP}"
    await defining.define(definition())
    held = custom("held")
    held["metadata"]["finalizers"] = ["example.com/mine"]
    for obj in (custom("free"), held):
        (await server.post(OBJECTS, obj)).ok(201)

    (await server.delete(path)).ok()
    await defining.settle()
    refused = await server.post(OBJECTS, custom("late"))
    waiting = (await server.get(path)).ok()
    (left,) = (await server.get(OBJECTS)).ok()["items"]
    (await server.patch(f"{OBJECTS}/held", {"metadata": {"finalizers": None}})).ok()
    await defining.settle()

    assert conditions(waiting)["Terminating"] == ("True", "InstanceDeletionInProgress")
    assert waiting["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert left["metadata"]["name"] == "held"
    assert (refused.code, refused.message) == (
        405,
        "create not allowed while custom resource definition is terminating",
    )
    assert (await server.get(path)).code == 404
    assert (await server.get(OBJECTS)).code == 404
    assert server.store.resources().count(f"{GROUP}/crontabs") == 0


async def test_watches_end_after_their_definition(defining: Defining) -> None:
    server = defining.server
    server.api.watcher.unserved_seconds = 0.01
    await defining.define(definition())
    async with server.watch(OBJECTS) as watch:
        (await server.post(OBJECTS, custom())).ok(201)
        await watch.until(lambda seen: len(seen.events) == 1)
        (await server.delete(f"{DEFINITIONS}/crontabs.{GROUP}")).ok()
        await defining.settle()
        events = await watch.until(lambda seen: seen.ended)

    assert [event["type"] for event in events] == ["ADDED", "DELETED"]


async def test_a_definition_is_gone_before_the_watches_of_its_kind_end(defining: Defining) -> None:
    server = defining.server
    server.api.watcher.unserved_seconds = PATIENCE
    await defining.define(definition())
    async with server.watch(DEFINITIONS) as definitions, server.watch(OBJECTS) as watch:
        (await server.post(OBJECTS, custom())).ok(201)
        await definitions.until(lambda seen: len(seen.events) == 1)
        await watch.until(lambda seen: len(seen.events) == 1)
        (await server.delete(f"{DEFINITIONS}/crontabs.{GROUP}")).ok()
        await defining.settle()
        await definitions.until(lambda seen: seen.events[-1]["type"] == "DELETED")
        await watch.until(lambda seen: seen.events[-1]["type"] == "DELETED")

        assert (await server.get(OBJECTS)).code == 404
        assert not watch.ended


async def test_another_replica_and_the_next_start_serve_the_same() -> None:
    store = MemoryStore()
    async with local(store) as first:
        await first.api.definitions.start()
        second = Asgi(store, first.api.clock)
        await second.api.definitions.start()
        defining = Defining(first)
        await defining.define(definition())
        (await first.post(OBJECTS, custom())).ok(201)

        await second.api.definitions.catch_up()
        third = Asgi(store, first.api.clock)
        await third.api.definitions.start()

        for replica in (second, third):
            assert (await replica.get(f"{OBJECTS}/a")).code == 200


async def test_a_definition_of_a_built_in_kind_changes_nothing(defining: Defining) -> None:
    server = defining.server
    group = "cluster.open-cluster-management.io"
    built_in: Any = definition(plural="clusterclaims", scope="Cluster")
    built_in["metadata"]["name"] = f"clusterclaims.{group}"
    built_in["spec"]["group"] = group
    claims = f"/apis/{group}/v1alpha1/clusterclaims"
    claim = {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "ClusterClaim",
        "metadata": {"name": "a"},
        "spec": {"value": "x"},
    }
    (await server.post(claims, claim)).ok(201)

    await defining.define(built_in)
    (await server.delete(f"{DEFINITIONS}/{built_in['metadata']['name']}")).ok()
    await defining.settle()

    assert (await server.get(f"{claims}/a")).code == 200
    assert (await server.get(f"{DEFINITIONS}/{built_in['metadata']['name']}")).code == 404
