"""The OpenAPI documents of the kinds we really serve hold together."""

from collections.abc import Iterator
from typing import Any

import pytest

from sully.api import build_scheme
from sully.machinery.scheme import Scheme
from sully.server.openapi import gnostic, v2, v3


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return build_scheme()


def documents(scheme: Scheme) -> Iterator[tuple[str, dict[str, Any], str]]:
    for at in v2.group_versions(scheme):
        document = v3.build(scheme, at.group, at.version, "1.37")
        yield at.root, document, "#/components/schemas/"
    yield "v2", v2.build(scheme, "1.37"), "#/definitions/"


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def schemas(document: dict[str, Any]) -> dict[str, Any]:
    result = document.get("definitions") or document["components"]["schemas"]
    assert isinstance(result, dict)
    return result


def test_every_reference_leads_somewhere_and_nothing_is_left_over(scheme: Scheme) -> None:
    for name, document, prefix in documents(scheme):
        used = {reference.removeprefix(prefix) for reference in references(document)}
        known = set(schemas(document))

        assert used <= known, name
        assert {one.rpartition(".")[2] for one in known - used} <= {"WatchEvent"}, name


def test_every_operation_has_a_name_of_its_own(scheme: Scheme) -> None:
    names = [
        operation["operationId"]
        for item in v2.build(scheme, "1.37")["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    ]

    assert len(names) == len(set(names))
    assert "patchResourceV1DeviceTaintRule" in names
    assert "createCoreV1NamespacedPodEviction" in names


def test_every_parameter_of_a_path_is_declared(scheme: Scheme) -> None:
    for path, item in v2.build(scheme, "1.37")["paths"].items():
        declared = {one["name"] for one in item.get("parameters", []) if one["in"] == "path"}

        assert {word[1:-1] for word in path.split("/") if word.startswith("{")} == declared


def test_every_type_and_field_of_ours_is_described(scheme: Scheme) -> None:
    for name, document, _ in documents(scheme):
        for kind, schema in schemas(document).items():
            assert schema["description"], (name, kind)
            bare = [
                field
                for field, one in schema.get("properties", {}).items()
                if not one.get("description")
            ]
            assert not bare, (name, kind)


def test_every_served_kind_is_found_by_group_version_and_kind(scheme: Scheme) -> None:
    gvks = {
        (gvk["group"], gvk["version"], gvk["kind"])
        for schema in schemas(v2.build(scheme, "1.37")).values()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    }

    for resource in scheme.resources():
        for version in resource.versions:
            if version.enabled:
                assert (resource.group, version.name, resource.kind) in gvks


def test_the_protobuf_form_can_write_everything(scheme: Scheme) -> None:
    assert len(gnostic.encode(v2.build(scheme, "1.37"))) > 100_000


# Types whose values the documents of Kubernetes list, and one of their fields.
ENUMERATIONS = {
    "a text": (
        "io.k8s.api.core.v1.Container", "imagePullPolicy", ["Always", "IfNotPresent", "Never"],
    ),
    "with an empty value": ("io.k8s.api.core.v1.ServiceSpec", "ipFamilies", ["", "IPv4", "IPv6"]),
    "a list": ("io.k8s.api.core.v1.ResourceQuotaSpec", "scopes", None),
    "a map": ("io.k8s.api.core.v1.PersistentVolumeClaimStatus", "allocatedResourceStatuses", None),
    "of nodes": (
        "io.k8s.api.core.v1.Taint", "effect", ["NoExecute", "NoSchedule", "PreferNoSchedule"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "field", "values"), ENUMERATIONS.values(), ids=ENUMERATIONS)
def test_enumerations(scheme: Scheme, kind: str, field: str, values: list[str] | None) -> None:
    schema = schemas(v3.build(scheme, "", "v1", "1.37"))[kind]["properties"][field]

    listed = (schema.get("items") or schema.get("additionalProperties") or schema)["enum"]
    assert listed == (values or listed)
    assert listed


def test_a_go_type_has_the_same_values_everywhere(scheme: Scheme) -> None:
    """Enumerations of Kubernetes belong to a type of Go."""
    choices: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    packages = {version.package for resource in scheme.resources() for version in resource.versions}
    for package, object_type in (
        (one, kind) for one in packages for kind in scheme.tables.types(one)
    ):
        for field in object_type.fields.values():
            if field.go_type:
                at = (package, field.go_type.removeprefix("[]"))
                choices.setdefault(at, set()).add(tuple(sorted(field.choices)))

    assert {at: found for at, found in choices.items() if len(found) > 1} == {}
