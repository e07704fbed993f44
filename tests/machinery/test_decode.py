"""Decoding along a field table: types, zero values, unknown fields, Go's texts."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.api import build_scheme
from sully.machinery.formats.quantity import FORMAT_ERROR
from sully.machinery.schema import Tables
from sully.machinery.serialization.codec import copy, to_json
from sully.machinery.serialization.decode import DecodeError, decode, empty_object, walk

TABLE = """
Thing embeds(7=ThingSource): What the tests are about.
  name string: Left out when empty.
  kind string emit: Written even when empty.
  count int32: Left out when zero.
  limit int32 ptr: Zero is kept when given.
  big int64: Large.
  share number: A fraction.
  ready bool: Left out when false.
  shown bool emit: Always there.
  data bytes: Base64.
  since Time: Whole seconds.
  seen MicroTime null: Microseconds, null when absent.
  size Quantity: Canonical.
  port IntOrString: Either.
  extra object: Anything.
  part Part: Nested.
  always Part emit: Nested, always there.
  parts []Part: List of objects.
  words []string: List of texts.
  numbers []int64: List of numbers.
  labels {}string: Map of texts.
  byName {}Part: Map of objects.
  phase string go(Phase): A named text.
  uid string go(types.UID): A text named by another package.
  phases []string go([]Phase): List of named texts.
  sizes {}Part go(map[SizeName]Part): Map with named keys.
  source=7.1 string: A field of an embedded struct.
  deep=7.2 Part: An object in it.

Part: A part of a thing.
  id string required emit: Always there.
  note string: Optional.
  inner []Part: Deeper.
