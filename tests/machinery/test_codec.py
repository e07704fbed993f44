"""Bodies in, answers out: whatever comes in becomes a value or a BodyError."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sully.machinery.serialization import codec, yamltext
from sully.machinery.serialization.codec import BodyError

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@dataclass(frozen=True)
class Case:
    body: bytes
    want: Any = None
    repeated: list[str] = field(default_factory=list)


JSON_CASES = {
    "object": Case(b'{"a": [1, 2.5, true, null, "x"]}', {"a": [1, 2.5, True, None, "x"]}),
    "white space around": Case(b" \n{}\t", {}),
    "not UTF-8": Case(b'{"a":"\xff"}', {"a": "\ufffd"}),
    "a pair of surrogates": Case(rb'{"a":"\ud83d\ude00"}', {"a": "\U0001f600"}),
    "half a character": Case(rb'{"a":"x\ud800y"}', {"a": "x\ufffdy"}),
    "half a character in a key": Case(rb'{"\udfff":1}', {"\ufffd": 1}),
    "escaped escape": Case(rb'{"a":"\\ud800"}', {"a": "\\ud800"}),
    "the largest integers": Case(
        b"[9223372036854775807, -9223372036854775808, 18446744073709551615]",
        [2**63 - 1, -(2**63), 2**64 - 1],
    ),
    "an integer beyond 64 bits": Case(b"[100000000000000000000]", [1e20]),
    "the last of two": Case(b'{"a":1,"a":2}', {"a": 2}, ["a"]),
    "the last of two, with spaces": Case(b'{"a": 1, "a": 2}', {"a": 2}, ["a"]),
    "spaces in texts": Case(b'{"a": "x, y\\": z", "b": 1}', {"a": 'x, y": z', "b": 1}),
    "spaces in texts only": Case(b'{"a, b":"c\\": d"}', {"a, b": 'c": d'}),
    "three times, reported once": Case(b'{"a":1,"a":2,"a":3}', {"a": 3}, ["a"]),
    "deep down": Case(
        b'{"a":[{"b":1},{"b":1,"b":2}],"c":{"d":1,"d":1}}',
        {"a": [{"b": 1}, {"b": 2}], "c": {"d": 1}},
        ["a[1].b", "c.d"],
    ),
    "in what a repeated key hides": Case(b'{"a":{"x":1,"x":2},"a":{}}', {"a": {}}, ["a.x", "a"]),
}


@pytest.mark.parametrize("case", JSON_CASES.values(), ids=JSON_CASES.keys())
def test_json(case: Case) -> None:
    assert codec.parse_json(case.body) == (case.want, case.repeated)


def test_an_integer_beyond_64_bits_is_a_float() -> None:
    assert repr(codec.parse_json(b"[100000000000000000000]")[0]) == "[1e+20]"


TOO_MANY = "limit is 50000 fields and list items in one body; split it into several objects"
BAD_JSON = {
    "a number that no float holds": (
        b'{"a":1' + b"0" * 400 + b"}",
        f"json: cannot unmarshal number 1{'0' * 400} into Go value of type float64",
    ),
    "nothing": (b"", "unexpected end of JSON input"),
    "ends early": (b'{"a":', "unexpected end of JSON input"),
    "inside a list": (b"[1, ", "unexpected end of JSON input"),
    "inside a string": (b'{"a', "unexpected end of JSON input"),
    "a word": (b"hello", "invalid character 'h' looking for beginning of value"),
    "single quotes": (
        b"{'a':1}",
        "invalid character '\\'' looking for beginning of object key string",
    ),
    "no colon": (b'{"a" 1}', "invalid character '1' after object key"),
    "no comma in an object": (
        b'{"a":1 "b":2}',
        "invalid character '\"' after object key:value pair",
    ),
    "more than one value": (b"{} x", "invalid character 'x' after top-level value"),
    "NaN": (b'{"a":NaN}', "invalid character 'N' looking for beginning of value"),
    "infinite": (b'{"a":Infinity}', "invalid character 'I' looking for beginning of value"),
    "a number no float holds": (
        b'{"a":1e999}',
        "json: cannot unmarshal number 1e999 into Go value of type float64",
    ),
    "a number of thousands of digits": (
        b"1" * 5000,
        "json: a number in the body is too long",
    ),
    "a little too deep": (b"[" * 202 + b"]" * 202, "exceeded max depth"),
    "far too deep": (b'{"a":' * 20_000, "exceeded max depth"),
    "too many objects": (b"[" + b"{}," * 60_000 + b"{}]", TOO_MANY),
    "too many fields": (b"{" + b'"a":1,' * 60_000 + b'"a":1}', TOO_MANY),
    "too many words": (b"[" + b'"a",' * 60_000 + b'"a"]', TOO_MANY),
    "too many words that end in backslashes": (b"[" + b'"\\\\",' * 60_000 + b'"a"]', TOO_MANY),
    "far too many words": (b"[" + b'"a",' * 600_000 + b'"a"]', TOO_MANY),
}


@pytest.mark.parametrize(("body", "text"), BAD_JSON.values(), ids=BAD_JSON.keys())
def test_bad_json(body: bytes, text: str) -> None:
    with pytest.raises(BodyError) as caught:
        codec.parse_json(body)

    assert str(caught.value) == text


YAML_CASES = {
    "nothing": Case(b"", None),
    "only a comment": Case(b"# nothing\n", None),
    "plain values": Case(
        b"a: 1\nb: 'x'\nc: [2.5, true, ~, 0x10, 010, 1_000]\n",
        {"a": 1, "b": "x", "c": [2.5, True, None, 16, 8, 1000]},
    ),
    "exponents": Case(b"[1e3, 1.5E-2, 2.0, 1e400x]", [1000, 0.015, 2, "1e400x"]),
    "numbers that no float holds stay texts": Case(b"[1e310, -1E999]", ["1e310", "-1E999"]),
    "words for booleans": Case(b"[yes, off, y, N, 'true']", [True, False, True, False, "true"]),
    "dates stay texts": Case(b"a: 2001-01-01\n", {"a": "2001-01-01"}),
    "sixties stay texts": Case(b"a: 1:30\n", {"a": "1:30"}),
    "keys become texts": Case(b"{1: a, true: b, 'null': c}", {"1": "a", "true": "b", "null": "c"}),
    "octal numbers in both forms": Case(b"[0o17, -0O7, 017, 0o8]", [15, -7, 15, "0o8"]),
    "binary texts": Case(
        b"a: !!binary aGVsbG8=\nb: !!binary /w==\n", {"a": "hello", "b": "\ufffd"}
    ),
    "JSON is YAML": Case(b'{"a": {"b": [1, "c"]}}', {"a": {"b": [1, "c"]}}),
    "tags": Case(b"a: !!str 5\nb: !!int '5'\nc: !mine {x: 1}\n", {"a": "5", "b": 5, "c": {"x": 1}}),
    "a tag that would run code": Case(b"a: !!python/object/apply:os.getcwd []\n", {"a": []}),
    "alias": Case(b"a: &x {b: [1]}\nc: *x\n", {"a": {"b": [1]}, "c": {"b": [1]}}),
    "merge": Case(
        b"a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n",
        {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}},
    ),
    "merge of several": Case(
        b"x: &x {a: 1}\nw: &y {a: 2, b: 2}\nz:\n  <<: [*x, *y]\n",
        {"x": {"a": 1}, "w": {"a": 2, "b": 2}, "z": {"a": 1, "b": 2}},
    ),
    "repeated keys": Case(
        b"a: 1\na: 2\nb: [{c: 1, c: 2}]\n",
        {"a": 2, "b": [{"c": 2}]},
        ['line 2: key "a" already set in map', 'line 3: key "c" already set in map'],
    ),
    "keys that are not texts": Case(b"{yes: 1, 0x10: 2, a: 3}", {"true": 1, "16": 2, "a": 3}),
    "the first of two documents": Case(b"a: 1\n---\nb: 2\n", {"a": 1}),
    "not UTF-8": Case(b"a: \xff\n", {"a": "\ufffd"}),
}


@pytest.mark.parametrize("case", YAML_CASES.values(), ids=YAML_CASES.keys())
def test_yaml(case: Case) -> None:
    assert codec.parse_yaml(case.body) == (case.want, case.repeated)


def _bomb(levels: int) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        ten = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{ten}]")
    return "\n".join(lines).encode()


BAD_YAML = {
    "a list that does not end": (b"[1,2", "yaml: line 1: did not find expected ',' or ']'"),
    "two colons": (b"a: b: c", "yaml: mapping values are not allowed in this context"),
    "tab": (b"a:\n\t- x", "yaml: line 2: found character that cannot start any token"),
    "zero byte": (
        b"a: \x00",
        "yaml: unacceptable character #x0000: control characters are not allowed",
    ),
    "unknown alias": (b"a: *b", "yaml: unknown anchor 'b' referenced"),
    "an alias inside itself": (b"a: &a [*a, *a]", "yaml: anchor 'a' value contains itself"),
    "too many directives": (
        b"".join(b"%%TAG !t%d! a\n" % n for n in range(200)) + b"--- 1",
        "yaml: document contains more than 100 directives",
    ),
    "aliases of aliases": (_bomb(9), "yaml: document contains excessive aliasing"),
    "a list as a key": (
        b"? [a, ~]\n: 1",
        'yaml: invalid map key: []interface {}{"a", interface {}(nil)}',
    ),
    "a map as a key": (
        b"{{b: 2, a: true}: c}",
        'yaml: invalid map key: map[interface {}]interface {}{"a":true, "b":2}',
    ),
    "null as a key": (
        b"a: {~: b}",
        'unsupported map key of type: %!s(<nil>), key: <nil>, value: "b"',
    ),
    "no key": (b"a: {? : ~}", "unsupported map key of type: %!s(<nil>), key: <nil>, value: <nil>"),
    "not base64": (b"a: !!binary '?'", "yaml: !!binary value contains invalid base64 data"),
    "a text as a number": (b"a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
    "a number as null": (b"a: !!null 5", "yaml: cannot decode !!int `5` as a !!null"),
    "merge of a text": (b"<<: x", "yaml: map merge requires map or sequence of maps as the value"),
    "not a number": (b"a: .nan", "json: unsupported value: NaN"),
    "infinite": (b"a: -.INF", "json: unsupported value: -Inf"),
    # A composer in C would end the process here.
    "deep lists": (b"[" * 500_000, "exceeded max depth"),
    "deep maps": (b"{a: " * 20_000, "exceeded max depth"),
    "deep blocks": (b"- " * 200_000, "exceeded max depth"),
}


@pytest.mark.parametrize(("body", "text"), BAD_YAML.values(), ids=BAD_YAML.keys())
def test_bad_yaml(body: bytes, text: str) -> None:
    with pytest.raises(BodyError) as caught:
        codec.parse_yaml(body)

    assert str(caught.value) == text


def test_aliases_share_nothing() -> None:
    value, _ = codec.parse_yaml(b"a: &x {m: 1}\nb: *x\n")
    value["a"]["m"] = 2

    assert value["b"] == {"m": 1}


def test_as_many_aliases_as_allowed() -> None:
    items = ", ".join(["*x"] * yamltext.MAX_ALIASED)

    value, _ = codec.parse_yaml(f"a: &x 1\nb: [{items}]".encode())

    assert len(value["b"]) == yamltext.MAX_ALIASED


@given(JSON_VALUES)
def test_json_comes_back(value: Any) -> None:
    assert codec.parse_json(codec.to_json(value)) == (value, [])
    assert codec.parse_json(codec.to_pretty_json(value)) == (value, [])
    assert codec.from_json(codec.to_json(value)) == value


@given(JSON_VALUES)
def test_yaml_comes_back(value: Any) -> None:
    assert yaml.safe_load(codec.to_yaml(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_refused(body: bytes) -> None:
    for parse in (codec.parse_json, codec.parse_yaml):
        try:
            value, _ = parse(body)
        except BodyError:
            continue
        # What was accepted can be stored and answered.
        assert codec.from_json(codec.to_json(value)) == value


@given(st.text(alphabet='{}[]",:\\ud8ab0123456789.eE+-tfnul \n', max_size=60))
def test_what_json_takes_python_takes(text: str) -> None:
    try:
        value, _ = codec.parse_json(text.encode())
    except BodyError:
        return
    codec.to_json(value)
    json.loads(text)


def test_yaml_answers_sort_keys_and_break_no_lines() -> None:
    long = "word " * 60
    text = codec.to_yaml({"b": long.strip(), "a": "ü"}).decode()

    assert text == f"a: ü\nb: {long.strip()}\n"


@given(JSON_VALUES)
def test_copies_are_equal_and_apart(value: Any) -> None:
    copied = codec.copy(value)

    assert copied == value
    if isinstance(value, dict | list):
        assert copied is not value


GOOD_THOUGH_LONG = {
    "a text of brackets": b'{"a":"' + b"[{,}]" * 100_000 + b'"}',
    "a text of quotes": b'{"a":"' + b'\\",[' * 100_000 + b'"}',
    "a text of backslashes": b'{"a":"' + b"\\\\," * 100_000 + b'"}',
    "many values": b"[" + b"1," * 49_000 + b"1]",
}


@pytest.mark.parametrize("body", GOOD_THOUGH_LONG.values(), ids=GOOD_THOUGH_LONG.keys())
def test_a_long_body(body: bytes) -> None:
    assert codec.parse_json(body) == (json.loads(body), [])


def test_repeated_keys_are_not_all_reported() -> None:
    body = b"{" + b",".join(b'"k%d":1,"k%d":2' % (n, n) for n in range(1000)) + b"}"

    assert codec.parse_json(body)[1] == [f"k{n}" for n in range(100)]
    assert codec.parse_yaml(body)[1] == [
        f'line 1: key "k{n}" already set in map' for n in range(100)
    ]


def test_the_path_of_a_repeated_key_is_not_longer_than_anybody_reads() -> None:
    long = b"x" * 1_000_000
    body = b'{"' + long + b'":{' + b'"a":{"b":1,"b":2},' * 1000 + b'"a":{}}}'

    (path,) = codec.parse_json(body)[1][:1]

    assert len(path) < 2000
    assert path.endswith(".a.b")


MORE_THAN_YAML = {
    "too many objects": b"[" + b"{}," * 60_000 + b"{}]",
    "too many lines": b"a: 1\n" * 60_000,
    "too many fields of JSON": b"{" + b'"a":1,' * 60_000 + b'"a":1}',
}


@pytest.mark.parametrize("body", MORE_THAN_YAML.values(), ids=MORE_THAN_YAML.keys())
def test_yaml_of_too_many_values(body: bytes) -> None:
    with pytest.raises(codec.TooManyValuesError):
        codec.parse_yaml(body)


SAME_IN_BOTH = {
    "text": {"a": 'é"\\\n\u2028 : - #'},
    "numbers": {"a": 1, "b": -5, "c": 2**63, "d": [0, 10**18]},
    "whole fractions": {"a": 1.0, "b": 2.5, "c": [1e300]},
    "the rest": {"a": None, "b": True, "c": {}, "d": [[], {"x": "y"}], "": "yes"},
}


@pytest.mark.parametrize("value", SAME_IN_BOTH.values(), ids=SAME_IN_BOTH.keys())
def test_json_is_read_as_the_yaml_that_it_is(value: dict[str, object]) -> None:
    body = codec.to_json(value)

    # A comment behind it is not JSON.
    assert codec.parse_yaml(body) == codec.parse_yaml(body + b" # yaml")


def test_words_that_are_booleans_are_quoted() -> None:
    text = codec.to_yaml({"n": "y", "note": ["N", "no way", "never"]})

    assert text == b"'n': 'y'\nnote:\n- 'N'\n- no way\n- never\n"
    assert codec.parse_yaml(text)[0] == {"n": "y", "note": ["N", "no way", "never"]}


def test_shared_values_are_written_again() -> None:
    shared = {"x": 1}

    assert codec.to_yaml({"a": shared, "b": shared}) == b"a:\n  x: 1\nb:\n  x: 1\n"


def test_objects_under_a_repeated_key_are_merged() -> None:
    document = b'{"a": {"b": 1, "c": {"d": 1}}, "a": {"b": 2, "c": {"e": 2}}, "f": [1], "f": null}'

    assert codec.merge_repeated(document) == {"a": {"b": 2, "c": {"d": 1, "e": 2}}, "f": None}


def test_what_is_merged_is_read_like_everything_else() -> None:
    document = b'{"a": {"x": "\xb4", "y": "\\ud800"}, "a": {"z": 1180591620717411303424}}'

    merged = codec.merge_repeated(document)

    assert merged == {"a": {"x": "\ufffd", "y": "\ufffd", "z": float(2**70)}}
