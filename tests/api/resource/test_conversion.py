"""Versions are views of one object: going through any of them loses nothing."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.resource.writing import BY_KIND, TABLES, served
from property_examples import examples
from sully.api.resource import types
from sully.machinery.schema import ListOf, MapOf, ObjectType, Scalar, Type
from sully.machinery.serialization.decode import decode

STRUCTS: dict[str, Any] = {
    "ResourceSlice": types.ResourceSlice,
    "DeviceClass": types.DeviceClass,
    "ResourceClaim": types.ResourceClaim,
    "ResourceClaimTemplate": types.ResourceClaimTemplate,
    "DeviceTaintRule": types.DeviceTaintRule,
    "ResourceSlicePatch": types.ResourceSlicePatch,
}


def schema(kind: str, version: str) -> ObjectType:
    return TABLES.get(served(BY_KIND[kind], version).package, kind)


def to_stored(kind: str, version: str, obj: dict[str, Any]) -> dict[str, Any]:
    convert = served(BY_KIND[kind], version).to_stored
    return convert(obj) if convert else obj


def from_stored(kind: str, version: str, obj: dict[str, Any]) -> dict[str, Any]:
    convert = served(BY_KIND[kind], version).from_stored
    return convert(obj) if convert else obj


def _suite() -> Iterator[Any]:
    folder = os.environ.get("SULLY_SUITES")
    if not folder:
        return
    for path in sorted((Path(folder) / "roundtrip").glob("resource.k8s.io.*.json")):
        *_, version, kind = path.stem.split(".")
        if kind in BY_KIND:
            body = json.loads(path.read_text(encoding="utf-8"))
            yield pytest.param(kind, version, body, id=f"{version}-{kind}")


SUITE = list(_suite())

if SUITE:  # without the folder there is nothing to replay

    @pytest.mark.parametrize(("kind", "version", "body"), SUITE)
    def test_a_fully_filled_object_survives(kind: str, version: str, body: dict[str, Any]) -> None:
        unknown: list[str] = []

        obj = decode(body, schema(kind, version), unknown)

        assert unknown == []
        assert obj == body
        for other in BY_KIND[kind].versions:
            there = from_stored(kind, other.name, to_stored(kind, version, obj))
            decoded = decode(there, schema(kind, other.name), unknown)
            assert unknown == []
            assert from_stored(kind, version, to_stored(kind, other.name, decoded)) == body


def values(kind: Type, depth: int = 0) -> st.SearchStrategy[Any]:
    """Make any value that fits a table."""
    if isinstance(kind, Scalar):
        return SCALARS[kind.name]
    if isinstance(kind, ListOf):
        return st.lists(values(kind.item, depth + 1), max_size=2)
    if isinstance(kind, MapOf):
        return st.dictionaries(words, values(kind.value, depth + 1), max_size=2)
    # One is too large to make up, the other is dead.
    left_out = ("managedFields", "selfLink")
    fields = {name: one for name, one in kind.fields.items() if name not in left_out}
    return st.fixed_dictionaries(
        {name: values(one.type, depth + 1) for name, one in fields.items() if one.required},
        optional={
            name: values(one.type, depth + 1) for name, one in fields.items() if not one.required
        },
    )


words = st.text(alphabet="ab1/.-", min_size=0, max_size=4)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": words,
    "int32": st.integers(-1, 3),
    "int64": st.integers(-1, 3),
    "bool": st.booleans(),
    "Time": st.sampled_from(["2021-01-01T00:00:00Z", "2022-02-02T02:02:02Z"]),
    "Quantity": st.sampled_from(["0", "1", "500m", "1Gi"]),
    "object": st.dictionaries(words, words, max_size=1),
}


@st.composite
def objects(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    kind = draw(st.sampled_from(sorted(STRUCTS)))
    version = draw(st.sampled_from([one.name for one in BY_KIND[kind].versions]))
    body = draw(values(TABLES.get(served(BY_KIND[kind], version).package, kind)))
    return kind, version, decode(body, schema(kind, version), [])


def normal(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    """Leave out what reports nothing: v1beta1 cannot decide an empty `exactly` from none."""
    if kind not in ("ResourceClaim", "ResourceClaimTemplate"):
        return obj
    spec = obj["spec"] if kind == "ResourceClaim" else obj["spec"]["spec"]
    for request in spec["devices"].get("requests") or ():
        if request.get("exactly") == {"deviceClassName": ""}:
            del request["exactly"]
    return obj


@settings(max_examples=examples(150))
@given(objects())
def test_any_object_survives_the_way_through_every_version(
    made: tuple[str, str, dict[str, Any]],
) -> None:
    kind, version, obj = made
    stored = normal(kind, to_stored(kind, version, json.loads(json.dumps(obj))))

    for other in BY_KIND[kind].versions:
        unknown: list[str] = []
        there = decode(from_stored(kind, other.name, stored), schema(kind, other.name), unknown)
        assert unknown == []
        assert to_stored(kind, other.name, there) == stored


@settings(max_examples=examples(150))
@given(objects())
def test_the_types_hold_everything_the_tables_do(made: tuple[str, str, dict[str, Any]]) -> None:
    kind, version, obj = made
    stored = to_stored(kind, version, obj)

    value = msgspec.convert(stored, STRUCTS[kind])

    back = json.loads(msgspec.json.encode(value))
    assert (
        decode(back | head(stored), schema(kind, BY_KIND[kind].storage_version.name), []) == stored
    )


def head(obj: dict[str, Any]) -> dict[str, Any]:
    return {name: obj[name] for name in ("apiVersion", "kind") if name in obj}


def test_conversion_shares_nothing_it_would_have_to_change() -> None:
    stored = {
        "metadata": {"name": "s"},
        "spec": {"devices": [{"name": "d", "taints": [{"key": "k"}]}]},
    }
    before = json.dumps(stored)

    there = from_stored("ResourceSlice", "v1beta1", stored)

    assert there["spec"]["devices"] == [{"name": "d", "basic": {"taints": [{"key": "k"}]}}]
    assert json.dumps(stored) == before


REQUESTS = {
    "a class name makes it exact": (
        {"name": "r", "deviceClassName": "c"},
        {"name": "r", "exactly": {"deviceClassName": "c"}},
    ),
    "any other flat field makes it exact": (
        {"name": "r", "deviceClassName": "", "adminAccess": False},
        {"name": "r", "exactly": {"deviceClassName": "", "adminAccess": False}},
    ),
    "only a name stays without": ({"name": "r", "deviceClassName": ""}, {"name": "r"}),
    "alternatives stay": (
        {"name": "r", "deviceClassName": "", "firstAvailable": [{"name": "a"}]},
        {"name": "r", "firstAvailable": [{"name": "a"}]},
    ),
}


@pytest.mark.parametrize(("flat", "want"), REQUESTS.values(), ids=REQUESTS.keys())
def test_requests_of_v1beta1(flat: dict[str, Any], want: dict[str, Any]) -> None:
    def with_request(request: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {}, "spec": {"devices": {"requests": [request]}}}

    assert to_stored("ResourceClaim", "v1beta1", with_request(flat)) == with_request(want)
    assert from_stored("ResourceClaim", "v1beta1", with_request(want)) == with_request(flat)