"""
TABLES = Tables()
TABLES.load("io.example.v1", "example", TABLE)
THING = TABLES.get("io.example.v1", "Thing")
BARE = {"kind": "", "shown": False, "seen": None, "always": {"id": ""}}


@dataclass(frozen=True)
class Case:
    sent: dict[str, Any]
    want: dict[str, Any]  # in addition to what is always there
    unknown: list[str] = field(default_factory=list)


CASES = {
    "nothing": Case({}, {}),
    "nulls are as if absent": Case(dict.fromkeys(THING.fields), {}),
    "empty optional values go": Case(
        {"name": "", "count": 0, "ready": False, "words": [], "labels": {}}, {}
    ),
    "a zero behind a pointer stays": Case({"limit": 0}, {"limit": 0}),
    "an empty part stays": Case({"part": {}}, {"part": {"id": ""}}),
    "an empty anything stays": Case({"extra": {}}, {"extra": {}}),
    "values": Case(
        {"name": "n", "count": -1, "big": 2**62, "share": 0.5, "ready": True, "port": "http"},
        {"name": "n", "count": -1, "big": 2**62, "share": 0.5, "ready": True, "port": "http"},
    ),
    "port zero": Case({"port": 0}, {"port": 0}),
    "a number for a fraction": Case({"share": 2}, {"share": 2}),
    "times in UTC and whole seconds": Case(
        {"since": "2030-01-01T12:00:00.9+02:00", "seen": "2030-01-01T12:00:00.000001Z"},
        {"since": "2030-01-01T10:00:00Z", "seen": "2030-01-01T12:00:00.000001Z"},
    ),
    "quantities in canonical form": Case({"size": "1024Mi"}, {"size": "1Gi"}),
    "a quantity as a number": Case({"size": 5}, {"size": "5"}),
    "base64 with line breaks": Case({"data": "aGk\n="}, {"data": "aGk="}),
    "nulls in lists and maps are zeros": Case(
        {"words": [None, "a"], "parts": [None], "labels": {"a": None}, "byName": {"x": None}},
        {
            "words": ["", "a"],
            "parts": [{"id": ""}],
            "labels": {"a": ""},
            "byName": {"x": {"id": ""}},
        },
    ),
    "unknown fields are named and left out": Case(
        {
            "colour": 1,
            "part": {"id": "a", "colour": 1},
            "parts": [{"id": "a"}, {"id": "b", "Note": "x", "inner": [{"z": 1}]}],
            "byName": {"x": {"y": 1}},
        },
        {
            "part": {"id": "a"},
            "parts": [{"id": "a"}, {"id": "b", "inner": [{"id": ""}]}],
            "byName": {"x": {"id": ""}},
        },
        ["colour", "part.colour", "parts[1].Note", "parts[1].inner[0].z", "byName.x.y"],
    ),
    "anything is kept as it is": Case({"extra": {"a": [None, {}]}}, {"extra": {"a": [None, {}]}}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_decode(case: Case) -> None:
    unknown: list[str] = []

    assert decode(case.sent, THING, unknown) == BARE | case.want
    assert unknown == case.unknown


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_close_look_sees_what_the_quick_one_sees(case: Case) -> None:
    unknown: list[str] = []

    assert walk(case.sent, THING, unknown) == decode(case.sent, THING, [])
    assert unknown == case.unknown


def test_what_was_sent_is_not_shared() -> None:
    sent = {"words": ["a"], "labels": {"a": "b"}, "extra": {"deep": [{}]}, "parts": [{"id": "x"}]}

    result = decode(sent, THING, [])
    result["words"].append("b")
    result["labels"]["c"] = "d"
    result["extra"]["deep"][0]["new"] = 1
    result["parts"][0]["id"] = "y"

    assert sent == {
        "words": ["a"],
        "labels": {"a": "b"},
        "extra": {"deep": [{}]},
        "parts": [{"id": "x"}],
    }


REFUSALS = {
    "a list for the object": (
        [],
        "json: cannot unmarshal array into Go value of type v1.Thing",
    ),
    "number for text": (
        {"name": 1},
        "json: cannot unmarshal number into Go struct field Thing.name of type string",
    ),
    "text for number": (
        {"count": "1"},
        "json: cannot unmarshal string into Go struct field Thing.count of type int32",
    ),
    "bool for number": (
        {"count": True},
        "json: cannot unmarshal bool into Go struct field Thing.count of type int32",
    ),
    "fraction for integer": (
        {"big": 1.5},
        "json: cannot unmarshal number 1.5 into Go struct field Thing.big of type int64",
    ),
    "too large": (
        {"count": 2**31},
        "json: cannot unmarshal number 2147483648 into Go struct field Thing.count of type int32",
    ),
    "text for bool": (
        {"ready": "yes"},
        "json: cannot unmarshal string into Go struct field Thing.ready of type bool",
    ),
    "object for list": (
        {"words": {}},
        "json: cannot unmarshal object into Go struct field Thing.words of type []string",
    ),
    "number in a list of texts": (
        {"words": ["a", 1]},
        "json: cannot unmarshal number into Go struct field Thing.words of type string",
    ),
    "a text named by another package": (
        {"uid": 1},
        "json: cannot unmarshal number into Go struct field Thing.uid of type types.UID",
    ),
    "an item of a list of named texts": (
        {"phases": [1]},
        "json: cannot unmarshal number into Go struct field Thing.phases of type v1.Phase",
    ),
    "a list of named texts": (
        {"phases": "x"},
        "json: cannot unmarshal string into Go struct field Thing.phases of type []v1.Phase",
    ),
    "a map with named keys": (
        {"sizes": []},
        "json: cannot unmarshal array into Go struct field Thing.sizes"
        " of type map[v1.SizeName]v1.Part",
    ),
    "a field of an embedded struct": (
        {"source": 1},
        "json: cannot unmarshal number into Go struct field Thing.ThingSource.source"
        " of type string",
    ),
    "a field below an embedded struct": (
        {"deep": {"id": 1}},
        "json: cannot unmarshal number into Go struct field Part.ThingSource.deep.id"
        " of type string",
    ),
    "a quantity of another type": ({"size": []}, FORMAT_ERROR),
    "a quantity that is true": ({"size": True}, FORMAT_ERROR),
    "list for map": (
        {"labels": []},
        "json: cannot unmarshal array into Go struct field Thing.labels of type map[string]string",
    ),
    "number in a map of texts": (
        {"labels": {"a": 1}},
        "json: cannot unmarshal number into Go struct field Thing.labels of type string",
    ),
    "text for an object": (
        {"part": "x"},
        "json: cannot unmarshal string into Go struct field Thing.part of type v1.Part",
    ),
    "deep down": (
        {"parts": [{"id": "a", "inner": [{"id": 1}]}]},
        "json: cannot unmarshal number into Go struct field Part.parts.inner.id of type string",
    ),
    "in an object of a map": (
        {"byName": {"a": {"id": 1}}},
        "json: cannot unmarshal number into Go struct field Part.byName.id of type string",
    ),
    "a named text": (
        {"phase": 1},
        "json: cannot unmarshal number into Go struct field Thing.phase of type v1.Phase",
    ),
    "number for a time": (
        {"since": 1},
        "json: cannot unmarshal number into Go struct field Thing.since of type string",
    ),
    "no time": (
        {"since": "soon"},
        'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"',
    ),
    "a wrong type before a bad time": (
        {"name": 1, "since": "soon"},
        'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"',
    ),
    "wrong types before a bad quantity": (
        {"parts": [{"id": 1}, 5], "labels": {"a": 1}, "size": "x", "since": "soon"},
        FORMAT_ERROR,
    ),
    "bad base64 before a port out of range": (
        {"data": "?", "port": 2**31},
        "json: cannot unmarshal number 2147483648 into Go struct field Thing.port of type int32",
    ),
    "no base64": ({"data": "a-b="}, "illegal base64 data at input byte 1"),
    "base64 cut short": ({"data": "aGkaG"}, "illegal base64 data at input byte 4"),
    "port out of range": (
        {"port": 2**31},
        "json: cannot unmarshal number 2147483648 into Go struct field Thing.port of type int32",
    ),
}


@pytest.mark.parametrize(("sent", "text"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals(sent: Any, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(sent, THING, [])

    assert str(caught.value) == text


def test_empty_object() -> None:
    assert empty_object(THING) == BARE


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "a", "1Gi", "2030-01-01T00:00:00Z", "aGk="]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*THING.fields, "id", "inner", "z"]), inner, max_size=5)
    ),
    max_leaves=15,
)
SCHEME = build_scheme()
KINDS = [
    SCHEME.schema(resource, version.name)
    for resource in SCHEME.resources()
    for version in resource.versions
    if version.enabled
]


@given(st.dictionaries(st.sampled_from([*THING.fields, "z"]), VALUES, max_size=6))
def test_decoding_twice_changes_nothing(body: dict[str, Any]) -> None:
    before = copy(body)
    unknown: list[Any] = []
    try:
        once = decode(body, THING, unknown)
    except DecodeError:
        return
    again: list[str] = []

    assert body == before
    assert decode(once, THING, again) == once
    assert again == []


TABLES.load(
    "io.example.v1",
    "example",
    """
