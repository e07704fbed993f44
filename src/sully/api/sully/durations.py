"""Durations in fields of our kinds: text as Go writes it, such as `1h30m`."""

from datetime import timedelta

from sully.api.core.checks import Errors
from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.temporal import parse_duration
from sully.machinery.fields import Path

LONGEST = timedelta(days=365)
PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"


def duration(text: str) -> timedelta:
    """Return a duration; an empty or invalid text is none at all.

    Another server checks only the pattern, so readers must not fail.
    """
    try:
        nanos = parse_duration(text).nanos if text else 0
    except EvaluationError:
        return timedelta(0)
    return min(timedelta(microseconds=max(0, nanos) // 1000), LONGEST)


def validate_duration(text: str, at: Path, *, required: bool = False) -> Errors:
    """Check a duration between nothing, or more if it is required, and a year."""
    if not text:
        if required:
            yield at.required()
        return
    try:
        nanos = parse_duration(text).nanos
    except EvaluationError:
        yield at.invalid(text, "must be a duration, for example 15s or 1h30m")
        return
    if nanos < 0 or nanos > LONGEST.total_seconds() * 10**9:
        yield at.invalid(text, "must be between 0s and 8760h")
    elif required and not nanos:
        yield at.invalid(text, "must be greater than 0s")
