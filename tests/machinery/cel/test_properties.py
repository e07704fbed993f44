"""Properties that hold for every text, sensible or not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property_examples import examples
from sully.machinery.cel import (
    CompileError,
    DeviceInput,
    Environment,
    EvaluationError,
    Program,
    device_environment,
    types,
)
from sully.machinery.cel.library.catalogue import full_library
from sully.machinery.cel.values import NONE, Duration, Optional, Timestamp, UInt
from sully.machinery.formats.quantity import parse_quantity
from sully.machinery.formats.semver import parse_semver

PIECES = (
    *("device", ".driver", ".attributes", ".capacity", '["d"]', ".model", ".?x", '[?"y"]', ".foo"),
    *("(", ")", "[", "]", "{", "}", ",", ":", "?", " && ", " || ", "!", " == ", " < ", " in "),
    *(" + ", "-", " / ", "0", "1", "2.5", "3u", "'a'", '"b"', "b'c'", "true", "null", "x"),
    *(".all(x, ", ".exists(x, ", ".map(x, ", ".filter(x, ", "has(", "cel.bind(x, ", "size("),
    *(".orValue(", ".startsWith(", ".matches(", "quantity('1Ki')", "semver('1.0.0')", "dyn("),
    *(".isGreaterThan(", "optional.of(", "'", '"', "@", "\n", "if", "é"),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
DEVICE = DeviceInput("d", {"model": {"string": "a"}, "x": {"int": 1}}, {"c": "1Ki"})
ENV = device_environment(list_attributes=True)


def _compiled(compile_: Callable[[str], Program], expression: str) -> Program | str:
    try:
        return compile_(expression)
    except CompileError as error:
        return str(error)


def _outcome(program: Program, limit: int | None) -> Any:
    try:
        if limit is None:
            return repr(program.evaluate(DEVICE))
        return repr(program.evaluate_counted(DEVICE, limit)[0])
    except EvaluationError as error:
        return f"error: {error}"


@settings(max_examples=examples(500))
@given(TEXTS)
def test_any_text_is_refused_or_evaluated(expression: str) -> None:
    for compile_ in (ENV.compile, ENV.compile_unchecked):
        program = _compiled(compile_, expression)
        if isinstance(program, str):
            assert program.startswith(("ERROR: <input>:", "must evaluate to "))
        else:
            assert _outcome(program, None) == _outcome(program, 10**7)


@settings(max_examples=examples(200))
@given(st.text(max_size=40))
def test_any_characters_are_refused_or_evaluated(expression: str) -> None:
    program = _compiled(ENV.compile, expression)

    assert program if isinstance(program, str) else _outcome(program, None)


# Named operators are covered by the texts above.
FUNCTIONS = sorted(
    {
        (name, len(overload.args), overload.member)
        for name, overloads in full_library().functions.items()
        for overload in overloads
        if name[0].isalpha() and "@" not in name and len(overload.args) <= 2
    }
)
VALUES: tuple[Any, ...] = (
    *(True, 0, -(2**63), UInt(3), 1.5, float("nan"), "", "é%d", "10.0.0.1", b"\xff", None),
    *([], [1, "a"], [None], [Optional(1)], {}, {"a": 1}, Timestamp(0), Duration(-(2**63))),
    *(NONE, Optional("x"), types.INT, parse_quantity("1Gi"), parse_semver("1.2.3")),
)
UNTYPED = Environment(
    library=full_library(),
    variables={"x": types.DYN, "y": types.DYN},
    validated=False,
    checks_formats=False,
)


@pytest.mark.parametrize(("name", "arity", "member"), FUNCTIONS)
def test_functions_fail_in_one_way_only(name: str, arity: int, member: bool) -> None:
    names = ["x", "y"][:arity]
    call = f"x.{name}({', '.join(names[1:])})" if member else f"{name}({', '.join(names)})"
    program = UNTYPED.compile(call)

    for chosen in product(VALUES, repeat=arity):
        activation = dict(zip(names, chosen, strict=True))
        try:
            program.evaluate(activation)
        except EvaluationError as error:
            message = str(error)
        else:
            message = "none"
        assert message
