"""Protobuf bodies become the values that JSON bodies have."""

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machinery.protobuf.encoder import RECORDED, chunk, entry, envelope, short, varint, whole
from sully.api import build_scheme
from sully.api.apiextensions import PACKAGE as DEFINITIONS
from sully.api.tables import load
from sully.machinery.schema import ObjectType, Tables
from sully.machinery.serialization.decode import decode
from sully.machinery.serialization.protobuf import MAGIC, read_envelope, read_message
from sully.machinery.serialization.protobuf_wire import ProtobufError
from sully.machinery.serialization.protobuf_writer import write_message

REVIEWS = ("authentication", "authorization")


def all_tables() -> Tables:
    """Return the tables of everything kubectl sends, also of kinds that are never stored."""
    tables = build_scheme().tables
    for group in REVIEWS:
        load(tables, f"sully.api.{group}", f"io.k8s.api.{group}.v1", f"{group}.fields")
    return tables


TABLES = all_tables()


def type_of(api_version: str, kind: str) -> ObjectType:
    group, _, version = api_version.rpartition("/")
    if group == "apiextensions.k8s.io":
        return TABLES.get(DEFINITIONS, kind)
    return TABLES.get(f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}", kind)


@pytest.mark.parametrize("record", RECORDED, ids=short)
def test_both_forms_of_a_recorded_request_mean_the_same(record: Any) -> None:
    envelope = read_envelope(base64.b64decode(record["body"]))
    schema = type_of(envelope.api_version, envelope.kind)
    unknown: list[str] = []

    value = read_message(envelope.raw, schema)

    want = decode(record["means"], schema, unknown)
    got = decode({"kind": envelope.kind, "apiVersion": envelope.api_version, **value}, schema, [])
    assert unknown == []
    assert got == want


# -- one field of each type ---------------------------------------------------------------------

SMALL = """\
Thing: Has a field of every type.
  text=1 string: T.
  small=2 int32 ptr: T.
  large=3 int64: T.
  flag=4 bool: T.
  data=5 bytes: T.
  at=6 Time: T.
  exactly=7 MicroTime: T.
  amount=8 Quantity: T.
  port=9 IntOrString: T.
  raw=10 object: T.
  words=11 []string: T.
  figures=12 []int64: T.
  flags=13 []bool: T.
  parts=14 []Part: T.
  part=15 Part: T.
  labels=16 {}string: T.
  blobs=17 {}bytes: T.
  amounts=18 {}Quantity: T.
  things=19 {}Part: T.
  times=20 {}Time: T.
  extra=21 {}[]string: T.
  inlined=22.1 string: T.
  deeper=22.2 Part: T.
  later string: T.

Part: A message inside.
  name=1 string: T.
  size=2 int32: T.
"""


def small() -> ObjectType:
    tables = Tables()
    tables.load("small.v1", "small", SMALL)
    return tables.get("small.v1", "Thing")