Templated: Something that is made from templates.
  metadata Part: Of each its own.
  spec Thing emit: Of many the same.
""",
)
TEMPLATED = TABLES.get("io.example.v1", "Templated")
BODIES = st.dictionaries(st.sampled_from([*THING.fields, "z"]), VALUES, max_size=6)


@given(BODIES, BODIES)
def test_what_an_update_has_in_common_with_the_object_reads_alike(
    stored: dict[str, Any], change: dict[str, Any]
) -> None:
    try:
        known = decode(stored, THING, [])
        want = decode(known | change, THING, [])
    except DecodeError:
        return
    body = copy(known) | change

    for value in (body, known | change):
        result = decode(value, THING, [], known)
        # Also in the order of fields, and True is not 1.
        assert to_json(result) == to_json(want)
        shared = [name for name in result if type(result[name]) is dict and result[name]]
        assert not any(result[name] is value.get(name) for name in shared)


@pytest.mark.parametrize("known", [{"always": {"id": ""}}, {"extra": {"a": 1}}])
def test_a_body_that_is_not_an_object_is_refused_beside_a_known_one(known: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        decode([], THING, [], known)


def test_true_is_not_one_in_what_is_known() -> None:
    known = decode({"extra": {"a": 1}}, THING, [])

    assert decode({"extra": {"a": True}}, THING, [], known)["extra"]["a"] is True


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.full_name)
def test_every_kind_has_an_empty_form(kind: Any) -> None:
    empty = empty_object(kind)

    assert decode(empty, kind, []) == empty
    assert "metadata" in empty


def _outcome(read: Callable[..., Any], body: Any) -> tuple[str, list[str]] | str:
    """Return what a reader makes of a body: JSON, in which true is not 1, or an error."""
    unknown: list[str] = []
    try:
        result = read(body, TEMPLATED, unknown)
    except DecodeError as error:
        return str(error)
    return json.dumps(result, sort_keys=True), unknown


@given(BODIES)
def test_equal_specs_read_alike(spec: dict[str, Any]) -> None:
    bodies = [{"metadata": {"id": name}, "spec": copy(spec)} for name in "ab"]

    for body in bodies:
        assert _outcome(decode, body) == _outcome(walk, body)
    if not isinstance(_outcome(decode, bodies[0]), str):
        # Also in the order of fields.
        first, second = (decode(body, TEMPLATED, [])["spec"] for body in bodies)
        assert to_json(first) == to_json(second)


SPECS: dict[str, Any] = {
    "true": {"numbers": [True]},
    "one": {"numbers": [1]},
    "one as a fraction": {"numbers": [1.0]},
    "a number that JSON libraries refuse": {"numbers": [2**70]},
    "half a character": {"name": "\ud800"},
    "a list": [],
    "a set": {"words": {"a"}},
    "nothing": None,
}


def test_specs_that_are_equal_only_to_python_are_read_apart() -> None:
    for spec in (*SPECS.values(), *SPECS.values()):
        assert _outcome(decode, {"spec": spec}) == _outcome(walk, {"spec": spec})


def test_objects_of_one_template_share_no_spec() -> None:
    bodies = [{"spec": {"words": ["a"], "part": {"id": "x"}}} for _ in range(3)]
    first, second = (decode(body, TEMPLATED, []) for body in bodies[:2])
    for one in (first, second):
        one["spec"]["words"].append("b")
        one["spec"]["part"]["id"] = "y"

    assert decode(bodies[2], TEMPLATED, [])["spec"]["words"] == ["a"]
    assert decode(bodies[2], TEMPLATED, [])["spec"]["part"] == {"id": "x"}
    assert bodies[0] == bodies[2]
