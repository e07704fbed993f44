"""Label and field selectors: what they mean and how they are refused."""

import contextlib
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.machinery.selectors import fieldselectors, labels
from sully.machinery.selectors.labels import SelectorError

OBJECTS = {
    "a": {"tier": "gold", "n": "1"},
    "b": {"tier": "silver", "n": "2"},
    "c": {"n": "3"},
    "d": {"tier": ""},
    "e": {"n": "many"},
}

MEANING = {
    "": "abcde",
    "  ": "abcde",
    "tier=gold": "a",
    "tier==gold": "a",
    "tier = gold": "a",
    "tier!=gold": "bcde",
    "tier in (gold,silver)": "ab",
    "tier in ( gold , silver )": "ab",
    "tier notin (gold)": "bcde",
    "tier notin(gold)": "bcde",
    "tier": "abd",
    "!tier": "ce",
    "! tier": "ce",
    "tier=": "d",
    "tier in (,gold)": "ad",
    "tier in (gold,)": "ad",
    "tier in (gold,,silver)": "abd",
    "tier=gold,n=1": "a",
    "tier,n>1": "b",
    "n>1": "bc",
    "n<3": "ab",
    "n<0": "",
    "in=gold": "",
    "!in": "abcde",
    "tier in (in,notin)": "",
}


@pytest.mark.parametrize(("text", "want"), MEANING.items(), ids=MEANING.keys())
def test_a_selector_selects(text: str, want: str) -> None:
    selector = labels.parse(text)

    assert "".join(name for name, result in OBJECTS.items() if selector.matches(result)) == want


BAD_KEY = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start"
    " and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex"
    " used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS"
    " subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
BAD_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
REQUIREMENT = "unable to parse requirement: "
REFUSED = {
    "tier=gold,": "found '', expected: identifier after ','",
    "a,,b": "found ',', expected: identifier after ','",
    "=x": "found '=', expected: !, identifier, or 'end of string'",
    ",": "found ',', expected: !, identifier, or 'end of string'",
    "tier in gold": REQUIREMENT + "found 'gold' expected: '('",
    "tier===gold": REQUIREMENT + "found '=', expected: identifier",
    "tier=no good": "found 'good', expected: ',' or 'end of string'",
    "!tier=gold": "found '=', expected: ',' or 'end of string'",
    "!": REQUIREMENT + "found '', expected: identifier",
    "!!a": REQUIREMENT + "found '!', expected: identifier",
    "a b": REQUIREMENT + "found 'b', expected: in, notin, =, ==, !=, gt, lt",
    "a in (b c)": REQUIREMENT + "found 'c', expected: ',' or ')'",
    "a in (b": REQUIREMENT + "found '', expected: ',' or ')'",
    "a in (b,": REQUIREMENT + "found '', expected: ',', or identifier",
    "a in (=": REQUIREMENT + "found '=', expected: ',', ')' or identifier",
    "a/b/c=d": REQUIREMENT + '<nil>: Invalid value: "a/b/c": ' + BAD_KEY,
    "a=-b": REQUIREMENT + 'values[0][a]: Invalid value: "-b": ' + BAD_VALUE,
    "a>b": REQUIREMENT
    + "values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
    "a>99999999999999999999": REQUIREMENT
    + "values[0]: Invalid value: \"99999999999999999999\": for 'Gt', 'Lt' operators, the value"
    " must be an integer",
}


@pytest.mark.parametrize(("text", "want"), REFUSED.items(), ids=REFUSED.keys())
def test_a_malformed_selector_is_refused(text: str, want: str) -> None:
    with pytest.raises(SelectorError) as caught:
        labels.parse(text)

    assert str(caught.value) == want


@pytest.mark.parametrize(
    ("given_text", "want"),
    [
        ("b!=2,a==1", "a==1,b!=2"),
        ("z in (y, x),!k,j", "j,!k,z in (x,y)"),
        ("n>1,n<5", "n>1,n<5"),
    ],
)
def test_a_selector_prints_in_order_of_keys(given_text: str, want: str) -> None:
    assert str(labels.parse(given_text)) == want


