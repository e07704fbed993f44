"""Field tables as the schemas that custom resource definitions take.

Those are OpenAPI version 3 without references: every type is written out where it is used, and
every value has a type. What our own server checks when it validates is in limits.py, as far as a
schema can express it. `server.openapi` writes the same tables for clients.
"""

from __future__ import annotations

from typing import Any

from sully.install.limits import GATED, LIMITS
from sully.machinery.gates import Gates
from sully.machinery.schema import JSON_TYPES, Field, ListOf, MapOf, ObjectType, Scalar, Type

Obj = dict[str, Any]

AMOUNT = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""A quantity as text; what matches but is not a quantity is ignored."""
_ANY_AMOUNT: Obj = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_SCALARS: dict[str, Obj] = {
    **JSON_TYPES,
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Quantity": {**_ANY_AMOUNT, "pattern": AMOUNT},
    "IntOrString": _ANY_AMOUNT,
    "object": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


def schema_of(kind: ObjectType, gates: Gates) -> Obj:
    """Return the schema of a whole kind; the metadata is left to the server."""
    schema = _object(kind, gates)
    schema["properties"]["metadata"] = {"type": "object"}
    return schema


def _object(kind: ObjectType, gates: Gates) -> Obj:
    schema: Obj = {"description": kind.doc, "type": "object", **LIMITS.get(kind.name, {})}
    if required := sorted(field.name for field in kind.fields.values() if field.required):
        schema["required"] = required
    if kind.fields:
        schema["properties"] = {
            name: _property(kind, kind.fields[name], gates)
            for name in sorted(kind.fields)
            if (gate := GATED.get(f"{kind.name}.{name}")) is None or gates[gate]
        }
    if kind.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _property(owner: ObjectType, field: Field, gates: Gates) -> Obj:
    # Not of metadata: the server has its own schema for it, and accepts no other.
    base = {"type": "object"} if field.name == "metadata" else _type(field.type, gates)
    schema = {**base, **_merging(field), **LIMITS.get(f"{owner.name}.{field.name}", {})}
    if field.choices:
        schema.get("items", schema)["enum"] = list(field.choices)
    return schema | ({"description": field.doc} if field.doc else {})


def _type(kind: Type, gates: Gates) -> Obj:
    match kind:
        case Scalar():
            return dict(_SCALARS[kind.name])
        case ListOf():
            return {"type": "array", "items": _type(kind.item, gates)}
        case MapOf():
            return {"type": "object", "additionalProperties": _type(kind.value, gates)}
        case ObjectType():
            return _object(kind, gates)


def _merging(field: Field) -> Obj:
    extensions: Obj = {}
    if field.list_type:
        subject = "list" if isinstance(field.type, ListOf) else "map"
        extensions[f"x-kubernetes-{subject}-type"] = field.list_type
    if field.map_keys:
        extensions["x-kubernetes-list-map-keys"] = list(field.map_keys)
    return extensions
