"""Numbers as a count or as a percentage of something."""

from __future__ import annotations

from sully.api.core.fractions import percent


def scaled(value: int | str, total: int, *, up: bool) -> int:
    """Return how many a count or a percentage of `total` is; parts round up or down.

    What is neither counts as nothing: objects stored before validation knew better may have it.
    """
    if isinstance(value, int):
        return value
    share = percent(value) or 0
    return -(-share * total // 100) if up else share * total // 100
