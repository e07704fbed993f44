"""Properties that hold for every text, sensible or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sully.machinery.cel import (
    CompileError,
    DeviceInput,
    EvaluationError,
    Program,
    device_environment,
)

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


@settings(max_examples=500, deadline=None)
@given(TEXTS)
def test_any_text_is_refused_or_evaluated(expression: str) -> None:
    for compile_ in (ENV.compile, ENV.compile_unchecked):
        program = _compiled(compile_, expression)
        if isinstance(program, str):
            assert program.startswith(("ERROR: <input>:", "must evaluate to "))
        else:
            assert _outcome(program, None) == _outcome(program, 10**7)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_characters_are_refused_or_evaluated(expression: str) -> None:
    program = _compiled(ENV.compile, expression)

    assert program if isinstance(program, str) else _outcome(program, None)
