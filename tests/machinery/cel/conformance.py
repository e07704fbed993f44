"""The conformance cases of the CEL specification, read from a folder of text protobuf files.

`cases` yields every case; `excluded` reports why one does not apply to environments without
protobuf messages. The table of reasons is also in docs/reference/cel.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machinery.cel import textproto
from sully.machinery.cel import types, values
from sully.machinery.cel.declarations import Overload

REASONS = {
    "message": "needs protobuf messages: no environment here declares any",
    "wrapper": "needs protobuf's wrapper, Any or JSON types",
    "enum": "needs protobuf enums",
}
_MESSAGE = re.compile(
    r"TestAllTypes|NestedTestAllTypes|TestRequired|Proto2|proto[23]\.|google\.rpc|google\.api"
)
_WRAPPER = re.compile(
    r"google\.protobuf\.(?!Timestamp|Duration)|(?:Bool|Bytes|Double|Float|U?Int(?:32|64)|String)Value\{"
    r"|\bAny\{|\bValue\{|ListValue|Struct\{"
)
_ENUM = re.compile(r"GlobalEnum|NestedEnum|NullValue")

Case = tuple[str, textproto.Message]


def cases(folder: Path) -> Iterator[Case]:
    """Yield every case under `file/section/name`."""
    seen: Counter[str] = Counter()
    for path in sorted(folder.glob("*.textproto")):
        file = textproto.parse(path.read_text())
        for section in file.get("section", []):
            for case in section.get("test", []):
                parts = (path.stem, text(section["name"][0]), text(case["name"][0]))
                name = "/".join(parts)
                seen[name] += 1
                # A few names stand twice in their section.
                yield name if seen[name] == 1 else f"{name}-{seen[name]}", case


def text(value: bytes) -> str:
    """Return a string field."""
    return value.decode()


def excluded(case: textproto.Message) -> str | None:
    """Return the reason why a case does not apply, or None."""
    expression = text(case["expr"][0])
    whole = repr({key: value for key, value in case.items() if key not in ("name", "description")})
    if _ENUM.search(expression):
        return "enum"
    if _WRAPPER.search(expression) or "'wrapper'" in whole:
        return "wrapper"
    if _MESSAGE.search(expression) or _MESSAGE.search(
        whole.replace("b'cel.expr.conformance.proto", "")
    ):
        return "message"
    if re.search(r"google\.protobuf\.(?!Timestamp|Duration)", whole):
        return "wrapper"
    if "message_type" in whole and not re.search(r"google.protobuf.(Timestamp|Duration)", whole):
        return "message"
    if re.search(r"type.googleapis.com/(?!google.protobuf.(Timestamp|Duration))", whole):
        return "wrapper"
    return None


def to_value(message: textproto.Message) -> Any:  # noqa: PLR0911 - one return per kind
    """Return the value that a `Value` message stands for."""
    ((kind, items),) = message.items()
    item = items[0]
    match kind:
        case "null_value":
            return None
        case "bool_value":
            return item == "true"
        case "int64_value":
            return int(item, 0)
        case "uint64_value":
            return values.UInt(int(item, 0))
        case "double_value":
            return float(item)
        case "string_value":
            return text(item)
        case "bytes_value":
            return item
        case "type_value":
            return types.parse_type(text(item))
        case "list_value":
            return [to_value(one) for one in item.get("values", [])]
        case "map_value":
            return _map(item)
        case "object_value":
            return _object(item)
    raise ValueError(kind)


def _map(message: textproto.Message) -> dict[Any, Any]:
    result = {}
    for entry in message.get("entries", []):
        result[values.as_key(to_value(entry["key"][0]))] = to_value(entry["value"][0])
    return result


def _object(message: textproto.Message) -> Any:
    ((name, items),) = message.items()
    seconds = int(items[0].get("seconds", ["0"])[0])
    nanos = seconds * values.NANOS + int(items[0].get("nanos", ["0"])[0])
    if name.endswith("Timestamp"):
        return values.Timestamp(nanos)
    return values.Duration(nanos)


_PRIMITIVES = {
    "BOOL": types.BOOL,
    "INT64": types.INT,
    "UINT64": types.UINT,
    "DOUBLE": types.DOUBLE,
    "STRING": types.STRING,
    "BYTES": types.BYTES,
}
_KNOWN = {"TIMESTAMP": types.TIMESTAMP, "DURATION": types.DURATION, "ANY": types.ANY}


def to_type(message: textproto.Message) -> types.Type:  # noqa: PLR0911 - one return per kind
    """Return the type that a `Type` message stands for."""
    ((kind, items),) = message.items()
    item = items[0]
    match kind:
        case "primitive":
            return _PRIMITIVES[item]
        case "well_known":
            return _KNOWN[item]
        case "list_type":
            return types.list_of(to_type(item["elem_type"][0]))
        case "map_type":
            return types.map_of(to_type(item["key_type"][0]), to_type(item["value_type"][0]))
        case "type":
            return types.type_of_type(to_type(item)) if item else types.TYPE
        case "null":
            return types.NULL
        case "dyn":
            return types.DYN
        case "type_param":
            return types.Type(types.PARAM, text(item))
        case "message_type":
            return types.parse_type(text(item))
        case "abstract_type":
            params = [to_type(one) for one in item.get("parameter_types", [])]
            return types.Type("opaque", text(item["name"][0]), tuple(params))
    raise ValueError(kind)


def to_overloads(message: textproto.Message) -> tuple[Overload, ...]:
    """Return the overloads of a declared function; nothing ever calls them."""
    return tuple(
        Overload(
            id=text(one["overload_id"][0]),
            args=tuple(to_type(param) for param in one.get("params", [])),
            result=to_type(one["result_type"][0]),
            member=one.get("is_instance_function", ["false"])[0] == "true",
            run=lambda *args: args,
            generic=True,
        )
        for one in message["overloads"]
    )
