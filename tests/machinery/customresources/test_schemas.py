"""What a schema does to values: formats, paths, and combinations of schemas."""

from __future__ import annotations

from typing import Any

import pytest

from sully.machinery.customresources import jsonpath
from sully.machinery.customresources.expressions import escaped
from sully.machinery.customresources.formats import is_formatted
from sully.machinery.customresources.validation import problems
from sully.machinery.fields import Path

Obj = dict[str, Any]
TEXT: Obj = {"type": "string"}
FRACTION = [
    'a: Invalid value: "number": a in body must be of type integer: "number"',
    '<nil>: Invalid value: "": Checked value must be of type integer (default format) in a',
]
WRONG: dict[str, tuple[Any, Obj, list[str]]] = {
    "a fraction": (1.5, {"type": "integer"}, FRACTION),
    "a fraction below the minimum": (
        0.5,
        {"type": "integer", "minimum": 1},
        [*FRACTION, "a: Invalid value: 0.5: a in body should be greater than or equal to 1"],
    ),
    "a whole number beyond 64 bits": (1e30, {"type": "integer"}, FRACTION),
    "a whole number beyond 64 bits, with a format": (
        1e30,
        {"type": "integer", "format": "int64"},
        [
            'a: Invalid value: "float64": a in body must be of type int64: "float64"',
            '<nil>: Invalid value: "": Checked value must be of type integer with format int64'
            " in a",
        ],
    ),
    "a whole number written as a fraction": (3.0, {"type": "integer"}, []),
    "a fraction of a choice": (1.5, {"type": "integer", "enum": [1, 2]}, FRACTION),
    "a fraction of no choice": (
        0.5,
        {"type": "integer", "enum": [1, 2]},
        [*FRACTION, 'a: Unsupported value: 0.5: supported values: "1", "2"'],
    ),
    "any of": (
        "x",
        {**TEXT, "anyOf": [{"minLength": 2}, {"pattern": "y"}]},
        [
            '<nil>: Invalid value: "": "a" must validate at least one schema (anyOf)',
            'a: Invalid value: "x": a in body should be at least 2 chars long',
        ],
    ),
    "one of, none": (
        "x",
        {**TEXT, "oneOf": [{"minLength": 2}]},
        [
            '<nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). Found'
            " none valid",
            'a: Invalid value: "x": a in body should be at least 2 chars long',
        ],
    ),
    "one of, two": (
        "xyz",
        {**TEXT, "oneOf": [{"minLength": 2}, {"minLength": 3}]},
        [
            '<nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). Found 2'
            " valid alternatives"
        ],
    ),
    "all of": (
        "x",
        {**TEXT, "allOf": [{"minLength": 2}, {"maxLength": 3}]},
        [
            'a: Invalid value: "x": a in body should be at least 2 chars long',
            '<nil>: Invalid value: "": "a" must validate all the schemas (allOf)',
        ],
    ),
    "not": (
        "x",
        {**TEXT, "not": {"enum": ["x"]}},
        ['<nil>: Invalid value: "": "a" must not validate the schema (not)'],
    ),
    "a multiple": (
        5,
        {"type": "integer", "multipleOf": 2},
        ["a: Invalid value: 5: a in body should be a multiple of 2"],
    ),
    "an exclusive bound": (
        2,
        {"type": "number", "maximum": 2, "exclusiveMaximum": True},
        ["a: Invalid value: 2: a in body should be less than 2"],
    ),
    "too few fields": (
        {},
        {"type": "object", "minProperties": 1},
        ["a: Invalid value: 0: a in body should have at least 1 properties"],
    ),
    "too many values": (
        {"b": 1, "c": 2},
        {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "integer"}},
        ["a: Too many: 2: must have at most 1 item"],
    ),
    "true is not 1": (
        True,
        {"enum": [1]},
        ['a: Unsupported value: true: supported values: "1"'],
    ),
    "a line break before the end": (
        "b\n",
        {**TEXT, "pattern": "^b$"},
        ["a: Invalid value: \"b\\n\": a in body should match '^b$'"],
    ),
}


@pytest.mark.parametrize(("value", "schema", "texts"), WRONG.values(), ids=WRONG.keys())
def test_problems(value: Any, schema: Obj, texts: list[str]) -> None:
    assert [str(error) for error in problems(value, schema, Path("a"))] == texts


FORMATS = {
    "byte": ("aGk=", "a"),
    "cidr": ("10.0.0.0/8", "10.0.0.0"),
    "creditcard": ("4111 1111 1111 1111", "4111"),
    "date": ("2024-02-29", "2023-02-29"),
    "date-time": ("2024-01-01T00:00:00Z", "2024-01-01"),
    "duration": ("1h30m", "1 year"),
    "email": ("a@example.com", "a"),
    "hostname": ("a.example.com", "-a b"),
    "ipv4": ("10.0.0.1", "::1"),
    "ipv6": ("::1", "10.0.0.1"),
    "isbn": ("978-3-16-148410-0", "978-3-16-148410-1"),
    "k8s-short-name": ("a-b", "a.b"),
    "mac": ("00:11:22:33:44:55", "00:11"),
    "uri": ("https://example.com", "example"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123"),
    "uuid4": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
}


@pytest.mark.parametrize(("name", "values"), FORMATS.items(), ids=FORMATS.keys())
def test_formats(name: str, values: tuple[str, str]) -> None:
    assert [is_formatted(value, name) for value in values] == [True, False]


def test_unknown_formats_are_ignored() -> None:
    assert is_formatted("anything", "color-of-the-day")


OBJECT = {
    "spec": {"a.b": 1, "list": [{"name": "x", "on": True}, {"name": "y", "size": 3}]},
    "kind": "Thing",
}
PATHS: dict[str, list[Any]] = {
    ".kind": ["Thing"],
    ".spec.list[1].name": ["y"],
    ".spec.list[-1].name": ["y"],
    ".spec.list[*].name": ["x", "y"],
    '.spec.list[?(@.name=="y")].size': [3],
    ".spec.list[?(@.size>2)].name": ["y"],
    ".spec.list[?(@.on==true)].name": ["x"],
    ".spec.a\\.b": [1],
    ".spec['a.b']": [1],
    ".spec.none.deeper": [],
    ".spec.list[7]": [],
}


@pytest.mark.parametrize(("path", "result"), PATHS.items(), ids=PATHS.keys())
def test_paths(path: str, result: list[Any]) -> None:
    assert jsonpath.find(path, OBJECT) == result


@pytest.mark.parametrize("path", ["..name", ".a[1:2]", ".a[?(@.b", "." * 5000])
def test_paths_that_are_refused(path: str) -> None:
    with pytest.raises(jsonpath.JSONPathError):
        jsonpath.parse(path)


ESCAPES = {
    "plain": "plain",
    "namespace": "__namespace__",
    "a-b": "a__dash__b",
    "a.b/c": "a__dot__b__slash__c",
    "a__b": "a__underscores__b",
    "a b": None,
}


@pytest.mark.parametrize(("name", "written"), ESCAPES.items(), ids=ESCAPES.keys())
def test_names_in_rules(name: str, written: str | None) -> None:
    assert escaped(name) == written
