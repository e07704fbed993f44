from typing import Any

import pytest

from sully.machinery.patch.gotext import plain, syntax, type_name

VALUES: dict[str, tuple[Any, str, str, str]] = {
    "string": ("a b", "a b", '"a b"', "string"),
    "true": (True, "true", "true", "bool"),
    "integer": (12, "12", "12", "int64"),
    "null": (None, "<nil>", "interface {}(nil)", "<nil>"),
    "whole float": (2.0, "2", "2", "float64"),
    "float": (0.25, "0.25", "0.25", "float64"),
    "large float": (1e21, "1e+21", "1e+21", "float64"),
    "larger float": (1.5e300, "1.5e+300", "1.5e+300", "float64"),
    "just not large": (1e20, "100000000000000000000", "100000000000000000000", "float64"),
    "small float": (0.00001, "1e-05", "1e-05", "float64"),
    "list": ([1, "x"], "[1 x]", '[]interface {}{1, "x"}', "[]interface {}"),
    "map, sorted": (
        {"b": 1, "a": []},
        "map[a:[] b:1]",
        'map[string]interface {}{"a":[]interface {}{}, "b":1}',
        "map[string]interface {}",
    ),
    "infinite": (float("inf"), "+Inf", "+Inf", "float64"),
}


@pytest.mark.parametrize(("value", "v", "sharp", "name"), VALUES.values(), ids=VALUES.keys())
def test_printing(value: Any, v: str, sharp: str, name: str) -> None:
    assert plain(value) == v
    assert syntax(value) == sharp
    assert type_name(value) == name
