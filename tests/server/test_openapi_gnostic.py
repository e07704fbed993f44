"""The protobuf form of OpenAPI 2, read back by the rules of the wire format alone."""

import struct
from typing import Any

import pytest

from sully.server.openapi import gnostic

Wire = list[tuple[int, Any]]


def read(data: bytes) -> Wire:
    """Split a message into numbered fields: integers for varints, floats, bytes for blocks."""
    fields: Wire = []
    position = 0
    while position < len(data):
        tag, position = varint(data, position)
        if tag & 7 == 1:
            (number,) = struct.unpack_from("<d", data, position)
            fields.append((tag >> 3, number))
            position += 8
            continue
        value, position = varint(data, position)
        if tag & 7 == 2:
            assert position + value <= len(data)
            fields.append((tag >> 3, data[position : position + value]))
            position += value
        else:
            assert tag & 7 == 0
            fields.append((tag >> 3, value))
    return fields


def varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position


def walk(data: bytes, *numbers: int) -> list[Any]:
    """Follow field numbers down and return what lies there."""
    results: list[Any] = [data]
    for number in numbers:
        results = [value for block in results for at, value in read(block) if at == number]
    return results


LONG = "long " * 60
DOCUMENT = {
    "swagger": "2.0",
    "info": {"title": "Sully", "version": "1.37"},
    "paths": {
        "/a/{name}": {
            "patch": {
                "description": "Changes it.",
                "consumes": ["x/y", "x/z"],
                "operationId": "patchIt",
                "parameters": [
                    {"name": "body", "in": "body", "required": True, "schema": {"$ref": "#/d/A"}},
                    {"name": "dryRun", "in": "query", "type": "string", "uniqueItems": True},
                ],
                "responses": {"200": {"description": "OK", "schema": {"$ref": "#/d/A"}}},
                "x-kubernetes-group-version-kind": {"group": "g", "version": "v1", "kind": "A"},
            },
            "parameters": [
                {
                    "name": "name",
                    "in": "path",
                    "required": True,
                    "type": "string",
                    "uniqueItems": True,
                }
            ],
        }
    },
    "definitions": {
        "A": {
            "description": LONG,
            "type": "object",
            "required": ["b"],
            "properties": {
                "b": {"type": "array", "items": {"type": "string", "format": "byte"}},
                "c": {"type": "object", "additionalProperties": {"$ref": "#/d/B"}},
                "d": {"type": "object", "additionalProperties": True, "maxProperties": 300},
                "e": {"type": "number", "minimum": -1, "maximum": 2.5, "pattern": "^a"},
                "f": {"externalDocs": {"url": "https://example.com"}, "example": 1},
            },
            "x-kubernetes-map-type": "atomic",
        }
    },
    "security": [{"BearerToken": []}],
    "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "n", "in": "header"}},
}
SCHEMA = (9, 1, 2)  # definitions, pair, value
PATCH = (8, 2, 2, 8)  # paths, pair, value, patch
PLACES = {
    "swagger": ((1,), [b"2.0"]),
    "title": ((2, 1), [b"Sully"]),
    "version": ((2, 2), [b"1.37"]),
    "path": ((8, 2, 1), [b"/a/{name}"]),
    "operation": ((*PATCH, 5), [b"patchIt"]),
    "consumes": ((*PATCH, 7), [b"x/y", b"x/z"]),
    "body parameter": ((*PATCH, 8, 1, 1, 2), [b"body"]),
    "body required": ((*PATCH, 8, 1, 1, 4), [1]),
    "body schema": ((*PATCH, 8, 1, 1, 5, 1), [b"#/d/A"]),
    "query parameter": ((*PATCH, 8, 1, 2, 3, 4), [b"dryRun"]),
    "query type": ((*PATCH, 8, 1, 2, 3, 6), [b"string"]),
    "query unique": ((*PATCH, 8, 1, 2, 3, 20), [1]),
    "response code": ((*PATCH, 9, 1, 1), [b"200"]),
    "response text": ((*PATCH, 9, 1, 2, 1, 1), [b"OK"]),
    "response schema": ((*PATCH, 9, 1, 2, 1, 2, 1, 1), [b"#/d/A"]),
    "extension name": ((*PATCH, 13, 1), [b"x-kubernetes-group-version-kind"]),
    "extension value": ((*PATCH, 13, 2, 2), [b'{"group":"g","version":"v1","kind":"A"}\n']),
    "path parameter": ((8, 2, 2, 9, 1, 2, 4, 4), [b"name"]),
    "path parameter type": ((8, 2, 2, 9, 1, 2, 4, 5), [b"string"]),
    "path parameter unique": ((8, 2, 2, 9, 1, 2, 4, 19), [1]),
    "definition": ((9, 1, 1), [b"A"]),
    "long description": ((*SCHEMA, 4), [LONG.encode()]),
    "type": ((*SCHEMA, 22, 1), [b"object"]),
    "required": ((*SCHEMA, 19), [b"b"]),
    "properties": ((*SCHEMA, 25, 1, 1), [b"b", b"c", b"d", b"e", b"f"]),
    "items": ((*SCHEMA, 25, 1, 2, 23, 1, 22, 1), [b"string"]),
    "format": ((*SCHEMA, 25, 1, 2, 23, 1, 2), [b"byte"]),
    "map values": ((*SCHEMA, 25, 1, 2, 21, 1, 1), [b"#/d/B"]),
    "map of anything": ((*SCHEMA, 25, 1, 2, 21, 2), [1]),
    "maximum length of a map": ((*SCHEMA, 25, 1, 2, 17), [300]),
    "minimum": ((*SCHEMA, 25, 1, 2, 9), [-1.0]),
    "maximum": ((*SCHEMA, 25, 1, 2, 7), [2.5]),
    "pattern": ((*SCHEMA, 25, 1, 2, 13), [b"^a"]),
    "external documentation": ((*SCHEMA, 25, 1, 2, 29, 2), [b"https://example.com"]),
    "example": ((*SCHEMA, 25, 1, 2, 30, 2), [b"1\n"]),
    "schema extension": ((*SCHEMA, 31, 2, 2), [b'"atomic"\n']),
    "security": ((12, 1, 1), [b"BearerToken"]),
    "security scheme": ((13, 1, 2, 2, 1), [b"apiKey"]),
}


@pytest.mark.parametrize(("numbers", "want"), PLACES.values(), ids=PLACES.keys())
def test_a_value_lies_where_gnostic_expects_it(numbers: tuple[int, ...], want: list[Any]) -> None:
    assert walk(gnostic.encode(DOCUMENT), *numbers) == want


def test_a_key_without_a_number_is_not_lost_silently() -> None:
    with pytest.raises(KeyError, match="deprecated"):
        gnostic.encode({"paths": {"/": {"get": {"deprecated": True}}}})
