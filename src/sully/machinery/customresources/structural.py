"""Custom resources as a Kubernetes API server treats them, along a field table.

Kinds that OCM serves from a CustomResourceDefinition are not decoded into Go types:
fields that the schema does not know are pruned, everything else stays as it was sent, zeros and
empty lists too, and a value of the wrong type is a problem of validation (422), not of decoding.
`read` stands in for serialization/decode.py, `fill` sets defaults, `problems` is the validation;
its texts are those of Kubernetes. The metadata is typed as everywhere.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from sully.machinery.customresources.validation import mistyped
from sully.machinery.fields import FieldError, Path, errors_at
from sully.machinery.formats.timestamps import TimeError, parse_time
from sully.machinery.schema import Field, Limits, ListOf, MapOf, ObjectType, Scalar, Type
from sully.machinery.serialization.codec import Trail, written
from sully.machinery.serialization.decode import MAX_UNKNOWN, decode
from sully.machinery.serialization.gotext import compact_json, quote

Obj = dict[str, Any]

_HEAD: Final = ("apiVersion", "kind", "metadata")
_INTEGERS: Final = {"int32": 2**31, "int64": 2**63}
_FORMATS: Final = {"Time": "date-time", "bytes": "byte", "int32": "int32", "int64": "int64"}
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII
)


# -- reading --------------------------------------------------------------------------------------


def read(value: Any, kind: ObjectType, unknown: list[str]) -> Obj:
    """Return the object without fields that are not in its schema; adds them to `unknown`."""
    head = {name: value[name] for name in _HEAD if name in value}
    decoded = decode(head, kind, unknown)
    rest = {name: field_value for name, field_value in value.items() if name not in _HEAD}
    return decoded | _pruned_object(rest, kind, (), unknown)


def _pruned_object(value: Obj, kind: ObjectType, at: Trail, unknown: list[str]) -> Obj:
    result: Obj = {}
    for name, field_value in value.items():
        field = kind.fields.get(name)
        if field is None:
            if len(unknown) < MAX_UNKNOWN:
                unknown.append(written((at, name)))
        elif field_value is not None or field.nullable:
            # Null where it is not allowed counts as absent.
            result[name] = _pruned(field_value, field.type, (at, name), unknown)
    return result


def _pruned(value: Any, kind: Type, at: Trail, unknown: list[str]) -> Any:
    match kind:
        case ObjectType() if isinstance(value, dict):
            return _pruned_object(value, kind, at, unknown)
        case ListOf() if isinstance(value, list):
            return [
                _pruned(item, kind.item, (at, index), unknown) for index, item in enumerate(value)
            ]
        case MapOf() if isinstance(value, dict):
            present = ((key, item) for key, item in value.items() if item is not None)
            return {key: _pruned(item, kind.value, (at, key), unknown) for key, item in present}
        case Scalar() if isinstance(value, float) and _whole(value, kind):
            return int(value)
    return value


def _whole(value: float, kind: Scalar) -> bool:
    bound = _INTEGERS.get(kind.name)
    return bound is not None and value.is_integer() and -bound <= value < bound


# -- defaults -------------------------------------------------------------------------------------


def fill(obj: Any, kind: ObjectType) -> None:
    """Set what is absent and has a default, in place and at every depth."""
    for field in kind.fields.values():
        if field.default is not None and field.name not in obj:
            obj[field.name] = default_of(field)
        elif field.name in obj and field.name not in _HEAD:
            _fill_below(obj[field.name], field.type)


def _fill_below(value: Any, kind: Type) -> None:
    if isinstance(kind, ObjectType) and isinstance(value, dict):
        fill(value, kind)
    elif isinstance(kind, ListOf) and isinstance(value, list):
        for item in value:
            _fill_below(item, kind.item)


def default_of(field: Field) -> Any:
    """Return the default of a field, with the defaults below it."""
    if isinstance(field.type, ObjectType):
        value: Obj = {}
        fill(value, field.type)
        return value
    integral = isinstance(field.type, Scalar) and field.type.name in _INTEGERS
    return int(field.default or "") if integral else field.default


# -- validation -----------------------------------------------------------------------------------


def problems(obj: Obj, kind: ObjectType) -> Iterator[FieldError]:
    """Yield everything in which an object breaks its schema; metadata is checked elsewhere."""
    for field in kind.fields.values():
        if field.required and field.name not in obj and field.name not in _HEAD:
            yield Path(field.name).required()
    for field in kind.fields.values():
        if field.name in obj and field.name not in _HEAD:
            yield from _field(obj[field.name], field, Path(field.name))


def status_problems(obj: Obj, kind: ObjectType) -> Iterator[FieldError]:
    """Yield what is wrong with the status, which Kubernetes checks like an object of its own."""
    if "status" in obj:
        errors = _field(obj["status"], kind.fields["status"], Path())
        yield from errors_at(errors, Path("status"))


def _field(value: Any, field: Field, at: Path) -> Iterator[FieldError]:
    if value is None and field.nullable:
        return
    yield from _value(value, field.type, at)
    if isinstance(field.type, ListOf) and isinstance(value, list):
        yield from _listed(value, field, at)
        return
    if field.choices and value not in field.choices:
        yield at.not_supported(value, field.choices)
    if field.limits is not None:
        yield from _within(value, field.limits, at)


def _listed(value: list[Any], field: Field, at: Path) -> Iterator[FieldError]:
    bound = field.limits.max_items if field.limits is not None else None
    if bound is not None and len(value) > bound:
        yield at.too_many(len(value), bound)
    if not field.map_keys:
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        if isinstance(item, dict):
            name = {key: item[key] for key in field.map_keys if key in item}
            text = compact_json(name)
            if text in seen:
                yield at.index(index).duplicate(name)
            seen.add(text)


def _value(value: Any, kind: Type, at: Path) -> Iterator[FieldError]:
    match kind:
        case Scalar():
            yield from _scalar(value, kind.name, at)
        case ObjectType() if isinstance(value, dict):
            yield from _members(value, kind, at)
        case ListOf() if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _value(item, kind.item, at.index(index))
        case MapOf() if isinstance(value, dict):
            for key, item in value.items():
                yield from _value(item, kind.value, at.child(key))
        case _:
            yield mistyped(at, "array" if isinstance(kind, ListOf) else "object", _type(value))


def _members(value: Obj, kind: ObjectType, at: Path) -> Iterator[FieldError]:
    for field in kind.fields.values():
        if field.required and field.name not in value:
            yield at.child(field.name).required()
    for field in kind.fields.values():
        if field.name in value:
            yield from _field(value[field.name], field, at.child(field.name))


def _scalar(value: Any, name: str, at: Path) -> Iterator[FieldError]:
    if name in _INTEGERS:
        yield from _integer(value, name, at)
    elif name == "bool":
        if type(value) is not bool:
            yield mistyped(at, "boolean", _type(value))
    elif name == "object":
        if not isinstance(value, dict):
            yield mistyped(at, "object", _type(value))
    elif name in ("IntOrString", "Quantity"):
        if type(value) not in (int, str):
            yield mistyped(at, "integer,string", _type(value))
        elif name == "Quantity":
            yield from _within(value, _QUANTITY, at)
    elif type(value) is not str:
        expected = _FORMATS.get(name)
        plain = expected is None or value is None or isinstance(value, list)
        yield mistyped(at, expected or "string", _type(value) if plain else _go_format(value))
    elif not _is_formatted(value, name):
        yield at.type_invalid(
            value, f"{at.text} in body must be of type {_FORMATS[name]}: {quote(value)}"
        )


def _integer(value: Any, name: str, at: Path) -> Iterator[FieldError]:
    bound = _INTEGERS[name]
    if type(value) in (bool, dict, float):
        yield mistyped(at, name, _go_format(value))
    elif type(value) is not int:
        yield mistyped(at, "integer", _type(value))
    if type(value) is float or (type(value) is int and not -bound <= value < bound):
        # Kubernetes reports it a second time, without the path.
        text = f"Checked value must be of type integer with format {name} in {at.text}"
        yield Path().invalid("", text)


def _type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array"}
    return names.get(type(value), "object")


def _go_format(value: Any) -> str:
    return {int: "int64", float: "float64"}.get(type(value), "")


def _is_formatted(value: str, name: str) -> bool:
    if name == "bytes":
        return value != "" and _BASE64.fullmatch(value) is not None
    if name != "Time":
        return True
    try:
        parse_time(value)
    except TimeError:
        return False
    return "," not in value


def _within(value: Any, limits: Limits, at: Path) -> Iterator[FieldError]:
    if isinstance(value, str):
        yield from _text_within(value, limits, at)
    elif isinstance(value, int) and not isinstance(value, bool):
        if limits.minimum is not None and value < limits.minimum:
            text = f"{at.text} in body should be greater than or equal to {limits.minimum}"
            yield at.invalid(value, text)
        if limits.maximum is not None and value > limits.maximum:
            text = f"{at.text} in body should be less than or equal to {limits.maximum}"
            yield at.invalid(value, text)


def _text_within(value: str, limits: Limits, at: Path) -> Iterator[FieldError]:
    if limits.max_length is not None and len(value) > limits.max_length:
        yield at.too_long(limits.max_length)
    if limits.min_length is not None and len(value) < limits.min_length:
        text = f"{at.text} in body should be at least {limits.min_length} chars long"
        yield at.invalid(value, text)
    if limits.pattern and _pattern(limits.pattern).search(value) is None:
        yield at.invalid(value, f"{at.text} in body should match '{limits.pattern}'")


@cache
def _pattern(text: str) -> re.Pattern[str]:
    # Go's $ is the end of the text; Python's would let a line break pass before it.
    return re.compile(re.sub(r"\$$", r"\\Z", text), re.ASCII)


_QUANTITY: Final = Limits(
    pattern=r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
