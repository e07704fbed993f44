"""Compares generated expressions with another implementation (cel-cpp, by `cel_expr_python`).

Both must agree whether an expression compiles, whether it fails, and on its value. The other one
returns errors as values of type ERROR. Where the two languages' definitions leave room (the text of
errors, the order of map keys) nothing is compared.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property_examples import examples
from sully.machinery.cel import CompileError, Environment, EvaluationError
from sully.machinery.cel import types as cel_types
from sully.machinery.cel.library.catalogue import full_library
from sully.machinery.cel.values import Duration, Optional, Timestamp, UInt

oracle = pytest.importorskip("cel_expr_python.cel")

FAILED = object()
REFUSED = object()

VARIABLES: dict[str, tuple[str, Any]] = {
    "i": ("int", -3),
    "d": ("double", 2.5),
    "s": ("string", "abc"),
    "b": ("bool", True),
    "n": ("list(int)", [3, 1, 2]),
    "m": ("map(string, int)", {"a": 1, "b": 2}),
    "x": ("dyn", 7),
}

OURS = Environment(
    library=full_library(),
    variables={name: cel_types.parse_type(kind) for name, (kind, _) in VARIABLES.items()},
    homogeneous=False,
    validated=False,
    checks_formats=False,
)


def _theirs() -> Any:
    kinds = oracle.Type
    declared = {
        "i": kinds.INT,
        "d": kinds.DOUBLE,
        "s": kinds.STRING,
        "b": kinds.BOOL,
        "n": kinds.List(kinds.INT),
        "m": kinds.Map(kinds.STRING, kinds.INT),
        "x": kinds.DYN,
    }
    config = oracle.NewEnvConfigFromYaml(
        "extensions:\n  - name: optional\n  - name: strings\n  - name: bindings\n"
    )
    return oracle.NewEnv(config=config, variables=declared)


THEIRS = _theirs()
ACTIVATION = {name: value for name, (_, value) in VARIABLES.items()}


def ours(expression: str) -> Any:
    try:
        program = OURS.compile(expression)
    except CompileError:
        return REFUSED
    try:
        value = program.evaluate(ACTIVATION)
    except EvaluationError:
        value = FAILED
    try:
        counted = program.evaluate_counted(ACTIVATION, 10**9)[0]
    except EvaluationError:
        counted = FAILED
    assert _same(_plain(counted), _plain(value))
    return _plain(value)


def theirs(expression: str) -> Any:
    try:
        program = THEIRS.compile(expression)
    except Exception:  # noqa: BLE001 - the binding raises plain exceptions
        return REFUSED
    value = program.eval(data=ACTIVATION)
    if value.type() == oracle.Type.ERROR:
        return FAILED
    return value.plain_value()


def _plain(value: Any) -> Any:
    if isinstance(value, UInt):
        return int(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(getattr(k, "value", k)): _plain(v) for k, v in value.items()}
    if isinstance(value, Duration):
        return timedelta(microseconds=value.nanos // 1000)
    if isinstance(value, Timestamp):
        return value.utc
    if isinstance(value, Optional):
        return _plain(value.value) if value.present else None
    return value


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and bool(left == right)


NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.sampled_from([2**63 - 1, -(2**63), 2**62, 1 << 32]),
).map(lambda value: f"({value})" if value < 0 else str(value))
TEXTS = st.sampled_from(["", "a", "ab", "Zb", "é", "a,b,c", "%d", "12"]).map(
    lambda text: "'" + text + "'"
)
DOUBLES = st.sampled_from(["0.0", "-1.5", "2.0", "1e308", "3.25", "(0.0/0.0)"])


ROWS: dict[str, list[tuple[str, ...]]] = {
    "int": [
        ("({} + {})", "int", "int"),
        ("({} - {})", "int", "int"),
        ("({} * {})", "int", "int"),
        ("({} / {})", "int", "int"),
        ("({} % {})", "int", "int"),
        ("(-{})", "int"),
        ("size({})", "text"),
        ("{}.size()", "ints"),
        ("{}[{}]", "ints", "int"),
        ("m[{}]", "text"),
        ("({} ? {} : {})", "bool", "int", "int"),
        ("int({})", "double"),
        ("int({})", "text"),
        ("{}.indexOf({})", "text", "text"),
        ("cel.bind(v, {}, v + {})", "int", "int"),
        ("m[?{}].orValue({})", "text", "int"),
        ("m.?c.orValue({})", "int"),
    ],
    "double": [
        ("({} + {})", "double", "double"),
        ("({} * {})", "double", "double"),
        ("({} / {})", "double", "double"),
        ("double({})", "int"),
    ],
    "text": [
        ("({} + {})", "text", "text"),
        ("string({})", "int"),
        ("{}.substring({})", "text", "int"),
        ("{}.upperAscii()", "text"),
        ("{}.replace({}, {})", "text", "text", "text"),
        ("{}.charAt({})", "text", "int"),
        ("{}.split({}).join('-')", "text", "text"),
        ("({} ? {} : {})", "bool", "text", "text"),
    ],
    "bool": [
        ("({} && {})", "bool", "bool"),
        ("({} || {})", "bool", "bool"),
        ("(!{})", "bool"),
        ("({} == {})", "int", "int"),
        ("({} != {})", "text", "text"),
        ("(dyn({}) < dyn({}))", "int", "double"),
        ("({} <= {})", "text", "text"),
        ("({} > {})", "double", "double"),
        ("({} == {})", "ints", "ints"),
        ("(dyn({}) == dyn({}))", "int", "text"),
        ("(dyn({}) < dyn({}))", "int", "text"),
        ("({} in {})", "int", "ints"),
        ("({} in m)", "text"),
        ("{}.contains({})", "text", "text"),
        ("{}.startsWith({})", "text", "text"),
        ("{}.all(v, v > {})", "ints", "int"),
        ("{}.exists(v, {} / v > 0)", "ints", "int"),
        ("{}.exists_one(v, v == {})", "ints", "int"),
        ("has(m.a)",),
        ("has(m.zz)",),
        ("m.all(k, m[k] > {})", "int"),
        ("(type({}) == int)", "int"),
        ("(x == {})", "int"),
        ("({} + {} == {})", "bool", "int", "int"),
    ],
    "ints": [
        ("[{}, {}]", "int", "int"),
        ("[{}]", "int"),
        ("({} + {})", "ints", "ints"),
        ("{}.map(v, v + {})", "ints", "int"),
        ("{}.filter(v, v > {})", "ints", "int"),
        ("{}.map(v, v > {}, v * 2)", "ints", "int"),
        ("[1, ?m[?{}]]", "text"),
    ],
}
LEAVES = {
    "int": st.one_of(NUMBERS, st.just("i"), st.just("x")),
    "double": st.one_of(DOUBLES, st.just("d")),
    "text": st.one_of(TEXTS, st.just("s")),
    "bool": st.sampled_from(["true", "false", "b"]),
    "ints": st.sampled_from(["n", "[]", "[0, 1]"]),
}


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int) -> str:
    """Draw the text of an expression of a kind, at most so deep."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(LEAVES[kind])
    template, *args = draw(st.sampled_from(ROWS[kind]))
    return template.format(*(draw(expressions(one, depth - 1)) for one in args))


@settings(max_examples=examples(400))
@given(st.data())
def test_agrees_with_another_implementation(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(ROWS)))
    expression = data.draw(expressions(kind, 3))

    result, expected = ours(expression), theirs(expression)

    assert _same(result, expected), (expression, result, expected)