VALUES: dict[str, tuple[bytes, Any]] = {
    "text": (chunk(1, "größe"), {"text": "größe"}),
    "text that is not UTF-8": (chunk(1, b"a\xff"), {"text": "a�"}),
    "the last of two": (chunk(1, "a") + chunk(1, "b"), {"text": "b"}),
    "a negative number": (whole(2, -5), {"small": -5}),
    "a number too wide is cut": (whole(2, 2**32 + 7), {"small": 7}),
    "the smallest number": (whole(3, -(2**63)), {"large": -(2**63)}),
    "true": (whole(4, 1), {"flag": True}),
    "false": (whole(4, 0), {"flag": False}),
    "bytes": (chunk(5, b"\x00\xff"), {"data": "AP8="}),
    "a time": (chunk(6, whole(1, 1767323045) + whole(2, 999)), {"at": "2026-01-02T03:04:05Z"}),
    "no time": (chunk(6, b""), {"at": None}),
    "the epoch": (chunk(6, whole(1, 0) + whole(2, 0)), {"at": "1970-01-01T00:00:00Z"}),
    "an exact time": (
        chunk(7, whole(1, 1767323045) + whole(2, 123456789)),
        {"exactly": "2026-01-02T03:04:05.123456Z"},
    ),
    "a quantity": (chunk(8, chunk(1, "1500m")), {"amount": "1500m"}),
    "no quantity": (chunk(8, b""), {"amount": "0"}),
    "a number for a port": (
        chunk(9, whole(1, 0) + whole(2, 80) + chunk(3, "")),
        {"port": 80},
    ),
    "a text for a port": (
        chunk(9, whole(1, 1) + whole(2, 0) + chunk(3, "http")),
        {"port": "http"},
    ),
    "raw JSON": (chunk(10, chunk(1, '{"a":[1]}')), {"raw": {"a": [1]}}),
    "no raw JSON": (chunk(10, b""), {"raw": None}),
    "a list": (chunk(11, "a") + chunk(11, "") + chunk(11, "b"), {"words": ["a", "", "b"]}),
    "numbers one by one": (whole(12, 1) + whole(12, -1), {"figures": [1, -1]}),
    "numbers packed": (chunk(12, varint(1) + varint(300) + varint(-1)), {"figures": [1, 300, -1]}),
    "flags packed": (chunk(13, varint(1) + varint(0)), {"flags": [True, False]}),
    "messages": (
        chunk(14, chunk(1, "a")) + chunk(14, b"") + chunk(14, whole(2, 3)),
        {"parts": [{"name": "a"}, {}, {"size": 3}]},
    ),
    "an empty message": (chunk(15, b""), {"part": {}}),
    "a message in two parts": (
        chunk(15, chunk(1, "a")) + chunk(15, whole(2, 3)),
        {"part": {"name": "a", "size": 3}},
    ),
    "a map of texts": (
        entry(16, "a", chunk(2, "x")) + entry(16, "b", b""),
        {"labels": {"a": "x", "b": ""}},
    ),
    "a map of bytes": (
        entry(17, "a", chunk(2, b"\x01")) + entry(17, "b", b""),
        {"blobs": {"a": "AQ==", "b": ""}},
    ),
    "a map of quantities": (
        entry(18, "cpu", chunk(2, chunk(1, "2"))) + entry(18, "memory", b""),
        {"amounts": {"cpu": "2", "memory": "0"}},
    ),
    "a map of messages": (
        entry(19, "a", chunk(2, chunk(1, "x"))) + entry(19, "b", b""),
        {"things": {"a": {"name": "x"}, "b": {}}},
    ),
    "a map of times": (
        entry(20, "a", chunk(2, whole(1, 60) + whole(2, 0))),
        {"times": {"a": "1970-01-01T00:01:00Z"}},
    ),
    "a map of lists": (
        entry(21, "a", chunk(2, chunk(1, "x") + chunk(1, "y"))) + entry(21, "b", b""),
        {"extra": {"a": ["x", "y"], "b": []}},
    ),
    "an embedded message": (
        chunk(22, chunk(1, "in") + chunk(2, chunk(1, "deep"))),
        {"inlined": "in", "deeper": {"name": "deep"}},
    ),
    "unknown numbers": (
        whole(99, 1)
        + chunk(98, b"x")
        + varint(97 << 3 | 1)
        + bytes(8)
        + varint(96 << 3 | 5)
        + bytes(4)
        + chunk(23, "a field the table lost"),
        {f"protobuf:{number}": True for number in (99, 98, 97, 96, 23)},
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_value(name: str) -> None:
    schema = small()
    raw, want = VALUES[name]

    assert read_message(raw, schema) == want


BROKEN: dict[str, tuple[bytes, str]] = {
    "a length past the end": (b"\x0a\x05ab", "unexpected EOF"),
    "a length without end": (b"\x0a" + b"\xff" * 10, "proto: integer overflow"),
    "a tag alone": (b"\x0a", "unexpected EOF"),
    "a number cut off": (b"\x10\x80", "unexpected EOF"),
    "number zero": (b"\x02\x00", "proto: illegal tag 0 (wire type 2)"),
    "a group": (b"\x0b", "proto: illegal wireType 3"),
    "eight bytes cut off": (b"\x09\x00", "unexpected EOF"),
    "a number for a text": (whole(1, 1), "proto: wrong wireType for field text"),
    "a text for a number": (chunk(2, "1"), "proto: wrong wireType for field small"),
    "a number for a message": (whole(15, 1), "proto: wrong wireType for field part"),
    "a number for a map": (whole(16, 1), "proto: wrong wireType for field labels"),
    "an impossible port": (chunk(9, whole(1, 7)), "impossible IntOrString.Type"),
    "a time after all times": (chunk(6, whole(1, 2**62)), "time out of range"),
    "raw text that is not JSON": (chunk(10, chunk(1, "{")), "unexpected end of JSON input"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_message(name: str) -> None:
    schema = small()
    raw, complaint = BROKEN[name]

    with pytest.raises(ProtobufError) as caught:
        read_message(raw, schema)

    assert str(caught.value) == complaint


def test_a_message_in_itself_has_a_bottom() -> None:
    tables = Tables()
    tables.load("deep.v1", "deep", "Node: N.\n  next=1 Node: N.\n")
    raw = b""
    for _ in range(200):
        raw = chunk(1, raw)

    with pytest.raises(ProtobufError, match="exceeded max depth"):
        read_message(raw, tables.get("deep.v1", "Node"))


# -- the envelope -------------------------------------------------------------------------------


def test_envelope() -> None:
    result = read_envelope(envelope("apps/v1", "Deployment", b"raw"))

    assert (result.api_version, result.kind, result.raw) == ("apps/v1", "Deployment", b"raw")


ENVELOPES: dict[bytes, str] = {
    b"": "empty data",
    b'{"kind":"Pod"}': (
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    ),
    MAGIC + b"\x0a": "unexpected EOF",
    MAGIC + whole(1, 1): "proto: wrong wireType for field 1",
    MAGIC + chunk(3, "gzip"): "unsupported content encoding 'gzip'",
}


@pytest.mark.parametrize(("raw", "complaint"), ENVELOPES.items())
def test_broken_envelope(raw: bytes, complaint: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        read_envelope(raw)

    assert str(caught.value) == complaint


# -- whatever bytes come ------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    schema = small()
    try:
        value = read_message(raw, schema)
        envelope = read_envelope(MAGIC + raw)
    except ProtobufError:
        return
    assert isinstance(value, dict)
    assert isinstance(envelope.raw, bytes)


POD = next(record for record in RECORDED if record["command"].startswith("debug"))


@given(st.data())
def test_a_damaged_pod_is_read_or_refused(data: st.DataObject) -> None:
    raw = bytearray(base64.b64decode(POD["body"]))
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(4, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        envelope = read_envelope(bytes(raw))
        value = read_message(envelope.raw, type_of("v1", "Pod"))
    except ProtobufError:
        return
    known = {name for name in value if not name.startswith("protobuf:")}
    assert known <= {"metadata", "spec", "status"}


TEXTS = st.text(max_size=5)


@given(
    st.dictionaries(TEXTS, TEXTS, max_size=4),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4),
    st.lists(st.tuples(TEXTS, st.integers(-(2**31), 2**31 - 1)), max_size=4),
)
def test_what_was_written_is_read(
    labels: dict[str, str], figures: list[int], parts: list[tuple[str, int]]
) -> None:
    schema = small()
    raw = b"".join(entry(16, key, chunk(2, value)) for key, value in labels.items())
    raw += b"".join(whole(12, figure) for figure in figures)
    raw += b"".join(chunk(14, chunk(1, name) + whole(2, size)) for name, size in parts)

    value = read_message(raw, schema)

    assert value.get("labels", {}) == labels
    assert value.get("figures", []) == figures
    assert value.get("parts", []) == [{"name": name, "size": size} for name, size in parts]


SCHEMAS: dict[str, dict[str, Any]] = {
    "items of one schema": {"items": {"type": "string"}},
    "items of several schemas": {"items": [{"type": "string"}, {"type": "integer"}]},
    "any values": {"additionalProperties": True},
    "no values": {"additionalProperties": False},
    "values of a schema": {"additionalProperties": {"type": "string"}},
    "values of any schema": {"additionalProperties": {}},
    "no further items": {"additionalItems": False},
    "dependencies": {"dependencies": {"a": ["b", "c"], "d": {"type": "object"}}},
    "whole numbers": {"minimum": -3, "maximum": 2**53, "multipleOf": 1},
    "fractions": {"minimum": -0.25, "maximum": 1.5e300},
    "zeros": {"minimum": 0, "maxLength": 0, "x-kubernetes-preserve-unknown-fields": False},
    "values of every form": {"enum": [None, 1, 1.5, "a", [], {"b": True}], "default": False},
    "schemas in schemas": {
        "properties": {"a": {"items": {"additionalProperties": {"not": {"enum": ["x"]}}}}}
    },
    "rules": {"x-kubernetes-validations": [{"rule": "true", "optionalOldSelf": False}]},
}


@pytest.mark.parametrize("value", SCHEMAS.values(), ids=SCHEMAS)
def test_schemas_are_written_and_read(value: dict[str, Any]) -> None:
    schema = TABLES.get(DEFINITIONS, "JSONSchemaProps")

    assert read_message(write_message(schema, value), schema) == value


GO_WRITES: dict[str, tuple[bytes, dict[str, Any]]] = {
    "a schema of values reports that there may be any": (
        chunk(30, whole(1, 1) + chunk(2, chunk(5, "string"))),
        {"additionalProperties": {"type": "string"}},
    ),
    "no values at all": (chunk(30, whole(1, 0)), {"additionalProperties": False}),
    "no values, without the zero": (chunk(30, b""), {"additionalProperties": False}),
    "neither a schema nor a list": (chunk(24, b""), {"items": None}),
    "a number": (b"\x49" + struct.pack("<d", 5), {"maximum": 5}),
    "a number with an exponent": (b"\x49" + struct.pack("<d", 1e21), {"maximum": 1e21}),
}


@pytest.mark.parametrize(("raw", "value"), GO_WRITES.values(), ids=GO_WRITES)
def test_schemas_are_read_as_go_writes_them(raw: bytes, value: dict[str, Any]) -> None:
    schema = TABLES.get(DEFINITIONS, "JSONSchemaProps")

    assert read_message(raw, schema) == value
    assert read_message(write_message(schema, value), schema) == {
        name: one for name, one in value.items() if one is not None
    }


@pytest.mark.parametrize(
    "raw",
    {
        "four bytes": b"\x4d" + struct.pack("<f", 5),
        "infinite": b"\x49" + struct.pack("<d", float("inf")),
        "not a number": b"\x49" + struct.pack("<d", float("nan")),
        "text": chunk(9, "12345"),
    }.items(),
    ids=lambda case: case[0],
)
def test_what_is_not_a_number_is_refused(raw: tuple[str, bytes]) -> None:
    with pytest.raises(ProtobufError, match="maximum"):
        read_message(raw[1], TABLES.get(DEFINITIONS, "JSONSchemaProps"))


MATCHES = {
    "operations": ["CREATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "scope": "*",
}


@pytest.mark.parametrize(
    ("kind", "value"),
    {
        "a message in a message in another": (
            ("admissionregistration.k8s.io/v1", "MatchResources"),
            {"resourceRules": [{"resourceNames": ["a"], **MATCHES}]},
        ),
        "a message in another": (
            ("v1", "Volume"),
            {"name": "v", "hostPath": {"path": "/a", "type": ""}},
        ),
    }.values(),
    ids=lambda case: str(case)[:40],
)
def test_embedded_messages_are_written_and_read(
    kind: tuple[str, str], value: dict[str, Any]
) -> None:
    schema = type_of(*kind)

    assert read_message(write_message(schema, value), schema) == value
