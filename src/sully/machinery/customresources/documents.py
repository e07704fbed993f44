"""Kinds with field tables as CustomResourceDefinitions, with the schemas that those take.

Schemas are OpenAPI version 3 without references: every type is written out where it is used, and
every value has a type. `server.openapi` writes the same tables for clients.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from sully.machinery.customresources.structural import default_of
from sully.machinery.schema import (
    JSON_TYPES,
    Field,
    Limits,
    ListOf,
    MapOf,
    ObjectType,
    Scalar,
    Type,
)
from sully.machinery.strategy import ResourceType

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
_LIMITS = {
    "min_length": "minLength",
    "max_length": "maxLength",
    "minimum": "minimum",
    "maximum": "maximum",
    "max_items": "maxItems",
}


def _everything(_: str) -> bool:
    return True


class SchemaWriter(msgspec.Struct, frozen=True):
    """Writes schemas; knows what tables cannot express."""

    limits: Mapping[str, Obj] = msgspec.field(default_factory=dict)
    """Additional limits, by type or by type and field."""
    has: Callable[[str], bool] = _everything
    """Whether a field, named by type and field, is part of the schema."""

    def schema_of(self, kind: ObjectType) -> Obj:
        """Return the schema of a whole kind; the metadata is left to the server."""
        schema = self._object(kind)
        schema["properties"]["metadata"] = {"type": "object"}
        return schema

    def _object(self, kind: ObjectType) -> Obj:
        schema: Obj = {"description": kind.doc, "type": "object", **self.limits.get(kind.name, {})}
        if required := sorted(field.name for field in kind.fields.values() if field.required):
            schema["required"] = required
        if kind.fields:
            schema["properties"] = {
                name: self._property(kind, kind.fields[name])
                for name in sorted(kind.fields)
                if self.has(f"{kind.name}.{name}")
            }
        if kind.atomic:
            schema["x-kubernetes-map-type"] = "atomic"
        return schema

    def _property(self, owner: ObjectType, field: Field) -> Obj:
        # Not of metadata: the server has its own schema for it, and accepts no other.
        base = {"type": "object"} if field.name == "metadata" else self._type(field.type)
        more = self.limits.get(f"{owner.name}.{field.name}", {})
        schema = {**base, **_merging(field), **_limits(field), **more}
        if field.choices:
            schema.get("items", schema)["enum"] = list(field.choices)
        return schema | ({"description": field.doc} if field.doc else {})

    def _type(self, kind: Type) -> Obj:
        match kind:
            case Scalar():
                return dict(_SCALARS[kind.name])
            case ListOf():
                return {"type": "array", "items": self._type(kind.item)}
            case MapOf():
                return {"type": "object", "additionalProperties": self._type(kind.value)}
            case ObjectType():
                return self._object(kind)


def _merging(field: Field) -> Obj:
    extensions: Obj = {}
    if field.list_type:
        subject = "list" if isinstance(field.type, ListOf) else "map"
        extensions[f"x-kubernetes-{subject}-type"] = field.list_type
    if field.map_keys:
        extensions["x-kubernetes-list-map-keys"] = list(field.map_keys)
    return extensions


def _limits(field: Field) -> Obj:
    """Return the constraints on values from the tables of custom resources."""
    limits = field.limits or Limits()
    values = {key: getattr(limits, name) for name, key in _LIMITS.items()}
    schema: Obj = {key: value for key, value in values.items() if value is not None}
    if limits.pattern:
        schema["pattern"] = limits.pattern
    if field.nullable:
        schema["nullable"] = True
    if field.default is not None:
        schema["default"] = default_of(field)
    return schema


def definition(resource: ResourceType, group: str, versions: Sequence[Obj]) -> Obj:
    """Return the definition of a kind in a group, which may be another than on our own server."""
    names: Obj = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
    }
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{group}"},
        "spec": {
            "group": group,
            "names": names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": list(versions),
        },
    }
