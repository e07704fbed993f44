"""IntOrString values that are a count or a percentage: `3` or `25%`."""

import re

from sully.api.core.checks import NOT_NEGATIVE, Errors
from sully.machinery.fields import Path
from sully.machinery.formats.integers import parse_int

_PERCENT = re.compile(r"[0-9]+%")
_NOT_A_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%'"
    " (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def percent(value: int | str) -> int | None:
    """Return the number of a percentage, None if the value is not one."""
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return parse_int(value[:-1])
    return None


def count_or_percent(value: int | str, at: Path) -> Errors:
    """Check that the value is one or the other."""
    if isinstance(value, int):
        if value < 0:
            yield at.invalid(value, NOT_NEGATIVE)
    elif percent(value) is None:
        yield at.invalid(value, _NOT_A_PERCENT)


def at_most_all(value: int | str, at: Path) -> Errors:
    """Check that a percentage is at most 100."""
    share = percent(value)
    if share is not None and share > 100:
        yield at.invalid(value, "must not be greater than 100%")


def is_zero(value: int | str) -> bool:
    """Report whether the value is a zero of either form."""
    return value == 0 if isinstance(value, int) else percent(value) == 0
