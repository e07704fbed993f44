"""OpenAPI 2 in the protobuf form of gnostic (`openapi.v2.Document`).

kubectl before 1.29 reads nothing else. The messages are a table: for each message, the number and
type of every JSON key we write. A type is a scalar, a message, or one of these around a type:
`*` a list of it, `map` a list of name and value pairs, `any` a value of any shape, written as
YAML (JSON is YAML). Keys that begin with `x-` go to the message's list of extensions.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from sully.machinery.serialization.protobuf_writer import varint

Obj = Mapping[str, Any]

_EXTENSIONS = {
    "Info": 7,
    "Operation": 13,
    "PathItem": 10,
    "Schema": 31,
    "Response": 5,
    "BodyParameter": 6,
    "QueryParameter": 23,
    "PathParameter": 22,
}
_PARAMETER_SHARED = {
    "required": (1, "bool"),
    "in": (2, "string"),
    "description": (3, "string"),
    "name": (4, "string"),
}
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Document": {
        "swagger": (1, "string"),
        "info": (2, "Info"),
        "paths": (8, "Paths"),
        "definitions": (9, "Definitions"),
        "security": (12, "*SecurityRequirement"),
        "securityDefinitions": (13, "SecurityDefinitions"),
    },
    "Info": {"title": (1, "string"), "version": (2, "string")},
    "PathItem": {
        "get": (2, "Operation"),
        "put": (3, "Operation"),
        "post": (4, "Operation"),
        "delete": (5, "Operation"),
        "patch": (8, "Operation"),
        "parameters": (9, "*Parameter"),
    },
    "Operation": {
        "tags": (1, "*string"),
        "description": (3, "string"),
        "operationId": (5, "string"),
        "produces": (6, "*string"),
        "consumes": (7, "*string"),
        "parameters": (8, "*Parameter"),
        "responses": (9, "Responses"),
        "schemes": (10, "*string"),
    },
    "BodyParameter": {
        "description": (1, "string"),
        "name": (2, "string"),
        "in": (3, "string"),
        "required": (4, "bool"),
        "schema": (5, "Schema"),
    },
    "QueryParameter": _PARAMETER_SHARED | {"type": (6, "string"), "uniqueItems": (20, "bool")},
    "PathParameter": _PARAMETER_SHARED | {"type": (5, "string"), "uniqueItems": (19, "bool")},
    "Response": {"description": (1, "string"), "schema": (2, "SchemaItem")},
    "Schema": {
        "$ref": (1, "string"),
        "format": (2, "string"),
        "title": (3, "string"),
        "description": (4, "string"),
        "default": (5, "any"),
        "multipleOf": (6, "double"),
        "maximum": (7, "double"),
        "exclusiveMaximum": (8, "bool"),
        "minimum": (9, "double"),
        "exclusiveMinimum": (10, "bool"),
        "maxLength": (11, "int64"),
        "minLength": (12, "int64"),
        "pattern": (13, "string"),
        "maxItems": (14, "int64"),
        "minItems": (15, "int64"),
        "uniqueItems": (16, "bool"),
        "maxProperties": (17, "int64"),
        "minProperties": (18, "int64"),
        "required": (19, "*string"),
        "enum": (20, "*any"),
        "additionalProperties": (21, "AdditionalProperties"),
        "type": (22, "Type"),
        "items": (23, "Items"),
        "properties": (25, "Definitions"),
        "externalDocs": (29, "ExternalDocs"),
        "example": (30, "any"),
    },
    "ExternalDocs": {"description": (1, "string"), "url": (2, "string")},
    "ApiKeySecurity": {
        "type": (1, "string"),
        "name": (2, "string"),
        "in": (3, "string"),
        "description": (4, "string"),
    },
}


def encode(document: Obj) -> bytes:
    """Encode an OpenAPI 2 document; a key the table lacks is an error, not a loss."""
    return _message("Document", document)


def _message(name: str, value: Obj) -> bytes:
    table = _MESSAGES[name]
    parts = []
    for key, content in value.items():
        if key.startswith("x-"):
            pair = _text(1, key) + _block(2, _any(content))
            parts.append(_block(_EXTENSIONS[name], pair))
        else:
            parts.extend(_field(*table[key], content))
    return b"".join(parts)


def _field(number: int, kind: str, value: Any) -> Iterator[bytes]:
    if kind.startswith("*"):
        for item in value:
            yield from _field(number, kind[1:], item)
    elif kind == "string":
        yield _text(number, value)
    elif kind in ("bool", "int64"):
        yield varint(number << 3) + varint(int(value))
    elif kind == "double":
        yield varint(number << 3 | 1) + struct.pack("<d", value)
    else:
        yield _block(number, _SPECIAL.get(kind, lambda content: _message(kind, content))(value))


def _any(value: Any) -> bytes:
    return _block(2, msgspec.json.encode(value) + b"\n")


def _named(number: int, value: Callable[[Any], bytes]) -> Callable[[Obj], bytes]:
    """Write a JSON object whose keys are data as a list of pairs."""

    def write(content: Obj) -> bytes:
        return b"".join(
            _block(number, _text(1, name) + _block(2, value(item)))
            for name, item in content.items()
        )

    return write


def _inside(number: int, name: str) -> Callable[[Any], bytes]:
    """Encode a message that is the only field of another one."""
    return lambda content: _block(number, _message(name, content))


def _additional(content: Obj | bool) -> bytes:
    if isinstance(content, bool):
        return b"".join(_field(2, "bool", content))
    return _inside(1, "Schema")(content)


def _parameter(content: Obj) -> bytes:
    if content["in"] == "body":
        return _block(1, _inside(1, "BodyParameter")(content))
    chosen = (4, "PathParameter") if content["in"] == "path" else (3, "QueryParameter")
    return _block(1, _block(2, _inside(*chosen)(content)))


def _scopes(names: list[str]) -> bytes:
    return b"".join(_text(1, name) for name in names)


_SPECIAL: dict[str, Callable[[Any], bytes]] = {
    "any": _any,
    "Paths": _named(2, lambda content: _message("PathItem", content)),
    "Definitions": _named(1, lambda content: _message("Schema", content)),
    "Responses": _named(1, _inside(1, "Response")),
    "SecurityDefinitions": _named(1, _inside(2, "ApiKeySecurity")),
    "SecurityRequirement": _named(1, _scopes),
    "SchemaItem": _inside(1, "Schema"),
    "AdditionalProperties": _additional,
    "Items": _inside(1, "Schema"),
    "Type": lambda content: _text(1, content),
    "Parameter": _parameter,
}


def _block(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def _text(number: int, value: str) -> bytes:
    return _block(number, value.encode())
