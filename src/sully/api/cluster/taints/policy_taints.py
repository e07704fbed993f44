"""Which taints of a cluster policies set, as recorded in an annotation.

The controller writes the annotation together with the taints; admission reads it (times.py). What
policies also record is policy_states.py.
"""

from collections.abc import Iterable

OWNED = "sully.dev/policy-taints"
"""The annotation of a cluster that lists the taints which policies set."""

TaintId = tuple[str, str, str]
"""Key, value and effect of a taint: what makes two taints the same."""


def write_taint_ids(ids: Iterable[TaintId]) -> str:
    """Write taints as `key=value:effect`, sorted, separated by commas."""
    return ",".join(sorted(_text(*id_) for id_ in ids))


def _text(key: str, value: str, effect: str) -> str:
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def read_taint_ids(text: str) -> frozenset[TaintId]:
    """Read taints; what cannot be read is ignored."""
    ids = set()
    for part in filter(None, text.split(",")):
        name, colon, effect = part.rpartition(":")
        key, _, value = name.partition("=")
        if colon and key:
            ids.add((key, value, effect))
    return frozenset(ids)
