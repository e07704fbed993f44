"""The language: values, errors and what absorbs them, loops, optional values."""

from __future__ import annotations

from typing import Any

import pytest

from sully.machinery.cel import Environment, EvaluationError, types
from sully.machinery.cel.library.catalogue import full_library

ENV = Environment(
    library=full_library(),
    variables={"x": types.DYN, "m": types.map_of(types.STRING, types.INT), "a.b": types.INT},
    homogeneous=False,
)
INPUT: dict[str, Any] = {"x": 7, "m": {"one": 1}, "a.b": 5}

TRUE = {
    "precedence": "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9",
    "division cuts towards zero": "-7 / 2 == -3 && -7 % 2 == -1",
    "unsigned numbers equal signed ones": "dyn(1u) == dyn(1) && dyn(1) == dyn(1.0)",
    "numbers of types are ordered": "1 < 1.5 && 2u > 1 && 3.0 >= 3u",
    "a bool is not a number": "dyn(true) != dyn(1) && dyn(false) != dyn(0)",
    "a bool and a number are two keys": "{true: 'b', 1: 'i'}[dyn(1)] == 'i'",
    "a double finds an int key": "{1: 'i'}[dyn(1.0)] == 'i'",
    "nan is not itself": "0.0 / 0.0 != 0.0 / 0.0",
    "infinity": "1.0 / 0.0 > 1e300 && -1.0 / 0.0 < -1e300",
    "deep equality": "[1, {'a': [2.0]}] == [1.0, {'a': [2]}]",
    "types are values": "type(1) == int && type(type(1)) == type && type([]) == list",
    "false wins over an error": "!(1 / 0 > 0 && false)",
    "true wins over an error": "1 / 0 > 0 || true",
    "all finds a false after an error": "![0, 1, 2].all(v, 2 / v < 2)",
    "exists finds a true after an error": "[0, 1].exists(v, 1 / v == 1)",
    "the other branch is not evaluated": "true ? true : 1 / 0 > 0",
    "a binding is lazy": "cel.bind(v, 1 / 0, true)",
    "orValue is lazy": "optional.of(1).orValue(1 / 0) == 1",
    "a binding hides an outer one": "cel.bind(v, 1, cel.bind(v, 2, v) + v) == 3",
    "a loop variable hides a variable": "[1].all(x, x == 1) && x == 7",
    "a leading dot sees through a loop variable": "[1].all(x, .x == 7)",
    "nested loops": "[1, 2].map(i, [3, 4].map(j, i * j)) == [[3, 4], [6, 8]]",
    "a map is looped by key": "m.all(k, m[k] == 1)",
    "two variables": "['a', 'b'].exists(i, v, i == 1 && v == 'b')",
    "transformList": "[1, 2, 3].transformList(i, v, i > 0, i * v) == [2, 6]",
    "transformMap": "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
    "transformMapEntry": "{'a': 'b'}.transformMapEntry(k, v, {v: k}) == {'b': 'a'}",
    "a qualified variable": "a.b == 5",
    "sortBy": "['bb', 'a'].sortBy(s, size(s)) == ['a', 'bb']",
    "optional fields": "{'a': {'b': 1}}.?a.?b.orValue(0) == 1 && {'a': 1}.?b.orValue(2) == 2",
    "optional entries": "{?'a': optional.none(), 'b': 1} == {'b': 1}",
    "optional elements": "[?optional.of(1), ?optional.none()] == [1]",
    "optMap": "optional.of(1).optMap(v, v + 1).value() == 2",
    "an absent optional maps to nothing": "!optional.none().optMap(v, 1 / 0).hasValue()",
    "an escaped field": "{'a-b': 1}.`a-b` == 1",
    "comments": "true // and nothing else",
    "raw strings": r"r'\n' == '\\n'",
    "triple quotes": "'''a'b''' == \"a'b\"",
    "bytes": r"b'\xff' == b'\377' && size(b'é') == 2",
    "characters, not bytes": "size('é') == 1",
    "dates": "timestamp('2024-02-29T12:30:00Z').getMonth() == 1",
    "zones": "timestamp('2024-02-29T23:30:00Z').getHours('+02:00') == 1",
    "durations": "duration('1h30m') == duration('90m') && string(duration('1.5s')) == '1.5s'",
}


