"""Decodes objects that conform to their table, fast; decode.py decodes all others.

Nearly every body is well formed, so nothing is prepared here for the case that one is not: no trail
of names, no place for an error text. Anything unexpected ends the reading, and decode.py walks the
same body again to report what is wrong with it. Both walks give the same object; a test holds that.
"""

from collections.abc import Callable
from typing import Any

from sully.machinery.formats.quantity import QuantityError, canonical
from sully.machinery.formats.timestamps import TimeError, canonical_micro_time, canonical_time
from sully.machinery.memo import LONGEST_VALUE, Memo
from sully.machinery.schema import Field, ListOf, ObjectType, Scalar, Type
from sully.machinery.serialization.codec import copy, from_json, to_json, to_json_if_possible

Obj = dict[str, Any]
Reader = Callable[[Any], Any]

ZERO: dict[str, Any] = {
    "string": "",
    "int32": 0,
    "int64": 0,
    "number": 0,
    "bool": False,
    "bytes": "",
    "Time": None,
    "MicroTime": None,
    "Quantity": "0",
    "IntOrString": 0,
    "object": None,
}
"""The value of an absent field that is always written."""


_SPECS: Memo[tuple[ObjectType, bytes], bytes] = Memo(256)
"""The normal forms of specs."""


class FallbackError(Exception):
    """A value that needs a closer look."""


class ObjectReader:
    """Reads one type of object. Filled once while compiling, then only used."""

    __slots__ = ("_fields", "_nested", "_zeros")

    def __init__(self) -> None:
        # Field name → (reader, whether an empty value is kept); strings, the most, need no reader.
        self._fields: dict[str, tuple[Reader | None, bool]] = {}
        # What is always written: plain zeros, and objects with fields of their own.
        self._zeros: tuple[tuple[str, Any], ...] = ()
        self._nested: tuple[tuple[str, ObjectReader], ...] = ()

    def fill(self, kind: ObjectType) -> None:
        """Compile the fields of a type; they may contain the type itself."""
        zeros: list[tuple[str, Any]] = []
        nested: list[tuple[str, ObjectReader]] = []
        for name, field in kind.fields.items():
            read = _reader(field.type)
            if name == "spec" and "metadata" in kind.fields and read is not None:
                read = _spec_reader(kind, read)
            self._fields[name] = (read, _keeps_empty(field))
            if field.emit and not field.null and isinstance(field.type, ObjectType):
                nested.append((name, object_reader(field.type)))
            elif field.emit or field.null:
                zeros.append((name, _zero(field)))
        self._zeros, self._nested = tuple(zeros), tuple(nested)

    def read(self, value: Any) -> Obj:
        """Return an object in its normal form, or raise FallbackError."""
        if type(value) is not dict:
            raise FallbackError
        result: Obj = {}
        fields = self._fields
        for name, item in value.items():
            known = fields.get(name)
            if known is None:
                raise FallbackError
            if item is None:
                continue
            reader, keeps_empty = known
            if reader is not None:
                item = reader(item)
            elif type(item) is not str:
                raise FallbackError
            if item or keeps_empty:
                result[name] = item
        for name, zero in self._zeros:
            if name not in result:
                result[name] = zero
        for name, below in self._nested:
            if name not in result:
                result[name] = below.read({})
        return result

    def read_changed(self, value: Any, known: Obj) -> Obj:
        """Read a changed object; fields that are as in `known`, a normal form, are copied in C."""
        if type(value) is not dict:
            raise FallbackError
        same = {name for name, item in value.items() if _is_as_known(item, known.get(name))}
        if not same:
            return self.read(value)
        rest = self.read({name: item for name, item in value.items() if name not in same})
        result: Obj = {}
        for name, item in value.items():
            if name in same:
                result[name] = copy(item)
            elif item is not None and name in rest:
                result[name] = rest[name]
        for name, item in rest.items():
            result.setdefault(name, item)
        return result


