"""What the API answers to expressions that cannot be used."""

from __future__ import annotations

import pytest

from sully.machinery.cel import CompileError, device_environment

OPERAND = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT,"
    " STRING, BYTES, IDENTIFIER}"
)

# Name: (expression, line:column of each problem, its message, the caret line)
ONE = {
    "nothing": ("", "1:0", f"Syntax error: mismatched input '<EOF>' expecting {OPERAND}", None),
    "white space": (
        " ",
        "1:2",
        f"Syntax error: mismatched input '<EOF>' expecting {OPERAND}",
        ".^",
    ),
    "an operand is missing": (
        "true &&",
        "1:8",
        f"Syntax error: mismatched input '<EOF>' expecting {OPERAND}",
        ".......^",
    ),
    "a name is missing": (
        ".",
        "1:2",
        "Syntax error: no viable alternative at input '.'",
        ".^",
    ),
    "arguments are missing": (
        "nope(",
        "1:6",
        "Syntax error: mismatched input '<EOF>' expecting "
        + OPERAND.replace("'(', ", "'(', ')', "),
        ".....^",
    ),
    "the value of a map is missing": (
        "{'a'",
        "1:5",
        "Syntax error: mismatched input '<EOF>' expecting ':'",
        "....^",
    ),
    "an unknown name": ("tru", "1:1", "undeclared reference to 'tru' (in container '')", "^"),
    "an unknown field": ("device.name == 'x'", "1:7", "undefined field 'name'", "......^"),
    "an unknown function": (
        "unknownFunction()",
        "1:16",
        "undeclared reference to 'unknownFunction' (in container '')",
        "...............^",
    ),
    "an unknown member function": (
        'device.attributes["d"].x.foo()',
        "1:29",
        "undeclared reference to 'foo' (in container '')",
        "............................^",
    ),
    "operands that do not fit": (
        "'a' + 1 == 'b'",
        "1:5",
        "found no matching overload for '_+_' applied to '(string, int)'",
        "....^",
    ),
    "a logical operand of another type": (
        "device.attributes && true",
        "1:7",
        "expected type 'bool' but found 'map(string, map(string, any))'",
        "......^",
    ),
    "a loop over something of any type": (
        'device.attributes["x"].y.exists(z, z == 1)',
        "1:23",
        "expression of type 'any' cannot be range of a comprehension (must be list, map, or"
        " dynamic)",
        "......................^",
    ),
    "a member call that does not fit": (
        "device.driver.startsWith(1)",
        "1:25",
        "found no matching overload for 'startsWith' applied to 'string.(int)'",
        "........................^",
    ),
    "types compared that never equal": (
        "device.driver == 5",
        "1:15",
        "found no matching overload for '_==_' applied to '(string, int)'",
        "..............^",
    ),
    "a list of two types": (
        "[1, 'a'].size() == 2",
        "1:5",
        "expected type 'int' but found 'string'",
        "....^",
    ),
    "a field of a string": (
        "device.driver.x",
        "1:14",
        "type 'string' does not support field selection",
        ".............^",
    ),
    "a loop over a number": (
        "5.all(x, true)",
        "1:1",
        "expression of type 'int' cannot be range of a comprehension"
        " (must be list, map, or dynamic)",
        "^",
    ),
    "has of nothing": ("has(1)", "1:5", "invalid argument to has() macro", "....^"),
    "a loop without a variable": (
        "[1].map(2, 3)",
        "1:9",
        "argument must be a simple name",
        "........^",
    ),
    "a reserved word": ("if", "1:1", "reserved identifier: if", "^"),
    "a bracket is missing": ("(1", "1:3", "Syntax error: missing ')' at '<EOF>'", "..^"),
    "one token too much": (
        "a b",
        "1:3",
        "Syntax error: extraneous input 'b' expecting <EOF>",
        "..^",
    ),
    "two tokens too much": (
        "1 2 3",
        "1:3",
        "Syntax error: mismatched input '2' expecting <EOF>",
        "..^",
    ),
    "an index is missing": (
        "device.attributes[",
        "1:19",
        "Syntax error: mismatched input '<EOF>' expecting "
        + OPERAND.replace("'!', ", "'!', '?', "),
        "..................^",
    ),
    "an optional index is missing": (
        "device.attributes[?",
        "1:20",
        f"Syntax error: mismatched input '<EOF>' expecting {OPERAND}",
        "...................^",
    ),
    "an optional element is missing": (
        "[?",
        "1:3",
        f"Syntax error: mismatched input '<EOF>' expecting {OPERAND}",
        "..^",
    ),
    "an optional key is missing": (
        "{?",
        "1:3",
        f"Syntax error: mismatched input '<EOF>' expecting {OPERAND}",
        "..^",
    ),
    "a list ends after a comma": ("[1,", "1:4", "Syntax error: missing ']' at '<EOF>'", "...^"),
    "a map ends after a comma": ("{1:1,", "1:6", "Syntax error: missing '}' at '<EOF>'", ".....^"),
    "no element after a comma": (
        "[1,*]",
        "1:4",
        "Syntax error: extraneous input '*' expecting ']'",
        "...^",
    ),
    "no key after a comma": (
        "{1:1,*}",
        "1:6",
        "Syntax error: extraneous input '*' expecting '}'",
        ".....^",
    ),
    "a list is not closed": (
        "[1",
        "1:3",
        "Syntax error: mismatched input '<EOF>' expecting {']', ','}",
        "..^",
    ),
    "a number beyond 64 bits": ("9999999999999999999", "1:1", "invalid int literal", "^"),
    "a number of many digits": ("9" * 5000, "1:1", "invalid int literal", "^"),
    "a bad pattern": ('"a".matches("(")', "1:13", "invalid matches argument", "............^"),
    "a bad duration": (
        'duration("x") == duration("1s")',
        "1:10",
        "invalid duration argument",
        ".........^",
    ),
    "a bad timestamp": (
        'timestamp("x") == timestamp("y")',
        "1:11",
        "invalid timestamp argument",
        None,
    ),
    "wide characters before the column": (
        '"é" + 1 == ""',
        "1:5",
        "found no matching overload for '_+_' applied to '(string, int)'",
        ".．..^",
    ),
}


