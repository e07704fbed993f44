"""What `kubectl apply` would send for a manifest: its fields, and null for those that were removed.

A field that was applied before and is missing now is deleted, and for a rule that may mean every
device instead of one. The object has what was applied: client-side apply stores the manifest in an
annotation, server-side apply the names of the fields.
"""

from collections.abc import Iterable, Mapping, Sequence
from json import loads
from typing import Any

Obj = dict[str, Any]
Tree = Mapping[str, Any]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ITSELF = ("apiVersion", "kind", "status")
_IN_METADATA = ("labels", "annotations")
"""What people write there; the rest names the object, or is the server's."""


def last_applied(live: Obj) -> Obj | None:
    """Return the manifest that client-side apply has kept; None if it did not apply this."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        found = loads(text) if text else None
    except (ValueError, RecursionError):
        return None  # Somebody wrote something else there.
    return found if isinstance(found, dict) else None


def as_applied(body: Obj, live: Obj, before: Obj | None) -> Obj:
    """Return the merge patch that makes a live object what a manifest says.

    `before` is the manifest that was applied last, in the version of the new one.
    """
    return _joined(_gone(before, body) if before is not None else _released(live, body), body)


def _joined(nulls: Obj, body: Obj) -> Obj:
    found = {**nulls, **body}
    for name in nulls.keys() & body.keys():
        if isinstance(nulls[name], dict) and isinstance(body[name], dict):
            found[name] = _joined(nulls[name], body[name])
    return found


# -- client-side ----------------------------------------------------------------------------------


def _gone(before: Obj, body: Obj) -> Obj:
    """Return null for all that an old manifest says and a new one does not."""
    found = {
        name: _missing(value, body.get(name))
        for name, value in before.items()
        if name not in (*_ITSELF, "metadata")
    }
    metadata = {
        # Never as a whole: others write into both.
        name: _missing(before["metadata"].get(name) or {}, body["metadata"].get(name) or {})
        for name in _IN_METADATA
        if isinstance(before.get("metadata"), dict)
    }
    return _filled({**found, "metadata": _filled(metadata)})


def _missing(old: Any, new: Any) -> Any:
    """Return null, or where in two mappings something is missing; nothing if nothing is."""
    if new is None:
        return None
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return {}
    return _filled({name: _missing(value, new.get(name)) for name, value in old.items()})


def _filled(nulls: Obj) -> Obj:
    return {name: value for name, value in nulls.items() if value != {}}


# -- server-side ----------------------------------------------------------------------------------


def _released(live: Obj, body: Obj) -> Obj:
    """Return null for what whoever applies has applied and says no more, and nobody else holds."""
    entries = [each for each in live["metadata"].get("managedFields") or () if _is_whole(each)]
    appliers = [each for each in entries if each.get("operation") == "Apply"]
    mine = next((each for each in appliers if each.get("manager") == "kubectl"), None)
    if mine is None and len(appliers) == 1:
        (mine,) = appliers
    if mine is None:
        return {}
    others = [each["fieldsV1"] for each in entries if each is not mine]
    return _unheld(mine["fieldsV1"], others, body)


def _is_whole(entry: Any) -> bool:
    """Report whether somebody has written the object itself, not its status."""
    plain = isinstance(entry, Mapping) and isinstance(entry.get("fieldsV1"), Mapping)
    return plain and not entry.get("subresource")


def _unheld(mine: Tree, others: Sequence[Tree], body: Any) -> Obj:
    found: Obj = {}
    for field, below in mine.items():
        name = field.removeprefix("f:")
        if name == field:
            continue  # An item of a list: lists are said as a whole.
        theirs = [each[field] for each in others if field in each]
        said = body.get(name) if isinstance(body, dict) else None
        if said is None and not theirs:
            found[name] = None
        elif _has_fields(below):
            found[name] = _unheld(below, [each for each in theirs if each], said)
    return _filled(found)


def _has_fields(tree: Iterable[str]) -> bool:
    return any(each.startswith("f:") for each in tree)
