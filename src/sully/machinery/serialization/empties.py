"""Empty lists and maps: what decoding leaves out, and what becomes null.

To Go an empty list is another value than none. Error texts show it, but what is stored has none:
Kubernetes stores its own kinds as protobuf, which has no empty lists, and so cannot give one back.
Lists that are always written are null then. Who owns such a list, and what is wrong with it, is
decided before: a client that sent it owns it.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from sully.machinery.schema import Field, ListOf, MapOf, ObjectType, Type

_AS_SENT: Final = "io.k8s.apiextensions-apiserver"
"""The package of definitions, which are stored as JSON."""

_OWN_JSON: Final = ("LabelSelector",)
"""Types of the machinery, which leave out what is empty also in error texts."""


class _Shape(msgspec.Struct):
    """Where an object has such lists: most have none, and most parts of the others have none."""

    lists: tuple[str, ...] = ()
    parts: tuple[tuple[str, Type, "_Shape"], ...] = ()
    known: bool = False

    def is_empty(self) -> bool:
        """Report whether nothing has to be written; not while it is being found out."""
        return self.known and not self.lists and not self.parts


_SHAPES: dict[int, tuple[ObjectType, _Shape]] = {}
"""By identity; with the type, so that it is not used again."""


def write_nulls(obj: dict[str, Any], kind: ObjectType, old: dict[str, Any] | None = None) -> None:
    """Replace empty lists in an object, in place; what it shares with the stored one has none."""
    _write(obj, _shape_of(kind), old or {})


def _write(obj: dict[str, Any], shape: _Shape, old: dict[str, Any]) -> None:
    for name in shape.lists:
        if obj.get(name) == []:
            obj[name] = None
    for name, type_, inner in shape.parts:
        value = obj.get(name)
        if value and value is not old.get(name):
            for part in _objects(value, type_):
                _write(part, inner, {})


def _objects(value: Any, type_: Type) -> Iterable[dict[str, Any]]:
    """Return the objects in a value that is one, or has them in lists and maps."""
    if isinstance(type_, ListOf | MapOf):
        inner = type_.item if isinstance(type_, ListOf) else type_.value
        values = value if isinstance(type_, ListOf) else value.values()
        return [part for item in values if item for part in _objects(item, inner)]
    return (value,)


def _shape_of(kind: ObjectType) -> _Shape:
    known = _SHAPES.get(id(kind))
    if known is not None:
        return known[1]
    shape = _Shape()
    # Entered before it is complete: types may contain themselves.
    _SHAPES[id(kind)] = kind, shape
    if not kind.package.startswith(_AS_SENT):
        fields = kind.fields.values()
        shape.lists = tuple(field.name for field in fields if _is_null_list(field))
        shape.parts = tuple(
            (field.name, field.type, inner)
            for field in fields
            if (inner := _inner_shape(field.type)) is not None
        )
    shape.known = True
    return shape


def _is_null_list(field: Field) -> bool:
    return field.null and isinstance(field.type, ListOf)


def _inner_shape(type_: Type) -> _Shape | None:
    """Return the shape of the objects in a value; None if nothing has to be written there."""
    while isinstance(type_, ListOf | MapOf):
        type_ = type_.item if isinstance(type_, ListOf) else type_.value
    if not isinstance(type_, ObjectType):
        return None
    shape = _shape_of(type_)
    return None if shape.is_empty() else shape


def with_empties(value: Any, sent: Any, kind: Type | None) -> Any:
    """Return a decoded value with the empty lists and maps that were sent for it."""
    if isinstance(kind, ObjectType) and kind.name in _OWN_JSON:
        return value
    if isinstance(value, dict) and isinstance(sent, dict):
        types = {name: _type_of(name, kind) for name in {**value, **sent}}
        entries = {
            name: with_empties(item, sent.get(name), types[name]) for name, item in value.items()
        }
        left_out = {
            name: item
            for name, item in sent.items()
            if name not in value and item in ([], {}) and isinstance(types[name], ListOf | MapOf)
        }
        return entries | left_out
    if isinstance(kind, ListOf) and isinstance(sent, list) and len(value or ()) == len(sent):
        pairs = zip(value or (), sent, strict=True)
        return [with_empties(item, item_sent, kind.item) for item, item_sent in pairs]
    return value


def _type_of(name: str, kind: Type | None) -> Type | None:
    if isinstance(kind, ObjectType):
        field = kind.fields.get(name)
        return None if field is None else field.type
    return kind.value if isinstance(kind, MapOf) else None


def without_empties(value: Any) -> Any:
    """Return a value as Go writes it if all lists and maps in it are optional."""
    if isinstance(value, dict):
        return {name: without_empties(item) for name, item in value.items() if item not in ([], {})}
    return [without_empties(item) for item in value] if isinstance(value, list) else value
