"""Custom resources: fields that may hold anything, which no kind of ours has."""

from __future__ import annotations

from typing import Any

import pytest

from sully.machinery.customresources.structural import problems, read
from sully.machinery.schema import Tables

TABLE = """\
Thing: Something.
  apiVersion string: Group and version.
  data object: Anything.
  kind string: The kind.
"""


def table() -> Any:
    tables = Tables()
    tables.load("p", "p", TABLE)
    return tables.get("p", "Thing")


def test_what_lies_in_it_is_kept_and_not_looked_at() -> None:
    unknown: list[str] = []
    result = read({"data": {"a": [1, None, {"b": ""}]}, "more": 1}, table(), unknown)

    assert result["data"] == {"a": [1, None, {"b": ""}]}
    assert unknown == ["more"]
    assert list(problems(result, table())) == []


WRONG = {"a text": ("x", "string"), "a list": ([], "array"), "a number": (3, "integer")}


@pytest.mark.parametrize(("value", "name"), WRONG.values(), ids=WRONG.keys())
def test_it_must_be_an_object(value: Any, name: str) -> None:
    (result,) = problems({"data": value}, table())

    text = f'data in body must be of type object: "{name}"'
    assert (result.field, result.body) == ("data", f'Invalid value: "{name}": {text}')