@pytest.mark.parametrize(("expression", "place", "message", "caret"), ONE.values(), ids=ONE.keys())
def test_one_problem(expression: str, place: str, message: str, caret: str | None) -> None:
    with pytest.raises(CompileError) as caught:
        device_environment().compile(expression)

    lines = str(caught.value).split("\n")
    assert lines[0] == f"ERROR: <input>:{place}: {message}"
    assert caught.value.detail == f"compilation failed: {caught.value}"
    if caret is not None:
        assert lines[1:] == [f" | {expression}", f" | {caret}"]


SEVERAL = {
    "unknown characters": (
        "*@a | b",
        [
            f"1:1: Syntax error: extraneous input '*' expecting {OPERAND}",
            "1:2: Syntax error: token recognition error at: '@'",
            "1:5: Syntax error: token recognition error at: '| '",
            "1:7: Syntax error: extraneous input 'b' expecting <EOF>",
        ],
    ),
    "an operator twice": (
        "1 + +",
        [
            f"1:5: Syntax error: mismatched input '+' expecting {OPERAND}",
            f"1:6: Syntax error: mismatched input '<EOF>' expecting {OPERAND}",
        ],
    ),
    "two unknown names on two lines": (
        "a ==\nb",
        [
            "1:1: undeclared reference to 'a' (in container '')",
            "2:1: undeclared reference to 'b' (in container '')",
        ],
    ),
    "a quote is missing": (
        "'abc",
        [
            "1:1: Syntax error: token recognition error at: ''abc'",
            f"1:5: Syntax error: mismatched input '<EOF>' expecting {OPERAND}",
        ],
    ),
}


@pytest.mark.parametrize(("expression", "want"), SEVERAL.values(), ids=SEVERAL.keys())
def test_several_problems(expression: str, want: list[str]) -> None:
    with pytest.raises(CompileError) as caught:
        device_environment().compile(expression)

    heads = [line for line in str(caught.value).split("\n") if line.startswith("ERROR")]
    assert heads == [f"ERROR: <input>:{head}" for head in want]


WRONG_TYPE = {
    "device": "kubernetes.DRADevice",
    "1 + 1": "int",
    '"x"': "string",
    "device.attributes": "map(string, map(string, google.protobuf.Any))",
    "dyn(true)": "dyn",
    'timestamp("2020-01-01T00:00:00Z")': "google.protobuf.Timestamp",
    "null": "null_type",
    "int": "type(int)",
    "optional.of(1)": "optional_type(int)",
}