def _is_as_known(item: Any, known: Any) -> bool:
    """Report whether an object, not empty, is also encoded as the known one: True is not 1."""
    if type(item) is not dict or not item:
        return False
    return item is known or (item == known and to_json(item) == to_json(known))


_COMPILED: dict[ObjectType, ObjectReader] = {}


def object_reader(kind: ObjectType) -> ObjectReader:
    known = _COMPILED.get(kind)
    if known is None:
        # Entered before it is filled: types may contain themselves.
        known = _COMPILED[kind] = ObjectReader()
        known.fill(kind)
    return known


def _reader(kind: Type) -> Reader | None:
    if isinstance(kind, Scalar):
        return _SCALAR[kind.name]
    if isinstance(kind, ObjectType):
        return object_reader(kind).read
    if isinstance(kind, ListOf):
        return _list_reader(_reader(kind.item))
    return _map_reader(_reader(kind.value))


def _spec_reader(kind: ObjectType, read: Reader) -> Reader:
    """Return a reader that reads equal specs once: those of one template are, by thousands."""

    def spec(value: Any) -> Any:
        sent = to_json_if_possible(value)
        if sent is None:
            raise FallbackError
        known = _SPECS.get((kind, sent))
        if known is not None:
            return from_json(known)
        result = read(value)
        if len(sent) <= LONGEST_VALUE:
            _SPECS.keep((kind, sent), to_json(result))
        return result

    return spec


def _list_reader(read: Reader | None) -> Reader:
    """Read the items of a list; a null among them is rare, and decoded separately."""
    if read is None:
        return _strings

    def items(value: Any) -> list[Any]:
        if type(value) is not list:
            raise FallbackError
        return [read(item) for item in value]

    return items


def _map_reader(read: Reader | None) -> Reader:
    if read is None:
        return _string_map

    def entries(value: Any) -> Obj:
        if type(value) is not dict:
            raise FallbackError
        return {key: read(item) for key, item in value.items()}

    return entries


def _strings(value: Any) -> list[str]:
    if type(value) is not list or any(type(item) is not str for item in value):
        raise FallbackError
    return list(value)


def _string_map(value: Any) -> dict[str, str]:
    if type(value) is not dict or any(type(item) is not str for item in value.values()):
        raise FallbackError
    return dict(value)


def _keeps_empty(field: Field) -> bool:
    # An empty struct behind a pointer, a raw value and a written IntOrString are not zero to Go.
    kind = field.type
    value = isinstance(kind, Scalar) and kind.name in ("object", "IntOrString")
    return field.emit or field.null or field.ptr or isinstance(kind, ObjectType) or value


def _zero(field: Field) -> Any:
    if field.null or not isinstance(field.type, Scalar):
        return None
    return ZERO[field.type.name]


def _integer(low: int, high: int) -> Reader:
    def integer(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise FallbackError
        return value

    return integer


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise FallbackError
    return value


def _number(value: Any) -> float:
    if type(value) is not int and type(value) is not float:
        raise FallbackError
    return value


def _text(convert: Callable[[str], str], refusal: type[Exception]) -> Reader:
    def text(value: Any) -> str:
        if type(value) is not str:
            raise FallbackError
        try:
            return convert(value)
        except refusal:
            raise FallbackError from None

    return text


def _int_or_string(value: Any) -> int | str:
    if type(value) is str or (type(value) is int and -(2**31) <= value < 2**31):
        return value
    raise FallbackError


def _raw(value: Any) -> Any:
    # A caller in this process may go on changing what it sent.
    return copy(value)


def _bytes(_: Any) -> str:
    raise FallbackError


_SCALAR: dict[str, Reader | None] = {
    "string": None,
    "int32": _integer(-(2**31), 2**31 - 1),
    "int64": _integer(-(2**63), 2**63 - 1),
    "number": _number,
    "bool": _bool,
    "bytes": _bytes,
    "Time": _text(canonical_time, TimeError),
    "MicroTime": _text(canonical_micro_time, TimeError),
    "Quantity": _text(lambda text: canonical(text.strip()), QuantityError),
    "IntOrString": _int_or_string,
    "object": _raw,
}
