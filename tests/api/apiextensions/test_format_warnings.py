"""Which formats in the schemas of a definition are reported."""

from typing import Any

import pytest

from definitions import INTEGER, STRING, definition, fields
from sully.api.apiextensions.format_warnings import format_warnings

NUMBER = {"type": "number"}
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "none": (STRING, []),
    "known": (STRING | {"format": "date-time"}, []),
    "known, spelled otherwise": (STRING | {"format": "ipv-4"}, []),
    "unknown": (STRING | {"format": "color"}, ["color"]),
    "of numbers": (STRING | {"format": "int32"}, ["int32"]),
    "an integer": (INTEGER | {"format": "int64"}, []),
    "an integer with that of numbers": (INTEGER | {"format": "double"}, ["double"]),
    "a number": (NUMBER | {"format": "float"}, []),
    "a number with that of integers": (NUMBER | {"format": "int32"}, ["int32"]),
    "of an object": ({"type": "object", "format": "uuid"}, ["uuid"]),
    "in items": ({"type": "array", "items": STRING | {"format": "x"}}, ["x"]),
    "in values": ({"type": "object", "additionalProperties": STRING | {"format": "x"}}, ["x"]),
    "in a junctor": (STRING | {"anyOf": [{"format": "x"}, {"format": "date"}]}, ["x"]),
    "several, one twice": (
        fields(a=STRING | {"format": "x"}, b=STRING | {"format": "y"}, c=STRING | {"format": "x"}),
        ["x", "y"],
    ),
}


@pytest.mark.parametrize(("schema", "want"), CASES.values(), ids=CASES.keys())
def test_format_warnings(schema: dict[str, Any], want: list[str]) -> None:
    made = definition(schema)

    assert list(format_warnings(made, None)) == [f'unrecognized format "{name}"' for name in want]
    assert list(format_warnings(made, made)) == []
