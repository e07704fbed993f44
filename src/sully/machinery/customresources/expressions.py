"""What a rule of a schema sees: the types, sizes and values of `self` and `oldSelf` in CEL.

Only fields with a schema are visible. Names that CEL reserves are escaped as in Kubernetes:
`namespace` is `__namespace__`, `a-b` is `a__dash__b`.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from sully.machinery.cel import types
from sully.machinery.cel.declarations import SizeEstimate
from sully.machinery.cel.environment import Environment
from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.library.catalogue import kubernetes_library
from sully.machinery.cel.temporal import parse_duration, parse_timestamp
from sully.machinery.customresources.pruning import EMBEDDED

Schema = Mapping[str, Any]

SELF: Final = "self"
OLD_SELF: Final = "oldSelf"
PER_CALL: Final = 1_000_000
"""What one evaluation of a rule may cost."""
MAX_REQUEST: Final = 3 * 1024 * 1024
"""The bytes of a request, which bound the size of what a schema does not limit."""
_RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import"),
        *("in", "let", "loop", "namespace", "null", "package", "return", "true", "var", "void"),
        "while",
    )
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME: Final = re.compile(r"[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*", re.ASCII)
_ESCAPED: Final = re.compile(r"__|[.\-/]")
# Kubernetes takes the size of `self` for that of every name, also of a type.
_TYPE_NAMES: Final = ("bool", "bytes", "double", "int", "list", "map", "string", "type", "uint")
_STRING: Schema = {"type": "string"}
_METADATA: Schema = {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}}
# By format: the type, the fewest and the most bytes in JSON.
_TEXTS: Final = {
    "byte": (types.BYTES, 2, MAX_REQUEST - 2),
    "duration": (types.DURATION, 3, 32),
    "date": (types.TIMESTAMP, 12, 12),
    "date-time": (types.TIMESTAMP, 21, 32),
}


class Declared(msgspec.Struct, frozen=True):
    """The type of a value, the fields of all objects in it, and its sizes."""

    type: types.Type
    size: SizeEstimate
    smallest: int  # bytes of the shortest value
    objects: Mapping[str, Mapping[str, types.Type]]


def escaped(name: str) -> str | None:
    """Return a field as rules write it; None if they cannot."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)


def environment(
    schema: Schema, *, is_root: bool, optional: bool, result: types.Type
) -> Environment:
    """Return the environment of the rules of a schema; raises KeyError if rules cannot see it."""
    declared = declare(schema, "selfType", is_root=is_root)
    if declared is None:
        raise KeyError("the schema is not visible to rules")
    old = types.optional_of(declared.type) if optional else declared.type
    return Environment(
        library=kubernetes_library(),
        variables={SELF: declared.type, OLD_SELF: old},
        objects=declared.objects,
        sizes=dict.fromkeys((SELF, OLD_SELF, *_TYPE_NAMES), declared.size),
        results=(result,),
        limit=PER_CALL,
    )


def declare(schema: Schema, name: str, *, is_root: bool) -> Declared | None:
    """Return what rules see of a schema; None if nothing."""
    if schema.get("x-kubernetes-int-or-string"):
        return Declared(types.DYN, SizeEstimate(_length(schema, MAX_REQUEST - 2)), 1, {})
    if is_root:
        schema = with_head(schema)
    match schema.get("type"):
        case "array":
            return _list(schema, name)
        case "object":
            values = schema.get("additionalProperties")
            return (
                _map(schema, values, name) if isinstance(values, Mapping) else _object(schema, name)
            )
        case "string":
            return _text(schema)
        case "boolean":
            return Declared(types.BOOL, SizeEstimate(0), 4, {})
        case "number":
            return Declared(types.DOUBLE, SizeEstimate(0), 1, {})
        case "integer":
            return Declared(types.INT, SizeEstimate(0), 1, {})
        case _:
            return None


def with_head(schema: Schema) -> Schema:
    """Return the schema of an object of the API, with the fields that all have."""
    head = {"apiVersion": _STRING, "kind": _STRING, "metadata": _METADATA}
    return {**schema, "properties": {**(schema.get("properties") or {}), **head}}


def _length(schema: Schema, most: int) -> int:
    limit: int | None = schema.get("maxLength")
    # A character takes four bytes at most.
    return most if limit is None else max(limit, 0) * 4


