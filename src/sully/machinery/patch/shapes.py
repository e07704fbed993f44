"""How the fields of a kind merge, compiled from its field table for fast walks.

A Shape states for one path in an object whether it is owned and replaced as a whole (`leaf`) or
walked into, and how: fields of a struct, keys of a map, entries of a set, items of a list with key
fields. It also names path elements. The walks are in ownership/typed.py, merging.py and
checking.py.
"""

from typing import Any

from sully.machinery.memo import memoized
from sully.machinery.schema import ANY, Field, ListOf, MapOf, ObjectType, Scalar, Type
from sully.machinery.serialization.gotext import compact_json, quote

SCALAR, STRUCT, MAP, LIST, SET, ITEMS, DEDUCED = range(7)


class ElementError(ValueError):
    """A list item that cannot be named by its keys or value."""


class Shape:
    """How one place merges. Filled once while compiling, then only read."""

    __slots__ = ("fields", "item", "keys", "kind", "leaf", "mixed", "raw", "rest", "scalar")

    def __init__(self, kind: int, *, leaf: bool) -> None:
        self.kind = kind
        self.leaf = leaf
        # Whether the place can hold JSON of any form, where true and 1 differ.
        self.raw = False
        # Whether something below can: elsewhere, what Python calls equal is equal.
        self.mixed = False
        self.scalar = ""
        # Field name → (path element, shape), for structs.
        self.fields: dict[str, tuple[str, Shape]] = {}
        # Of fields that a struct does not declare; None: there are none.
        self.rest: Shape | None = None
        # Of the values of a map or the items of a list.
        self.item: Shape | None = None
        # (name, start of its text in an element, default) of key fields, by name.
        self.keys: tuple[tuple[str, str, Any], ...] = ()

    @property
    def inner(self) -> "Shape":
        """Return the shape of the items; only maps and lists have one."""
        assert self.item is not None
        return self.item

    def below(self, name: str) -> "Shape | None":
        """Return the shape of a field or map value."""
        if self.kind == STRUCT:
            known = self.fields.get(name)
            return known[1] if known else self.rest
        return self.item if self.kind == MAP else None


_LEAF = Shape(SCALAR, leaf=True)
_LEAF.raw = _LEAF.mixed = True
_LEAF.scalar = "object"
_DEDUCED = Shape(DEDUCED, leaf=False)
_DEDUCED_MAP = Shape(MAP, leaf=False)
_DEDUCED.mixed = _DEDUCED_MAP.mixed = True
_DEDUCED_MAP.item = _DEDUCED


def deduced(shape: Shape, *values: Any) -> Shape:
    """Return the shape that values give to a place without a declared type."""
    if shape.kind != DEDUCED:
        return shape
    return _DEDUCED_MAP if all(isinstance(value, dict) for value in values) else _LEAF


def shape_of(schema: ObjectType) -> Shape:
    """Return the compiled shape of a type."""
    known: Shape | None = schema.compiled
    if known is not None:
        return known
    shape = schema.compiled = Shape(STRUCT, leaf=schema.atomic)
    # Entered before its fields are compiled: types may contain themselves.
    for name, field in schema.fields.items():
        shape.fields[name] = (f"f:{name}", _compile(field.type, field))
    shape.rest = _DEDUCED if schema.is_open else None
    shape.mixed = _holds_raw(schema, set())
    shape.raw = schema.atomic and shape.mixed
    return shape


def _compile(kind: Type, field: Field | None) -> Shape:
    if kind == ANY:
        return _DEDUCED
    if isinstance(kind, Scalar):
        shape = Shape(SCALAR, leaf=True)
        shape.scalar = kind.name
        shape.raw = shape.mixed = kind.name == "object"
        return shape
    atomic = field is not None and field.list_type == "atomic"
    if isinstance(kind, ObjectType):
        return _atomic_struct(kind) if atomic else shape_of(kind)
    if isinstance(kind, MapOf):
        shape = Shape(MAP, leaf=atomic)
        shape.item = _compile(kind.value, None)
    else:
        shape = _compile_list(kind, field)
    shape.mixed = _holds_raw(kind, set())
    shape.raw = shape.leaf and shape.mixed
    return shape


def _atomic_struct(kind: ObjectType) -> Shape:
    """Compile a struct that is atomic because of its field."""
    open_shape, shape = shape_of(kind), Shape(STRUCT, leaf=True)
    shape.fields = open_shape.fields
    shape.raw = shape.mixed = _holds_raw(kind, set())
    return shape


def _compile_list(kind: ListOf, field: Field | None) -> Shape:
    way = field.list_type if field is not None else ""
    if way == "map" and field is not None and isinstance(kind.item, ObjectType):
        shape = Shape(ITEMS, leaf=False)
        shape.keys = tuple(_key(kind.item, name) for name in sorted(field.map_keys))
    else:
        shape = Shape(SET, leaf=False) if way == "set" else Shape(LIST, leaf=True)
    shape.item = _compile(kind.item, None)
    return shape


def _key(item: ObjectType, name: str) -> tuple[str, str, Any]:
    field = item.fields[name]
    return name, f"{quote(name)}:", _default(field)


def _default(field: Field) -> Any:
    """Return the default of a key field as a JSON value."""
    kind = field.type.name if isinstance(field.type, Scalar) else ""
    if field.default is None:
        # A key that is always written is never absent: its zero names the item.
        return {"string": "", "int32": 0, "int64": 0}.get(kind) if field.emit else None
    if kind in ("int32", "int64"):
        return int(field.default)
    return field.default == "true" if kind == "bool" else field.default


def _holds_raw(kind: Type, seen: set[ObjectType]) -> bool:
    if isinstance(kind, Scalar):
        return kind.name in ("object", "any")
    if isinstance(kind, ListOf):
        return _holds_raw(kind.item, seen)
    if isinstance(kind, MapOf):
        return _holds_raw(kind.value, seen)
    if kind in seen:
        return False
    seen.add(kind)
    return kind.is_open or any(_holds_raw(field.type, seen) for field in kind.fields.values())


def element(shape: Shape, item: Any) -> str:
    """Name an item of a set or of a list with keys."""
    if shape.kind == SET:
        return _set_element(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise ElementError(f"associative list with keys may not have {what}")
    parts = []
    for name, start, default in shape.keys:
        value = item.get(name, default)
        if value is not None or name in item:
            parts.append(start + _text(value))
    if not parts:
        names = " ".join(quote(key[0]) for key in shape.keys)
        raise ElementError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:{" + ",".join(parts) + "}"


def _set_element(item: Any) -> str:
    if isinstance(item, dict):
        raise ElementError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ElementError("not supported: associative list with lists as elements")
    if item is None:
        raise ElementError("associative list without keys has an element that's an explicit null")
    return "v:" + _text(item)


def _text(value: Any) -> str:
    return _string_text(value) if type(value) is str and len(value) < 256 else compact_json(value)


@memoized(4096)
def _string_text(value: str) -> str:
    return compact_json(value)