@given(st.lists(st.sampled_from(["a", "!b", "c=1", "c!=2", "d in (x,y)", "e>3"]), max_size=4))
def test_printing_and_reading_again_changes_nothing(parts: list[str]) -> None:
    selector = labels.parse(",".join(parts))

    assert labels.parse(str(selector)) == selector


@given(st.text(alphabet="ab=!(),<> in", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(SelectorError):
        selector = labels.parse(text)

        assert labels.parse(str(selector)) == selector


@dataclass(frozen=True)
class ObjectCase:
    selector: dict[str, Any] | None
    want: str


OBJECT_CASES = {
    "absent selects nothing": ObjectCase(None, ""),
    "empty selects everything": ObjectCase({}, "abcde"),
    "labels": ObjectCase({"matchLabels": {"tier": "gold"}}, "a"),
    "exists": ObjectCase({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, "abd"),
    "absent label": ObjectCase(
        {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, "ce"
    ),
    "in": ObjectCase(
        {"matchExpressions": [{"key": "n", "operator": "In", "values": ["1", "2"]}]}, "ab"
    ),
    "both": ObjectCase(
        {
            "matchLabels": {"tier": "silver"},
            "matchExpressions": [{"key": "n", "operator": "NotIn", "values": ["1"]}],
        },
        "b",
    ),
}


@pytest.mark.parametrize("case", OBJECT_CASES.values(), ids=OBJECT_CASES.keys())
def test_a_selector_object_selects(case: ObjectCase) -> None:
    selector = labels.from_object(case.selector)

    assert (
        "".join(name for name, result in OBJECTS.items() if selector.matches(result)) == case.want
    )


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        (
            {"key": "a", "operator": "Near"},
            '"Near" is not a valid label selector operator',
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["x"]},
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_a_malformed_selector_object_is_refused(expression: dict[str, Any], want: str) -> None:
    with pytest.raises(SelectorError) as caught:
        labels.from_object({"matchExpressions": [expression]})

    assert str(caught.value) == want


FIELDS = {"metadata.name": "x", "spec.nodeName": "a,b=c"}
FIELD_MEANING = {
    "": True,
    ",": True,
    "metadata.name=x": True,
    "metadata.name==x": True,
    "metadata.name!=x": False,
    "metadata.name=y": False,
    "metadata.name=x,metadata.name!=y": True,
    "spec.nodeName=a\\,b\\=c": True,
    "status.phase=": True,
    "status.phase!=": False,
}


@pytest.mark.parametrize(("text", "want"), FIELD_MEANING.items(), ids=FIELD_MEANING.keys())
def test_a_field_selector_selects(text: str, want: bool) -> None:
    assert fieldselectors.parse(text).matches(FIELDS) is want


FIELD_REFUSED = {
    "a": "invalid selector: 'a'; can't understand 'a'",
    "b=1,a": "invalid selector: 'b=1,a'; can't understand 'a'",
    "a=b=c": "invalid field selector: unescaped character in value: 61",
    "a=b\\x": "invalid field selector: invalid escape sequence: \\x",
    "a=b\\": "invalid field selector: invalid escape sequence: \\",
}


@pytest.mark.parametrize(("text", "want"), FIELD_REFUSED.items(), ids=FIELD_REFUSED.keys())
def test_a_malformed_field_selector_is_refused(text: str, want: str) -> None:
    with pytest.raises(SelectorError) as caught:
        fieldselectors.parse(text)

    assert str(caught.value) == want


@given(st.text(alphabet="ab\\,=", max_size=8))
def test_an_escaped_value_comes_back(value: str) -> None:
    selector = fieldselectors.parse(f"spec.x={fieldselectors.escape(value)}")

    assert selector.exact("spec.x") == value
    assert fieldselectors.parse(str(selector)) == selector


def test_only_an_equality_fixes_a_field() -> None:
    for name, negated in product(("metadata.name", "spec.x"), ("=", "!=")):
        selector = fieldselectors.parse(f"{name}{negated}v")

        assert (selector.exact("metadata.name") == "v") == (
            name == "metadata.name" and negated == "="
        )
