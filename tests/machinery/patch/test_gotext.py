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
    "whole large float": (1234567.0, "1.234567e+06", "1.234567e+06", "float64"),
    "large float with a fraction": (12345678.5, "1.23456785e+07", "1.23456785e+07", "float64"),
    "negative float": (-1e20, "-1e+20", "-1e+20", "float64"),
    "just not large": (123456.5, "123456.5", "123456.5", "float64"),
    "more than 64 bits": (2**63, "9.223372036854776e+18", "9.223372036854776e+18", "float64"),
    "least of 64 bits": (-(2**63), "-9223372036854775808", "-9223372036854775808", "int64"),
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
