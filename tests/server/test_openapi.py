"""OpenAPI documents, from a small scheme that uses every feature of field tables."""

from typing import Any

import msgspec
import pytest

from sully.api import meta
from sully.api.tables import META
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType, Strategy, Version
from sully.server.openapi import v2, v3
from sully.server.openapi.documents import OpenAPI

PACKAGE = "io.example.toys.v1"
OTHER = "io.example.toys.v1beta1"
TABLE = """
Robot: A toy that walks.
  apiVersion string: Where it belongs.
  kind string: What it is.
  metadata meta.ObjectMeta emit: Its name.
  spec RobotSpec required emit: What it should be.

RobotSpec: Wishes for a robot.
  name string required emit: Its name.
  count int32 ptr default=3: How many.
  speed number: How fast.
  loud bool required emit: Whether it beeps.
  key bytes: Secret.
  born Time: When.
  beat MicroTime: When exactly.
  weight Quantity: How heavy.
  port IntOrString: Where.
  extra object: Whatever.
  parts []Part map(id) merge(id): Its parts.
  tags []string set: Its tags.
  words []string atomic: Its words.
  sizes {}Quantity atomic: Its sizes.
  owner Part retainKeys merge: Who has it.
  nested [][]string: Deep.

Part atomic: A part, which may have parts.
  id string: Which.
  parts []Part: More.
"""
PLAIN = Strategy()


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    scheme = Scheme()
    meta.load_tables(scheme.tables)
    scheme.tables.load(PACKAGE, "toys", TABLE)
    scheme.tables.load(OTHER, "toysbeta", TABLE)
    robots = ResourceType(
        "toys.example.com",
        "Robot",
        "robots",
        "robot",
        namespaced=True,
        versions=(
            Version("v1", PACKAGE, delete_returns_object=True),
            Version("v1beta1", OTHER),
        ),
        strategy=PLAIN,
        status=PLAIN,
    )
    scheme.add(robots)
    return scheme


def third(scheme: Scheme, version: str = "v1") -> dict[str, Any]:
    return v3.build(scheme, "toys.example.com", version, "1.37")


def properties(scheme: Scheme) -> dict[str, Any]:
    result = third(scheme)["components"]["schemas"][f"{PACKAGE}.RobotSpec"]["properties"]
    assert isinstance(result, dict)
    return result


def shared(name: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}


MACHINERY = "io.k8s.apimachinery.pkg"
PROPERTIES: dict[str, dict[str, Any]] = {
    "name": {"description": "Its name.", "default": "", "type": "string"},
    "count": {"description": "How many.", "default": 3, "type": "integer", "format": "int32"},
    "speed": {"description": "How fast.", "type": "number", "format": "double"},
    "loud": {"description": "Whether it beeps.", "default": False, "type": "boolean"},
    "key": {"description": "Secret.", "type": "string", "format": "byte"},
    "born": {"description": "When."} | shared(f"{MACHINERY}.apis.meta.v1.Time"),
    "beat": {"description": "When exactly."} | shared(f"{MACHINERY}.apis.meta.v1.MicroTime"),
    "weight": {"description": "How heavy."} | shared(f"{MACHINERY}.api.resource.Quantity"),
    "port": {"description": "Where."} | shared(f"{MACHINERY}.util.intstr.IntOrString"),
    "extra": {"description": "Whatever."} | shared(f"{MACHINERY}.runtime.RawExtension"),
    "parts": {
        "description": "Its parts.",
        "type": "array",
        "items": {"$ref": f"#/components/schemas/{PACKAGE}.Part"},
        "x-kubernetes-list-map-keys": ["id"],
        "x-kubernetes-list-type": "map",
        "x-kubernetes-patch-merge-key": "id",
        "x-kubernetes-patch-strategy": "merge",
    },
    "tags": {
        "description": "Its tags.",
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-list-type": "set",
    },
    "words": {
        "description": "Its words.",
        "type": "array",
        "items": {"type": "string"},
        "x-kubernetes-list-type": "atomic",
    },
    "sizes": {
        "description": "Its sizes.",
        "type": "object",
        "additionalProperties": {
            "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"
        },
        "x-kubernetes-map-type": "atomic",
    },
    "owner": {
        "description": "Who has it.",
        "x-kubernetes-patch-strategy": "merge,retainKeys",
    }
    | shared(f"{PACKAGE}.Part"),
    "nested": {
        "description": "Deep.",
        "type": "array",
        "items": {"type": "array", "items": {"type": "string"}},
    },
}


@pytest.mark.parametrize(("name", "want"), PROPERTIES.items(), ids=PROPERTIES.keys())
def test_a_field_becomes_a_property(scheme: Scheme, name: str, want: dict[str, Any]) -> None:
    assert properties(scheme)[name] == want


def test_every_field_is_described_and_required_ones_are_named(scheme: Scheme) -> None:
    spec = third(scheme)["components"]["schemas"][f"{PACKAGE}.RobotSpec"]

    assert set(spec["properties"]) == set(PROPERTIES)
    assert spec["required"] == ["loud", "name"]


def test_a_kind_carries_its_group_version_and_kind(scheme: Scheme) -> None:
    for version, package in (("v1", PACKAGE), ("v1beta1", OTHER)):
        schemas = third(scheme, version)["components"]["schemas"]

        for kind in ("Robot", "RobotList"):
            assert schemas[f"{package}.{kind}"]["x-kubernetes-group-version-kind"] == [
                {"group": "toys.example.com", "version": version, "kind": kind}
            ]
        assert schemas[f"{package}.Part"]["x-kubernetes-map-type"] == "atomic"


