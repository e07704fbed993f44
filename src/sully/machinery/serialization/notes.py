"""JSON that stands as a text in objects, such as the state of a controller in an annotation.

Other clients may write those fields too, so the text may be anything. A reader continues
without what cannot be read: one object must not stop the work on all others.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypeVar

import msgspec

T = TypeVar("T")


def read_note(text: str, type_: type[T]) -> T | None:
    """Return the value of a text; None if the text is not JSON of this type."""
    try:
        return msgspec.json.decode(text, type=type_)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def have_zones(times: Iterable[datetime | None]) -> bool:
    """Report whether times can be compared with others: JSON may have times without a zone."""
    return all(time is None or time.tzinfo is not None for time in times)
