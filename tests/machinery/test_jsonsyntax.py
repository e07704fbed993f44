"""What is wrong with a text that is not JSON, in the words of Go."""

import pytest

from sully.machinery.serialization.jsonsyntax import syntax_problem

CASES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "unexpected end of JSON input"),
    "spaces": (b" \n", "unexpected end of JSON input"),
    "an open object": (b"{", "unexpected end of JSON input"),
    "an open string": (b'{"a', "unexpected end of JSON input"),
    "part of a literal": (b"nul", "unexpected end of JSON input"),
    "byte order mark": (
        b"\xef\xbb\xbf{}",
        "invalid character '\u00ef' looking for beginning of value",
    ),
    "single quotes": (
        b"{'a':1}",
        "invalid character '\\'' looking for beginning of object key string",
    ),
    "comma at the end of an object": (
        b'{"a":1,}',
        "invalid character '}' looking for beginning of object key string",
    ),
    "comma at the end of a list": (
        b"[1,]",
        "invalid character ']' looking for beginning of value",
    ),
    "no comma in a list": (b"[1 2]", "invalid character '2' after array element"),
    "no comma in an object": (b'{"a":1 2}', "invalid character '2' after object key:value pair"),
    "no colon": (b'{"a" 1}', "invalid character '1' after object key"),
    "a second value": (b"{} {}", "invalid character '{' after top-level value"),
    "escape": (b'"\\q"', "invalid character 'q' in string escape code"),
    "hexadecimal escape": (
        b'"\\u12g4"',
        "invalid character 'g' in \\u hexadecimal character escape",
    ),
    "line break in a string": (b'"a\nb"', "invalid character '\\n' in string literal"),
    "literal": (b"[tru]", "invalid character ']' in literal true (expecting 'e')"),
    "minus": (b"-x", "invalid character 'x' in numeric literal"),
    "fraction": (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
    "exponent": (b"1ex", "invalid character 'x' in exponent of numeric literal"),
    "leading zero": (b"[01]", "invalid character '1' after array element"),
    "too deep": (b"[" * 10_001, "exceeded max depth"),
    "JSON": (b'{"a":[{},{"b":[]},-1.5e+3,"\\u00e9\\n",true,null]} ', ""),
}


@pytest.mark.parametrize(("body", "want"), CASES.values(), ids=CASES.keys())
def test_problem(body: bytes, want: str) -> None:
    assert syntax_problem(body) == want
