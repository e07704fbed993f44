"""From a schema to a field table: what apply and field management need to know of a kind."""

from collections.abc import Mapping
from typing import Any

from sully.machinery.customresources.pruning import EMBEDDED, HEAD, PRESERVE
from sully.machinery.schema import ANY, Field, ListOf, MapOf, ObjectType, Scalar, Type

Schema = Mapping[str, Any]
_SCALARS = {"string": "string", "integer": "int64", "number": "number", "boolean": "bool"}


def kind_table(schema: Schema, package: str, kind: str, head: ObjectType) -> ObjectType:
    """Return the table of a kind; `head` has the fields that all kinds have."""
    table = _with_head(object_table(schema, package, kind), head)
    table.document = schema
    return table


def object_table(schema: Schema, package: str, name: str) -> ObjectType:
    """Return the table of an object with fields."""
    table = ObjectType(
        package,
        name,
        schema.get("description", ""),
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        is_open=bool(schema.get(PRESERVE)),
        structural=True,
    )
    required = schema.get("required") or ()
    for field_name, inner in sorted((schema.get("properties") or {}).items()):
        table.fields[field_name] = _field(table, field_name, inner, field_name in required)
    table.order = tuple(table.fields)
    return table


def _with_head(table: ObjectType, head: ObjectType) -> ObjectType:
    fields = {**table.fields, **{name: head.fields[name] for name in sorted(HEAD)}}
    table.fields = dict(sorted(fields.items()))
    table.order = tuple(table.fields)
    return table


def _field(owner: ObjectType, name: str, schema: Schema, required: bool) -> Field:
    listing = schema.get("x-kubernetes-list-type") or schema.get("x-kubernetes-map-type") or ""
    default = schema.get("default")
    return Field(
        name,
        _type(schema, owner, name),
        schema.get("description", ""),
        required=required,
        list_type="" if listing == "granular" else listing,
        map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        default=_text(default) if default is not None else None,
        nullable=bool(schema.get("nullable")),
    )


def _text(default: Any) -> str | None:
    if isinstance(default, bool):
        return "true" if default else "false"
    return str(default) if isinstance(default, str | int) else None


def _type(schema: Schema, owner: ObjectType, name: str) -> Type:
    if schema.get("x-kubernetes-int-or-string"):
        return Scalar("IntOrString")
    kind = schema.get("type")
    if kind == "array":
        return ListOf(_type(schema.get("items") or {}, owner, name))
    if kind in _SCALARS:
        return Scalar(_SCALARS[kind])
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return MapOf(_type(values, owner, name))
    if values is True or kind != "object":
        return ANY
    if schema.get(PRESERVE) and not schema.get("properties") and not schema.get(EMBEDDED):
        return ANY
    table = object_table(schema, owner.package, f"{owner.name}.{name}")
    if schema.get(EMBEDDED):
        for head in HEAD - table.fields.keys():
            table.fields[head] = Field(head, ANY if head == "metadata" else Scalar("string"))
    return table
