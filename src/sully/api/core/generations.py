"""How `metadata.generation` counts: one more for every change of what was asked for.

The value a client sends is never looked at. Deletion counts too, but that is the server's part.
"""

from typing import Any

from sully.api.core.checks import same

Obj = dict[str, Any]


def start(obj: Obj) -> None:
    """Begin to count, on create."""
    obj["metadata"]["generation"] = 1


def follow(obj: Obj, old: Obj, *, bump: bool) -> None:
    """Carry the count over, and raise it by one where the change counts."""
    count = int(old["metadata"].get("generation", 0)) + (1 if bump else 0)
    if count:
        obj["metadata"]["generation"] = count
    else:
        obj["metadata"].pop("generation", None)


def spec_changed(obj: Obj, old: Obj) -> bool:
    """Report whether the spec differs; defaults were filled in on both sides."""
    return not same(obj.get("spec"), old.get("spec"))
