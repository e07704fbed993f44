"""Errors that the schema of a kind declares, and where they stand among all errors.

Kubernetes checks an object twice: by hand, then by walking through its fields as the schema
declares them. A client sees what is wrong in that order.
"""

import re
from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import asdict

from sully.machinery.fields import FieldError
from sully.machinery.schema import ListOf, MapOf, ObjectType, Type

_STEP = re.compile(r"\[(?P<key>[^\]]*)\]|(?P<name>[^.\[]+)")
_POSITION = re.compile(r"\[\d+\]")

Place = tuple[int | str, ...]


class Declared(FieldError, frozen=True):  # noqa: N818 - a value, never raised
    """An error that the schema declares."""


def declared(errors: Iterable[FieldError]) -> Iterator[FieldError]:
    """Yield errors as those that the schema declares."""
    for error in errors:
        yield Declared(**asdict(error))


def in_order(
    errors: Iterable[FieldError],
    schema: ObjectType,
    also_declared: Collection[str] = (),
) -> list[FieldError]:
    """Return what was found by hand, then what the schema declares, in the order of its fields.

    An error is one of the second if it is marked, or if `also_declared` has its field, without
    the positions in lists.
    """
    by_hand: list[FieldError] = []
    declared: list[FieldError] = []
    for error in errors:
        if isinstance(error, Declared):
            declared.append(FieldError(**asdict(error)))
        else:
            also = _POSITION.sub("", error.field) in also_declared
            (declared if also else by_hand).append(error)
    return by_hand + sorted(declared, key=lambda error: _place(error, schema))


def _place(error: FieldError, schema: ObjectType) -> Place:
    """Return when a walk through the fields finds an error; that of an object before its fields."""
    place: list[int | str] = []
    here: Type | None = schema
    for step in _STEP.finditer(error.field):
        if isinstance(here, ObjectType):
            name = step["name"]
            place.append(here.order.index(name) if name in here.order else len(here.order))
            here = here.fields[name].type if name in here.fields else None
        elif isinstance(here, ListOf):
            place.append(int(step["key"]))
            here = here.item
        elif isinstance(here, MapOf):
            place.append(step["key"])
            here = here.value
    if error.reason == "FieldValueDuplicate" and place and isinstance(place[-1], int):
        # A list is searched for duplicates before its items are checked.
        place.insert(-1, -1)
    return tuple(place)