@pytest.mark.parametrize(("expression", "name"), WRONG_TYPE.items())
def test_wrong_type_of_result(expression: str, name: str) -> None:
    with pytest.raises(CompileError) as caught:
        device_environment().compile(expression)

    assert caught.value.detail == f"must evaluate to bool or the unknown type, not {name}"


DEEP = {
    "parentheses": "(" * 400 + "true" + ")" * 400,
    "lists": "[" * 3000 + "]" * 3000,
    "a long sum": "+".join(["1"] * 2000) + " == 1",
    "a long chain of fields": "device" + ".a" * 2000,
    "nested loops": "[1].map(x, " * 300 + "1" + ")" * 300,
    "choices": "true ? true : " * 600 + "true",
}


@pytest.mark.parametrize("expression", DEEP.values(), ids=DEEP.keys())
def test_too_deep(expression: str) -> None:
    with pytest.raises(CompileError) as caught:
        device_environment().compile(expression)

    assert str(caught.value) == "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"


def test_long_conjunctions_are_not_deep() -> None:
    program = device_environment().compile(" && ".join(["device.driver == 'x'"] * 500))

    assert program.evaluate({"device": {"driver": "x"}}) is True


@pytest.mark.parametrize("kind", ["int", "uint", "double", "bool"])
def test_a_literal_that_cannot_be_converted_has_no_program(kind: str) -> None:
    with pytest.raises(CompileError) as caught:
        device_environment().compile(f"{kind}('x') == {kind}('x')")

    text = f"type conversion error from 'string' to '{kind}'"
    assert caught.value.detail == f"program instantiation failed: {text}"


FORMATS: dict[str, tuple[str, int, str]] = {
    "a text as a number": (
        "'%d'.format(['x'])",
        14,
        "error during formatting: decimal clause can only be used on integers, was given string",
    ),
    "a number that is whole as a double": (
        "'%s %.2f'.format(['x', 1])",
        24,
        "error during formatting: fixed-point clause can only be used on doubles, was given int",
    ),
    "null in octal": (
        "'%o'.format([null])",
        14,
        "error during formatting: octal clause can only be used on integers, was given null_type",
    ),
    "a quantity in a list": (
        "'%s'.format([[quantity('1')]])",
        23,
        "error during formatting: string clause can only be used on strings, bools, bytes, ints,"
        " doubles, maps, lists, types, durations, and timestamps, was given kubernetes.Quantity",
    ),
    "too many values": (
        "'a%%'.format([1])",
        13,
        "too many arguments supplied to string.format (expected 0, got 1)",
    ),
    "too few values": ("'%s %y'.format([1])", 15, "index 1 out of range"),
    "no clause": ("'a%'.format([1])", 12, "unexpected end of string"),
    "an unknown clause": (
        "'%5d'.format([1])",
        13,
        'could not parse formatting clause: unrecognized formatting clause "5"',
    ),
    "a precision without a clause": (
        "'%.3'.format([1])",
        13,
        "could not parse formatting clause: error while parsing precision: could not find end of"
        " precision specifier",
    ),
    "a precision without digits": (
        "'%.f'.format([1.0])",
        13,
        "could not parse formatting clause: error while parsing precision: error while converting"
        ' precision to integer: strconv.Atoi: parsing "": invalid syntax',
    ),
}


@pytest.mark.parametrize(("call", "column", "text"), FORMATS.values(), ids=FORMATS.keys())
def test_format_of_a_literal_is_checked(call: str, column: int, text: str) -> None:
    with pytest.raises(CompileError) as caught:
        device_environment().compile(f"{call} == ''")

    assert str(caught.value).startswith(f"ERROR: <input>:1:{column}: {text}\n")


@pytest.mark.parametrize(
    "call",
    [
        "'%d'.format(dyn(['x']))",
        "('%d' + '').format(['x'])",
        "'%d'.format([dyn('x')])",
        "'%.3f'.format([device.driver])",
        "'%s'.format([{'a': [1]}])",
        "'%X%%'.format([b'a'])",
    ],
)
def test_what_format_leaves_to_the_evaluation(call: str) -> None:
    device_environment().compile(f"{call} == ''")


def test_values_to_format_may_have_different_types() -> None:
    device_environment().compile("'%s-%d'.format(['a', 1]) == 'a-1'")
    with pytest.raises(CompileError, match="expected type 'string' but found 'int'"):
        device_environment().compile("'%s'.format([['a', 1]]) == 'a-1'")
