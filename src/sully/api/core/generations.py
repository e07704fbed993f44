"""`metadata.generation`: one more for every change of the desired state.

The value a client sends is ignored. Deletion counts too; the server does that.
"""

from typing import Any

from sully.api.core.checks import same

Obj = dict[str, Any]


def start(obj: Obj) -> None:
    """Set the first generation, on create."""
    obj["metadata"]["generation"] = 1


def follow(obj: Obj, old: Obj, *, bump: bool) -> None:
    """Keep the stored generation, incremented by one with `bump`."""
    count = int(old["metadata"].get("generation", 0)) + (1 if bump else 0)
    if count:
        obj["metadata"]["generation"] = count
    else:
        obj["metadata"].pop("generation", None)


def keep_spec(obj: Obj, old: Obj) -> None:
    """Prepare a write to the status endpoint: only the status changes."""
    obj["spec"] = old["spec"]
    follow(obj, old, bump=False)


def spec_changed(obj: Obj, old: Obj) -> bool:
    """Report whether the spec differs; defaults were filled in on both sides."""
    return not same(obj.get("spec"), old.get("spec"))
