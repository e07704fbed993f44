"""Lists that are always written are null when they are empty.

Kubernetes stores its own kinds as protobuf, which has no empty lists, and so cannot give one back.
Who owns such a list, and what is wrong with it, is decided before.
"""

from typing import Any

from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Type

_AS_SENT = "io.k8s.apiextensions-apiserver"
"""The package of definitions, which are stored as JSON."""

_FIELDS: dict[int, tuple[ObjectType, tuple[Field, ...]]] = {}


def write_nulls(value: Any, kind: Type) -> None:
    """Replace empty lists in an object, in place."""
    if isinstance(kind, ObjectType):
        for field in _fields_to_look_at(kind):
            item = value.get(field.name)
            if item == [] and _is_null_list(field):
                value[field.name] = None
            elif item:
                write_nulls(item, field.type)
    elif isinstance(kind, ListOf | MapOf):
        inner = kind.item if isinstance(kind, ListOf) else kind.value
        for item in value if isinstance(kind, ListOf) else value.values():
            if item:
                write_nulls(item, inner)


def _is_null_list(field: Field) -> bool:
    return field.null and isinstance(field.type, ListOf)


def _fields_to_look_at(kind: ObjectType) -> tuple[Field, ...]:
    known = _FIELDS.get(id(kind))
    if known is None:
        # Entered before it is filled: types may contain themselves.
        _FIELDS[id(kind)] = (kind, ())
        fields = () if kind.package.startswith(_AS_SENT) else kind.fields.values()
        known = (kind, tuple(field for field in fields if _matters(field)))
        _FIELDS[id(kind)] = known
    return known[1]


def _matters(field: Field) -> bool:
    inner: Type = field.type
    while isinstance(inner, ListOf | MapOf):
        inner = inner.item if isinstance(inner, ListOf) else inner.value
    return _is_null_list(field) or (
        isinstance(inner, ObjectType) and bool(_fields_to_look_at(inner))
    )
