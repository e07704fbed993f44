"""Paths and field errors, as clients read them."""

import pytest

from sully.machinery.fields import FieldError, Path

SPEC = Path("spec")
PATHS = {
    "nowhere": (Path(), "<nil>"),
    "a child of nowhere": (Path().child("a"), "a"),
    "children": (SPEC.child("a", "b"), "spec.a.b"),
    "an entry of a list": (SPEC.child("a").index(2).child("b"), "spec.a[2].b"),
    "an entry of a map": (SPEC.child("labels").key("x/y"), "spec.labels[x/y]"),
}


@pytest.mark.parametrize(("path", "text"), PATHS.values(), ids=PATHS.keys())
def test_paths(path: Path, text: str) -> None:
    assert str(path) == text


ERRORS = {
    "required": (SPEC.required(), "FieldValueRequired", "spec: Required value"),
    "required, and why": (SPEC.required("x"), "FieldValueRequired", "spec: Required value: x"),
    "invalid text": (
        SPEC.invalid('a"b', "no"),
        "FieldValueInvalid",
        'spec: Invalid value: "a\\"b": no',
    ),
    "invalid number": (SPEC.invalid(5, "no"), "FieldValueInvalid", "spec: Invalid value: 5: no"),
    "invalid bool": (
        SPEC.invalid(True, "no"),
        "FieldValueInvalid",
        "spec: Invalid value: true: no",
    ),
    "invalid nothing": (
        SPEC.invalid(None, "no"),
        "FieldValueInvalid",
        "spec: Invalid value: null: no",
    ),
    "invalid object": (
        SPEC.invalid({"a": ["<"]}, "no"),
        "FieldValueInvalid",
        'spec: Invalid value: {"a":["\\u003c"]}: no',
    ),
    "wrong type": (
        SPEC.type_invalid(1, "no"),
        "FieldValueTypeInvalid",
        "spec: Invalid value: 1: no",
    ),
    "not supported": (
        SPEC.not_supported("x", ("b", "a")),
        "FieldValueNotSupported",
        'spec: Unsupported value: "x": supported values: "b", "a"',
    ),
    "nothing is supported": (
        SPEC.not_supported("x", ()),
        "FieldValueNotSupported",
        'spec: Unsupported value: "x"',
    ),
    "duplicate": (SPEC.duplicate("x"), "FieldValueDuplicate", 'spec: Duplicate value: "x"'),
    "forbidden": (SPEC.forbidden("no"), "FieldValueForbidden", "spec: Forbidden: no"),
    "too long": (
        SPEC.too_long(3),
        "FieldValueTooLong",
        "spec: Too long: may not be more than 3 bytes",
    ),
    "too many": (
        SPEC.too_many(9, 8),
        "FieldValueTooMany",
        "spec: Too many: 9: must have at most 8 items",
    ),
    "more than one": (
        SPEC.too_many(2, 1),
        "FieldValueTooMany",
        "spec: Too many: 2: must have at most 1 item",
    ),
    "not found": (SPEC.not_found("x"), "FieldValueNotFound", 'spec: Not found: "x"'),
}


@pytest.mark.parametrize(("error", "reason", "text"), ERRORS.values(), ids=ERRORS.keys())
def test_errors(error: FieldError, reason: str, text: str) -> None:
    assert (error.reason, str(error)) == (reason, text)
    assert str(error) == f"{error.field}: {error.body}"
