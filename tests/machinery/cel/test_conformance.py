"""Runs the conformance cases of the CEL specification.

The folder with the cases comes from the environment (`$SULLY_SUITES/cel`); without it there is
nothing to run here, and the tables of the other test modules stand for themselves.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from machinery.cel import conformance, textproto
from sully.machinery.cel import CompileError, Environment, EvaluationError, Program
from sully.machinery.cel.declarations import Library, merge
from sully.machinery.cel.library.catalogue import full_library
from sully.machinery.cel.values import equals, type_of

SUITES = os.environ.get("SULLY_SUITES")
EVERY = dict(conformance.cases(Path(SUITES) / "cel")) if SUITES else {}

RUN = {name: case for name, case in EVERY.items() if conformance.excluded(case) is None}


def _environment(case: textproto.Message) -> Environment:
    variables, functions = {}, {}
    for declaration in case.get("type_env", []):
        name = conformance.text(declaration["name"][0])
        if "ident" in declaration:
            variables[name] = conformance.to_type(declaration["ident"][0]["type"][0])
        else:
            functions[name] = conformance.to_overloads(declaration["function"][0])
    container = conformance.text(case.get("container", [b""])[0])
    return Environment(
        library=merge((full_library(), Library(functions))),
        variables=variables,
        container=container,
        homogeneous=False,
        validated=False,
        checks_formats=False,
    )


def _activation(case: textproto.Message) -> dict[str, Any]:
    return {
        conformance.text(entry["key"][0]): conformance.to_value(entry["value"][0]["value"][0])
        for entry in case.get("bindings", [])
    }


def _program(case: textproto.Message) -> Program:
    environment = _environment(case)
    expression = conformance.text(case["expr"][0])
    if case.get("disable_check", ["false"])[0] == "true":
        return environment.compile_unchecked(expression)
    return environment.compile(expression)


def _same(result: Any, expected: Any) -> bool:
    if isinstance(result, float) and result != result:
        return isinstance(expected, float) and expected != expected
    return type_of(result) == type_of(expected) and equals(result, expected)


def run(case: textproto.Message) -> None:
    """Check one case."""
    if "eval_error" in case or "any_eval_errors" in case:
        with pytest.raises((CompileError, EvaluationError)):
            _program(case).evaluate(_activation(case))
        return
    program = _program(case)
    if "typed_result" in case:
        typed = case["typed_result"][0]
        if "deduced_type" in typed:
            assert program.type == conformance.to_type(typed["deduced_type"][0])
        if "result" not in typed:
            return
        expected = conformance.to_value(typed["result"][0])
    else:
        expected = conformance.to_value(case["value"][0]) if "value" in case else True

    result = program.evaluate(_activation(case))
    counted, _ = program.evaluate_counted(_activation(case), 10**9)

    assert _same(result, expected)
    assert _same(counted, expected)


if RUN:

    @pytest.mark.parametrize("case", RUN.values(), ids=RUN.keys())
    def test_conformance(case: textproto.Message) -> None:
        run(case)

    def test_only_protobuf_is_left_out() -> None:
        left_out = {name: conformance.excluded(EVERY[name]) for name in EVERY.keys() - RUN.keys()}

        assert set(left_out.values()) <= conformance.REASONS.keys()
        assert {name.partition("/")[0] for name in left_out} == {
            *("comparisons", "dynamic", "optionals", "parse", "string_ext", "type_deduction")
        }
