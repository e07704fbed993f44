"""Which taints of a cluster came from policies, as an annotation keeps it.

The controller writes the annotation together with the taints; admission reads it (taints.py).
"""

from collections.abc import Iterable

OWNED = "sully.dev/policy-taints"
"""The annotation of a cluster that lists the taints which policies set."""

Mark = tuple[str, str, str]
"""Key, value and effect of a taint: what makes two taints the same."""


def write_marks(marks: Iterable[Mark]) -> str:
    """Write taints down: `key=value:effect`, in order, with commas between."""
    return ",".join(sorted(_text(*mark) for mark in marks))


def _text(key: str, value: str, effect: str) -> str:
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def read_marks(text: str) -> frozenset[Mark]:
    """Read what was written; of what somebody wrote by hand, what cannot be read is nobody's."""
    found = set()
    for each in filter(None, text.split(",")):
        name, colon, effect = each.rpartition(":")
        key, _, value = name.partition("=")
        if colon and key:
            found.add((key, value, effect))
    return frozenset(found)
