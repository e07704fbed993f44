"""How Go would print it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.machinery.serialization.gotext import compact_json, quote, show

QUOTED = {
    "plain": ("abc", '"abc"'),
    "quotes and backslashes": ('a"b\\c', '"a\\"b\\\\c"'),
    "line breaks": ("a\n\t\r", '"a\\n\\t\\r"'),
    "bell, page and vertical tab": ("\a\b\f\v", '"\\a\\b\\f\\v"'),
    "control character": ("\x00\x1f\x7f", '"\\x00\\x1f\\x7f"'),
    "printable beyond ASCII": ("ü€😀", '"ü€😀"'),
    "not printable": ("\u200b\ufeff", '"\\u200b\\ufeff"'),
    "not printable and far away": ("\U000e0001", '"\\U000e0001"'),
}


@pytest.mark.parametrize(("text", "want"), QUOTED.values(), ids=QUOTED.keys())
def test_quote(text: str, want: str) -> None:
    assert quote(text) == want


SHOWN: dict[str, tuple[Any, str]] = {
    "text": ("a", '"a"'),
    "nothing": (None, "null"),
    "true": (True, "true"),
    "number": (1, "1"),
    "fraction": (0.5, "0.5"),
    "list": (["a", 1], '["a",1]'),
    "object": ({"a": {"b": None}}, '{"a":{"b":null}}'),
    "characters of HTML": (["<a&b>"], '["\\u003ca\\u0026b\\u003e"]'),
}


@pytest.mark.parametrize(("value", "want"), SHOWN.values(), ids=SHOWN.keys())
def test_show(value: Any, want: str) -> None:
    assert show(value) == want


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_compact_json_means_the_same(value: dict[str, Any]) -> None:
    assert json.loads(compact_json(value)) == value


@given(st.text(alphabet=st.characters(max_codepoint=0x7E, min_codepoint=0x20)))
def test_quoted_ascii_is_json(text: str) -> None:
    assert json.loads(quote(text)) == text
