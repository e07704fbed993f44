"""Field tables as the schemas that custom resource definitions take.

Those are OpenAPI version 3 without references: every type is written out where it is used, and
every value has a type. `server.openapi` writes the same tables for clients.
"""

from __future__ import annotations

from typing import Any

from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Scalar, Type

Obj = dict[str, Any]

_ANY_AMOUNT: Obj = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_SCALARS: dict[str, Obj] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "number": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Quantity": _ANY_AMOUNT,
    "IntOrString": _ANY_AMOUNT,
    "object": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
MOST = {
    "DevicePatch.taints": 16,
    "DevicePatchFilter.selectors": 32,
    "ResourceSlicePatchStatus.conditions": 8,
    "EvictionRecordSpec.causes": 256,
    "EvictionRecordSpec.claims": 256,
    "EvictionRecordSpec.devices": 1024,
    "TaintRecordStatus.changes": 50,
}
"""How long lists may be, which our own server checks when it validates."""


def schema_of(kind: ObjectType) -> Obj:
    """Return the schema of a whole kind; what every object carries is the server's business."""
    schema = _object(kind)
    schema["properties"]["metadata"] = {"type": "object"}
    return schema


def _object(kind: ObjectType) -> Obj:
    schema: Obj = {"description": kind.doc, "type": "object"}
    if required := sorted(one.name for one in kind.fields.values() if one.required):
        schema["required"] = required
    if kind.fields:
        schema["properties"] = {
            name: _property(kind, kind.fields[name]) for name in sorted(kind.fields)
        }
    if kind.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _property(owner: ObjectType, one: Field) -> Obj:
    # Not into a metadata: the server has its own schema for it, and takes no other.
    found = {"type": "object"} if one.name == "metadata" else _type(one.type)
    schema = {**found, **_merging(one), **_bounds(owner, one)}
    if one.choices:
        schema.get("items", schema)["enum"] = list(one.choices)
    return schema | ({"description": one.doc} if one.doc else {})


def _type(kind: Type) -> Obj:
    match kind:
        case Scalar():
            return dict(_SCALARS[kind.name])
        case ListOf():
            return {"type": "array", "items": _type(kind.item)}
        case MapOf():
            return {"type": "object", "additionalProperties": _type(kind.value)}
        case ObjectType():
            return _object(kind)


def _merging(one: Field) -> Obj:
    found: Obj = {}
    if one.list_type:
        subject = "list" if isinstance(one.type, ListOf) else "map"
        found[f"x-kubernetes-{subject}-type"] = one.list_type
    if one.map_keys:
        found["x-kubernetes-list-map-keys"] = list(one.map_keys)
    return found


def _bounds(owner: ObjectType, one: Field) -> Obj:
    most = MOST.get(f"{owner.name}.{one.name}")
    return {"maxItems": most} if most is not None else {}