def _text(schema: Schema) -> Declared:
    if schema.get("format") in _TEXTS:
        type_, smallest, most = _TEXTS[schema["format"]]
        if type_ == types.BYTES and schema.get("maxLength") is not None:
            most = max(schema["maxLength"], 0)
        return Declared(type_, SizeEstimate(most), smallest, {})
    most = MAX_REQUEST - 2
    if schema.get("maxLength") is None and schema.get("enum"):
        most = max((len(one.encode()) for one in schema["enum"] if isinstance(one, str)), default=0)
    return Declared(types.STRING, SizeEstimate(_length(schema, most)), 2, {})


def _list(schema: Schema, name: str) -> Declared | None:
    items = schema.get("items") or {}
    item = declare(items, f"{name}.@idx", is_root=bool(items.get(EMBEDDED)))
    if item is None:
        return None
    limit = schema.get("maxItems")
    size = (MAX_REQUEST - 2) // (item.smallest + 1) if limit is None else max(limit, 0)
    return Declared(
        types.list_of(item.type), SizeEstimate(size, element=item.size), 2, item.objects
    )


def _map(schema: Schema, values: Schema, name: str) -> Declared | None:
    value = declare(values, f"{name}.@elem", is_root=bool(values.get(EMBEDDED)))
    if value is None:
        return None
    limit = schema.get("maxProperties")
    size = (MAX_REQUEST - 2) // (value.smallest + 6) if limit is None else max(limit, 0)
    estimate = SizeEstimate(size, key=SizeEstimate(0), element=value.size)
    return Declared(types.map_of(types.STRING, value.type), estimate, 2, value.objects)


def _object(schema: Schema, name: str) -> Declared:
    fields: dict[str, types.Type] = {}
    sizes: dict[str, SizeEstimate] = {}
    objects: dict[str, Mapping[str, types.Type]] = {}
    smallest = 2
    for field, inner in (schema.get("properties") or {}).items():
        declared = declare(inner, f"{name}.{field}", is_root=bool(inner.get(EMBEDDED)))
        if declared is None:
            continue
        objects.update(declared.objects)
        if (written := escaped(field)) is not None:
            fields[written], sizes[written] = declared.type, declared.size
        if field in (schema.get("required") or ()) and "default" not in inner:
            smallest += len(field) + declared.smallest + 4
    objects[name] = fields
    return Declared(types.object_type(name), SizeEstimate(0, fields=sizes), smallest, objects)


# -- values -----------------------------------------------------------------------------------


Convert = Callable[[Any], Any]


def converter(schema: Schema, *, is_root: bool = False) -> Convert | None:
    """Return what makes a value visible to rules; None if it already is."""
    if schema.get("x-kubernetes-int-or-string"):
        return None
    if is_root:
        schema = with_head(schema)
    match schema.get("type"):
        case "array":
            items = schema.get("items") or {}
            return _list_converter(converter(items, is_root=bool(items.get(EMBEDDED))))
        case "object":
            values = schema.get("additionalProperties")
            if isinstance(values, Mapping):
                return _map_converter(converter(values, is_root=bool(values.get(EMBEDDED))))
            return _object_converter(schema)
        case "string" if schema.get("format") in _TEXTS:
            return _TEXT_VALUES[schema["format"]]
        case "number":
            return lambda value: float(value) if type(value) is int else value
        case _:
            return None


def _list_converter(item: Convert | None) -> Convert | None:
    if item is None:
        return None
    return lambda value: [_converted(one, item) for one in value]


def _map_converter(item: Convert | None) -> Convert | None:
    if item is None:
        return None
    return lambda value: {name: _converted(one, item) for name, one in value.items()}


def _object_converter(schema: Schema) -> Convert | None:
    fields: dict[str, tuple[str, Convert | None]] = {}
    same = True
    for name, inner in (schema.get("properties") or {}).items():
        written = escaped(name)
        convert = converter(inner, is_root=bool(inner.get(EMBEDDED)))
        same = same and written == name and convert is None
        if written is not None:
            fields[name] = (written, convert)
    if same:
        return None

    def convert_object(value: Any) -> Any:
        result = {}
        for name, one in value.items():
            if (known := fields.get(name)) is not None:
                result[known[0]] = _converted(one, known[1])
        return result

    return convert_object


def _converted(value: Any, convert: Convert | None) -> Any:
    return value if convert is None or value is None else convert(value)


def _bytes(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EvaluationError(str(error)) from None


def _date(value: str) -> Any:
    return parse_timestamp(f"{value}T00:00:00Z")


_TEXT_VALUES: Final[dict[str, Convert]] = {
    "byte": _bytes,
    "duration": parse_duration,
    "date": _date,
    "date-time": parse_timestamp,
}


def largest_count(smallest: int) -> int:
    """Return how many values of a size fit into a request."""
    return MAX_REQUEST // (smallest + 1)
