"""What the page sends with each change: types that are checked before anything is done."""

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec

from sully.dashboard.http import HttpError


class PlanBody(TypedDict, total=False):
    """A change to plan: an action, on what, and how."""

    action: str
    devices: list[str]
    rules: list[str]
    clusters: list[str]
    flags: dict[str, str | int | bool | None]
    key: str | None
    value: str | None
    effect: str | None
    remove: bool | None


class ApplyBody(TypedDict, total=False):
    """A plan to execute, and the number that was typed to confirm it."""

    id: str
    confirm: str | int | None


class OperationBody(TypedDict, total=False):
    """What to do with an operation."""

    id: str
    verb: str
    reason: str | None


class PauseBody(TypedDict, total=False):
    """Rules whose evictions are paused or resumed."""

    verb: str
    rules: list[str]
    reason: str | None


def checked(body: Mapping[str, Any], type_: Any) -> Mapping[str, Any]:
    """Return what is known of a body; raise HttpError if something has another type."""
    try:
        known: Mapping[str, Any] = msgspec.convert(body, type_)
    except msgspec.ValidationError as error:
        raise HttpError(400, f"the body is not valid: {error}") from error
    return known
