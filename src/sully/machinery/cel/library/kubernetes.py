"""Quantities and versions, the two types that device selectors compare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sully.machinery.cel import types
from sully.machinery.cel.declarations import Library, library
from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.library.standard import Row
from sully.machinery.cel.values import register
from sully.machinery.formats.quantity import Quantity, QuantityError, parse_quantity
from sully.machinery.formats.semver import Semver, SemverError, parse_semver

QUANTITY: Final = types.opaque("kubernetes.Quantity")
SEMVER: Final = types.opaque("kubernetes.Semver")

register(Quantity, QUANTITY)
register(Semver, SEMVER)


def _quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _as_integer(value: Quantity) -> int:
    whole = value.as_int64()
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _plus(value: Quantity, other: Quantity | int) -> Quantity:
    return value + (other if isinstance(other, Quantity) else Quantity.of(other))


def _minus(value: Quantity, other: Quantity | int) -> Quantity:
    return value - (other if isinstance(other, Quantity) else Quantity.of(other))


def _quantities() -> Iterator[Row]:
    name = QUANTITY.name
    yield "string_to_quantity", f"quantity(string) -> {name}", _quantity
    yield "is_quantity_string", "isQuantity(string) -> bool", _is_quantity
    # A function, although Kubernetes documents a method.
    yield "quantity_sign", f"sign({name}) -> int", Quantity.sign
    yield "quantity_is_greater_than", f"{name}:isGreaterThan({name}) -> bool", Quantity.__gt__
    yield "quantity_is_less_than", f"{name}:isLessThan({name}) -> bool", Quantity.__lt__
    yield "quantity_compare_to", f"{name}:compareTo({name}) -> int", Quantity.compare
    yield "quantity_get_float", f"{name}:asApproximateFloat() -> double", Quantity.as_float
    yield "quantity_get_int", f"{name}:asInteger() -> int", _as_integer
    yield "quantity_is_integer", f"{name}:isInteger() -> bool", Quantity.is_integer
    yield "quantity_add", f"{name}:add({name}) -> {name}", _plus
    yield "quantity_add_int", f"{name}:add(int) -> {name}", _plus
    yield "quantity_sub", f"{name}:sub({name}) -> {name}", _minus
    yield "quantity_sub_int", f"{name}:sub(int) -> {name}", _minus


def _semver(text: str, normalize: bool = False) -> Semver:
    try:
        return parse_semver(text, normalize=normalize)
    except SemverError as error:
        raise EvaluationError(str(error)) from None


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse_semver(text, normalize=normalize)
    except SemverError:
        return False
    return True


def _versions() -> Iterator[Row]:
    name = SEMVER.name
    yield "string_to_semver", f"semver(string) -> {name}", _semver
    yield "is_semver_string", "isSemver(string) -> bool", _is_semver
    yield "semver_is_greater_than", f"{name}:isGreaterThan({name}) -> bool", Semver.__gt__
    yield "semver_is_less_than", f"{name}:isLessThan({name}) -> bool", Semver.__lt__
    yield "semver_compare_to", f"{name}:compareTo({name}) -> int", Semver.compare
    yield "semver_major", f"{name}:major() -> int", lambda value: value.major
    yield "semver_minor", f"{name}:minor() -> int", lambda value: value.minor
    yield "semver_patch", f"{name}:patch() -> int", lambda value: value.patch


def _normalized_versions() -> Iterator[Row]:
    yield "string_bool_to_semver", f"semver(string, bool) -> {SEMVER.name}", _semver
    yield "is_semver_string_bool", "isSemver(string, bool) -> bool", _is_semver


def quantities() -> Library:
    return library(_quantities(), {QUANTITY.name: QUANTITY})


def versions() -> Library:
    """Return the library of semantic versions."""
    return library(_versions(), {SEMVER.name: SEMVER})


def normalized_versions() -> Library:
    """Return what reads versions with a `v`, or with parts missing."""
    return library(_normalized_versions())