def test_version_two_has_references_with_descriptions_and_no_defaults(scheme: Scheme) -> None:
    spec = v2.build(scheme, "1.37")["definitions"][f"{PACKAGE}.RobotSpec"]

    assert spec["properties"]["owner"] == {
        "description": "Who has it.",
        "$ref": f"#/definitions/{PACKAGE}.Part",
        "x-kubernetes-patch-strategy": "merge,retainKeys",
    }
    assert spec["properties"]["count"] == {
        "description": "How many.",
        "type": "integer",
        "format": "int32",
    }


COLLECTION = "/apis/toys.example.com/v1/namespaces/{namespace}/robots"
OPERATIONS = {
    ("/apis/toys.example.com/v1/", "get"): ("getToysExampleComV1APIResources", None),
    ("/apis/toys.example.com/v1/robots", "get"): (
        "listToysExampleComV1RobotForAllNamespaces",
        "list",
    ),
    (COLLECTION, "get"): ("listToysExampleComV1NamespacedRobot", "list"),
    (COLLECTION, "post"): ("createToysExampleComV1NamespacedRobot", "post"),
    (COLLECTION, "delete"): (
        "deleteToysExampleComV1CollectionNamespacedRobot",
        "deletecollection",
    ),
    (COLLECTION + "/{name}", "get"): ("readToysExampleComV1NamespacedRobot", "get"),
    (COLLECTION + "/{name}", "put"): ("replaceToysExampleComV1NamespacedRobot", "put"),
    (COLLECTION + "/{name}", "patch"): ("patchToysExampleComV1NamespacedRobot", "patch"),
    (COLLECTION + "/{name}", "delete"): ("deleteToysExampleComV1NamespacedRobot", "delete"),
    (COLLECTION + "/{name}/status", "get"): ("readToysExampleComV1NamespacedRobotStatus", "get"),
    (COLLECTION + "/{name}/status", "put"): (
        "replaceToysExampleComV1NamespacedRobotStatus",
        "put",
    ),
    (COLLECTION + "/{name}/status", "patch"): (
        "patchToysExampleComV1NamespacedRobotStatus",
        "patch",
    ),
}


def test_both_versions_describe_the_same_operations(scheme: Scheme) -> None:
    for document in (third(scheme), v2.build(scheme, "1.37")):
        results = {
            (path, method): (operation["operationId"], operation.get("x-kubernetes-action"))
            for path, item in document["paths"].items()
            for method, operation in item.items()
            if method != "parameters" and path.startswith("/apis/toys.example.com/v1/")
        }

        assert results == OPERATIONS


def test_a_patch_reports_which_kind_it_changes_and_what_it_supports(scheme: Scheme) -> None:
    patch = third(scheme)["paths"][COLLECTION + "/{name}"]["patch"]

    # kubectl looks here to learn whether it may ask for a dry run or strict validation.
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "toys.example.com",
        "version": "v1",
        "kind": "Robot",
    }
    assert [one["name"] for one in patch["parameters"]] == [
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
    ]
    assert set(patch["requestBody"]["content"]) == {
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    }


@pytest.mark.parametrize(
    ("version", "want"), [("v1", f"{PACKAGE}.Robot"), ("v1beta1", f"{META}.Status")]
)
def test_a_deletion_answers_what_the_version_reports(
    scheme: Scheme, version: str, want: str
) -> None:
    path = COLLECTION.replace("/v1/", f"/{version}/") + "/{name}"

    answer = third(scheme, version)["paths"][path]["delete"]["responses"]["200"]

    schema = answer["content"]["application/json"]["schema"]
    assert schema == {"$ref": f"#/components/schemas/{want}"}


def test_the_index_addresses_each_document_by_its_hash(scheme: Scheme) -> None:
    documents = OpenAPI(scheme, "1.37")

    paths = msgspec.json.decode(documents.index().body)["paths"]

    assert list(paths) == ["apis/toys.example.com/v1", "apis/toys.example.com/v1beta1", "version"]
    for path, entry in paths.items():
        made = documents.get(path)
        assert made is not None
        assert entry == {"serverRelativeURL": f"/openapi/v3/{path}?hash={made.hash}"}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_document_is_the_one_of_its_version(scheme: Scheme, version: str) -> None:
    made = OpenAPI(scheme, "1.37").get(f"apis/toys.example.com/{version}")

    assert made is not None
    assert msgspec.json.decode(made.body) == third(scheme, version)


@pytest.mark.parametrize(
    "name", ["", "api/v1", "apis/toys.example.com", "apis/toys.example.com/v2"]
)
def test_there_is_no_document_for_what_is_not_served(scheme: Scheme, name: str) -> None:
    assert OpenAPI(scheme, "1.37").get(name) is None


def test_the_version_is_described(scheme: Scheme) -> None:
    described = v3.build_version("1.37")

    info = described["components"]["schemas"]["io.k8s.apimachinery.pkg.version.Info"]
    assert {"major", "minor", "gitVersion"} < set(info["required"])
    assert described["paths"]["/version/"]["get"]["operationId"] == "getCodeVersion"


def test_documents_are_made_once(scheme: Scheme) -> None:
    documents = OpenAPI(scheme, "1.37")

    assert documents.swagger() is documents.swagger()
    assert documents.swagger_protobuf() is documents.swagger_protobuf()
    assert documents.index() is documents.index()
    assert documents.get("version") is documents.get("version")
    assert msgspec.json.decode(documents.swagger().body) == v2.build(scheme, "1.37")
