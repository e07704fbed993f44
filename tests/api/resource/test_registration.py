"""What the group serves: kinds, versions, columns, selectable fields."""

from datetime import UTC, datetime
from typing import Any

import pytest

from api.resource.bodies import consumer, result
from api.resource.writing import BY_KIND, TABLES, served
from sully.api import resource
from sully.machinery.schema import ListOf, ObjectType

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CREATED = {"name": "n", "creationTimestamp": "2026-03-01T11:55:00Z"}

SERVED = {
    "ResourceSlice": ("v1", "v1beta2", "v1beta1"),
    "DeviceClass": ("v1", "v1beta2", "v1beta1"),
    "ResourceClaim": ("v1", "v1beta2", "v1beta1"),
    "ResourceClaimTemplate": ("v1", "v1beta2", "v1beta1"),
    "DeviceTaintRule": ("v1", "v1beta2", "v1alpha3"),
    "ResourceSlicePatch": ("v1alpha3",),
    "ResourcePoolStatusRequest": ("v1alpha3",),
}
WITH_STATUS = {
    "ResourceClaim",
    "DeviceTaintRule",
    "ResourceSlicePatch",
    "ResourcePoolStatusRequest",
}
OLD = {"v1beta1": ("v1.35", "v1.38"), "v1beta2": ("v1.36", "v1.39"), "v1alpha3": ("v1.36", "v1.39")}
CURRENT = {
    ("DeviceTaintRule", "v1beta2"),
    ("ResourceSlicePatch", "v1alpha3"),
    ("ResourcePoolStatusRequest", "v1alpha3"),
}


def test_kinds_and_versions() -> None:
    assert {kind: tuple(v.name for v in one.versions) for kind, one in BY_KIND.items()} == SERVED
    assert {kind for kind, one in BY_KIND.items() if one.status is not None} == WITH_STATUS
    namespaced = {kind for kind, one in BY_KIND.items() if one.namespaced}
    assert namespaced == {"ResourceClaim", "ResourceClaimTemplate"}


@pytest.mark.parametrize("kind", SERVED)
def test_flags_of_versions(kind: str) -> None:
    for version in BY_KIND[kind].versions:
        rule_v1 = (kind, version.name) == ("DeviceTaintRule", "v1")
        assert version.unconditional_update is not (rule_v1 or kind == "ResourcePoolStatusRequest")
        assert version.delete_returns_object is not rule_v1
        want = ""
        if version.name in OLD and (kind, version.name) not in CURRENT:
            since, until = OLD[version.name]
            name = f"resource.k8s.io/{version.name} {kind}"
            want = f"{name} is deprecated in {since}+, unavailable in {until}+"
        assert version.deprecation == want


@pytest.mark.parametrize("kind", SERVED)
def test_every_version_has_a_table_and_a_list(kind: str) -> None:
    for version in BY_KIND[kind].versions:
        table = TABLES.get(version.package, kind)
        items = TABLES.get(version.package, f"{kind}List").fields["items"].type
        assert isinstance(items, ListOf)
        assert items.item is table


def test_what_is_ours_is_in_every_table() -> None:
    for version in resource.VERSIONS:
        for name, fields in resource.SUPERSET.items():
            table = TABLES.get(resource.package(version), name)
            assert isinstance(table, ObjectType)
            assert set(fields) <= table.fields.keys()
    assert set(resource.SUPERSET_KINDS) <= BY_KIND.keys()


def cells(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {column.name: column.cell(obj, NOW) for column in BY_KIND[kind].columns}


def test_columns_of_slices() -> None:
    spec = {"driver": "d.com", "pool": {"name": "p"}, "allNodes": True}

    assert cells("ResourceSlice", {"metadata": CREATED, "spec": spec}) == {
        "Name": "n",
        "Node": "",
        "Driver": "d.com",
        "Pool": "p",
        "Age": "5m",
    }
    local = {"metadata": {"name": "n"}, "spec": spec | {"nodeName": "m"}}
    assert cells("ResourceSlice", local)["Node"] == "m"
    assert cells("ResourceSlice", local)["Age"] == "<unknown>"


def test_columns_of_rules() -> None:
    taint = {"key": "k", "effect": "None", "timeAdded": "2026-02-27T12:00:00Z"}

    assert cells("DeviceTaintRule", {"metadata": CREATED, "spec": {"taint": taint}}) == {
        "Name": "n",
        "Key": "k",
        "Value": "",
        "Effect": "None",
        "TimeAdded": "2d",
        "Age": "5m",
    }
    bare = {"metadata": CREATED, "spec": {"taint": {"key": "k", "effect": "None"}}}
    assert cells("DeviceTaintRule", bare)["TimeAdded"] == ""


def test_columns_of_patches() -> None:
    devices = {"priority": 7, "filter": {"driver": "d.com", "pool": "p", "device": "d"}}

    assert cells("ResourceSlicePatch", {"metadata": CREATED, "spec": {"devices": devices}}) == {
        "Name": "n",
        "Priority": 7,
        "Driver": "d.com",
        "Pool": "p",
        "Device": "d",
        "Age": "5m",
    }
    bare = cells("ResourceSlicePatch", {"metadata": CREATED, "spec": {"devices": {}}})
    assert bare | {"Priority": 0, "Driver": "", "Pool": "", "Device": ""} == bare


ALLOCATED = {"allocation": {"devices": {"results": [result()]}}}
RESERVED = ALLOCATED | {"reservedFor": [consumer()]}
STATES: dict[str, tuple[dict[str, Any], bool]] = {
    "pending": ({}, False),
    "allocated": (ALLOCATED, False),
    "allocated,reserved": (RESERVED, False),
    "deleted": ({}, True),
    "deleted,allocated,reserved": (RESERVED, True),
}


@pytest.mark.parametrize("state", STATES)
def test_state_of_claims(state: str) -> None:
    status, deleted = STATES[state]
    metadata = CREATED | ({"deletionTimestamp": "2026-03-01T12:00:00Z"} if deleted else {})

    got = cells("ResourceClaim", {"metadata": metadata, "spec": {}, "status": status})

    assert got == {"Name": "n", "State": state, "Age": "5m"}


def test_fields_to_select_slices_by() -> None:
    slices = BY_KIND["ResourceSlice"]
    spec = {"driver": "d.com", "pool": {"name": "p"}}

    got = {label: value({"spec": spec}) for label, value in slices.selectable.items()}

    assert got == {"spec.nodeName": "", "spec.driver": "d.com", "spec.pool.name": "p"}
    assert slices.unknown_label is not None
    text = slices.unknown_label("resource.k8s.io", "v1", "ResourceSlice", "spec.x")
    assert text == "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.x"


def test_only_v1beta1_has_another_shape() -> None:
    for kind, one in BY_KIND.items():
        for version in one.versions:
            converts = served(one, version.name).to_stored is not None
            assert converts is (version.name == "v1beta1" and kind != "DeviceClass")
