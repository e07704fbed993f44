"""Conditions, the same in every kind that has them."""

import re
from collections.abc import Sequence

from sully.api.resource.checks import Errors
from sully.api.resource.validation.names import validate_label_key
from sully.machinery.fields import Path
from sully.machinery.meta import Condition

CONDITIONS_MAX = 8
REASON_MAX = 1024
MESSAGE_MAX = 32 * 1024
_STATUSES = ("False", "True", "Unknown")
_REASON = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of"
    " alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
    " (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB',"
    f" regex used for validation is '{_REASON}')"
)


def limit_conditions(
    conditions: Sequence[Condition], at: Path, limit: int = CONDITIONS_MAX
) -> Errors:
    """Check how many conditions there are."""
    if len(conditions) > limit:
        yield at.too_many(len(conditions), limit)


def validate_conditions(conditions: Sequence[Condition], at: Path) -> Errors:
    """Check conditions one by one, and that types differ."""
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        if condition.type in seen:
            yield at.index(position).duplicate(condition.type)
        seen.add(condition.type)
        yield from validate_condition(condition, at.index(position))


def validate_condition(condition: Condition, at: Path) -> Errors:
    """Yield everything wrong with one condition."""
    if not condition.type:
        yield at.child("type").required("is required")
    else:
        yield from validate_label_key(condition.type, at.child("type"))
    if not condition.status:
        yield at.child("status").required()
    elif condition.status not in _STATUSES:
        yield at.child("status").not_supported(condition.status, _STATUSES)
    if condition.observed_generation < 0:
        yield at.child("observedGeneration").invalid(
            condition.observed_generation, "must be greater than or equal to zero"
        )
    if condition.last_transition_time is None:
        yield at.child("lastTransitionTime").required()
    yield from _reason(condition.reason, at.child("reason"))
    if len(condition.message.encode()) > MESSAGE_MAX:
        yield at.child("message").too_long(MESSAGE_MAX)


def _reason(reason: str, at: Path) -> Errors:
    if not reason:
        yield at.required()
        return
    if not re.fullmatch(_REASON, reason):
        yield at.invalid(reason, _REASON_TEXT)
    if len(reason.encode()) > REASON_MAX:
        yield at.too_long(REASON_MAX)
