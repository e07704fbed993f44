"""Whether an applied configuration fits the type it claims to be.

Apply works on what the client sent, before decoding, since an absent field and an empty one mean
different things. So this check finds what decoding would: undeclared fields and wrong types, and
also items that cannot be distinguished. Texts are Kubernetes'.
"""

from collections.abc import Iterator
from typing import Any

from sully.machinery.patch.errors import MAX_DEPTH
from sully.machinery.patch.gotext import plain, syntax, type_name
from sully.machinery.patch.ownership.fieldset import path_text
from sully.machinery.patch.shapes import (
    DEDUCED,
    ITEMS,
    MAP,
    SCALAR,
    SET,
    STRUCT,
    ElementError,
    Shape,
    element,
    shape_of,
)
from sully.machinery.schema import ObjectType

Problem = tuple[str, str]  # path as printed, what is wrong there
_NUMBERS = frozenset(("int32", "int64", "number"))
_ANY_SCALAR = frozenset(("Quantity", "Time", "MicroTime"))
_ANYTHING = frozenset(("object", "IntOrString"))


class TypedError(ValueError):
    """An object that does not fit its type."""


def check(obj: Any, schema: ObjectType) -> None:
    """Raise TypedError with everything that does not fit."""
    shape = shape_of(schema)
    if _fits(obj, shape, 0):
        return
    problems = list(_check(obj, shape, "", 0))
    if not problems:
        return
    texts = [f"{path}: {what}" if path else what for path, what in problems]
    raise TypedError(texts[0] if len(texts) == 1 else "\n  ".join(["errors:", *texts]))


def _fits(value: Any, shape: Shape, depth: int) -> bool:
    """Report whether it is plain that nothing is wrong: most often so, and much quicker to see."""
    if depth > MAX_DEPTH:
        return False
    if value is None or shape.kind == DEDUCED:
        return True
    if shape.kind == SCALAR:
        return not _scalar_problem(value, shape.scalar)
    if shape.kind in (STRUCT, MAP):
        return isinstance(value, dict) and _all_fit(value, shape, depth + 1)
    if not isinstance(value, list) or not all(
        _fits(item, shape.inner, depth + 1) for item in value
    ):
        return False
    return shape.kind not in (SET, ITEMS) or _differ(value, shape)


def _all_fit(value: dict[str, Any], shape: Shape, depth: int) -> bool:
    for name, field_value in value.items():
        inner = shape.below(name)
        if inner is None or not _fits(field_value, inner, depth):
            return False
    return True


def _differ(items: list[Any], shape: Shape) -> bool:
    """Report whether each item of a list has a name of its own."""
    try:
        return len({element(shape, item) for item in items}) == len(items)
    except ElementError:
        return False


def _check(value: Any, shape: Shape, at: str, depth: int) -> Iterator[Problem]:
    if depth > MAX_DEPTH:
        yield at, f"nests deeper than {MAX_DEPTH} levels"
    elif value is None or shape.kind == DEDUCED:
        return
    elif shape.kind == SCALAR:
        what = _scalar_problem(value, shape.scalar)
        if what:
            yield at, what
    elif shape.kind in (STRUCT, MAP):
        if isinstance(value, dict):
            yield from _check_fields(value, shape, at, depth)
        else:
            yield at, f"expected map, got &{{{plain(value)}}}"
    elif isinstance(value, list):
        yield from _check_items(value, shape, at, depth)
    else:
        yield at, f"expected list, got &{{{plain(value)}}}"


def _check_fields(value: dict[str, Any], shape: Shape, at: str, depth: int) -> Iterator[Problem]:
    for name, field_value in value.items():
        inner = shape.below(name)
        if inner is None:
            yield f"{at}.{name}", "field not declared in schema"
            return
        yield from _check(field_value, inner, f"{at}.{name}", depth + 1)


def _check_items(value: list[Any], shape: Shape, at: str, depth: int) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        here = f"[{index}]"
        if shape.kind in (SET, ITEMS):
            try:
                name = element(shape, item)
            except ElementError as error:
                yield at, f"element {index}: {error}"
                return
            here = path_text((name,))
            if name in seen:
                yield at, f"duplicate entries for key {here}"
            seen.add(name)
        yield from _check(item, shape.inner, at + here, depth + 1)


def _scalar_problem(value: Any, scalar: str) -> str:
    if scalar in _ANYTHING:
        return ""
    if scalar == "bool":
        return "" if isinstance(value, bool) else f"expected boolean, got &{{{plain(value)}}}"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar in _NUMBERS:
        return "" if number else f"expected numeric (int or float), got {type_name(value)}"
    if scalar in _ANY_SCALAR:
        flat = number or isinstance(value, str | bool)
        return "" if flat else f"expected any scalar, got &{{{plain(value)}}}"
    if isinstance(value, str):
        return ""
    return f"expected string, got &value.valueUnstructured{{Value:{syntax(value)}}}"