@pytest.mark.parametrize("expression", TRUE.values(), ids=TRUE.keys())
def test_true(expression: str) -> None:
    program = ENV.compile(expression)

    assert program.evaluate(INPUT) is True
    assert program.evaluate_counted(INPUT, 10**6)[0] is True


FAILS = {
    "overflow": ("9223372036854775807 + x == 0", "integer overflow"),
    "negative overflow": ("-(-9223372036854775808) == 0", "integer overflow"),
    "unsigned underflow": ("1u - 2u == 0u", "unsigned integer overflow"),
    "division by zero": ("1 / 0 == 0", "division by zero"),
    "modulus by zero": ("1 % 0 == 0", "modulus by zero"),
    "a missing key": ("m['two'] == 2", "no such key: two"),
    "a missing field": ("m.two == 2", "no such key: two"),
    "an index too high": ("[1][1] == 1", "index out of bounds: 1"),
    "a negative index": ("[1][-1] == 1", "index out of bounds: -1"),
    "a repeated key": ("{'a': 1, 'a': 2} == {}", "Failed with repeated key: a"),
    "the first error": ("1 / 0 > 0 && x / 0 > 0", "division by zero"),
    "a number where a bool should be": ("dyn(1) && true", "no such overload"),
    "a loop over a number": ("dyn(1).all(v, true)", "no such overload"),
    "exists_one does not absorb": ("[0, 1].exists_one(v, 1 / v == 1)", "division by zero"),
    "nothing has no value": ("optional.none().value() == 1", "optional.none() dereference"),
    "a number too large for its type": ("int(1e300) == 0", "integer overflow"),
    "a double beyond its range": (
        "double('1e' + '400') == 0.0",
        'strconv.ParseFloat: parsing "1e400": value out of range',
    ),
    "a list that grows without end": (
        "cel.bind(a, lists.range(60000), a + a).size() > 0",
        "list of 120000 elements exceeds the limit of 100000",
    ),
    "a text that grows without end": (
        f"cel.bind(a, '{'x' * 500}', cel.bind(b, a.replace('', a), b.replace('', b))).size() > 0",
        "text of 63001502000 characters exceeds the limit of 10000000",
    ),
    "a text filled in often": (
        f"cel.bind(a, '{'x' * 2000}'.replace('', '{'y' * 2000}'),"
        " '%s%s%s'.format([a, a, a])) == ''",
        "text of 12012000 characters exceeds the limit of 10000000",
    ),
    "text that is not a number": (
        "int('' + 'x') == 0",
        'strconv.ParseInt: parsing "x": invalid syntax',
    ),
    "an unknown zone": (
        "timestamp('2024-01-01T00:00:00Z').getHours('Nowhere') == 0",
        "unknown time zone Nowhere",
    ),
}


@pytest.mark.parametrize(("expression", "message"), FAILS.values(), ids=FAILS.keys())
def test_fails(expression: str, message: str) -> None:
    program = ENV.compile(expression)

    with pytest.raises(EvaluationError) as caught:
        program.evaluate(INPUT)
    assert str(caught.value) == message
    with pytest.raises(EvaluationError) as counted:
        program.evaluate_counted(INPUT, 10**6)
    assert str(counted.value) == message


def test_a_missing_variable_is_an_error() -> None:
    with pytest.raises(EvaluationError, match=r"no such attribute\(s\): x"):
        ENV.compile("x == 1").evaluate({})


def test_unchecked_expressions_fail_when_they_run() -> None:
    program = ENV.compile_unchecked("'a' + 1 == 'b' || unknown(1)")

    with pytest.raises(EvaluationError, match="no such overload"):
        program.evaluate(INPUT)


def test_programs_do_not_change_their_input() -> None:
    ENV.compile("[1, 2].map(x, m.size() + x).size() == 2").evaluate(INPUT)

    assert INPUT == {"x": 7, "m": {"one": 1}, "a.b": 5}
