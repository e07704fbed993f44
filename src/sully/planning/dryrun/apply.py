"""The patch that `kubectl apply` sends for a manifest: its fields, and null for removed ones.

A field that was applied before and is missing now is deleted, and for a rule that may mean every
device instead of one. The object shows what was applied: client-side apply stores the manifest in
an annotation, server-side apply the names of the fields.
"""

from collections.abc import Iterable, Mapping, Sequence
from json import loads
from typing import Any

Obj = dict[str, Any]
Tree = Mapping[str, Any]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_PATCHED = ("apiVersion", "kind", "status")
_METADATA = ("labels", "annotations")
"""The metadata that users set."""


def last_applied(live: Obj) -> Obj | None:
    """Return the manifest in the annotation of client-side apply; None if there is none."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        manifest = loads(text) if text else None
    except (ValueError, RecursionError):
        return None  # It was written by something else.
    return manifest if isinstance(manifest, dict) else None


def apply_patch(body: Obj, live: Obj, before: Obj | None) -> Obj:
    """Return the merge patch that applies a manifest to a live object.

    `before` is the manifest that was applied last, in the version of the new one.
    """
    return _merge(_removed(before, body) if before is not None else _released(live, body), body)


def _merge(nulls: Obj, body: Obj) -> Obj:
    patch = {**nulls, **body}
    for name in nulls.keys() & body.keys():
        if isinstance(nulls[name], dict) and isinstance(body[name], dict):
            patch[name] = _merge(nulls[name], body[name])
    return patch


# -- client-side ----------------------------------------------------------------------------------


def _removed(before: Obj, body: Obj) -> Obj:
    """Return null for the fields that an old manifest has and a new one does not."""
    fields = {
        name: _missing(value, body.get(name))
        for name, value in before.items()
        if name not in (*_NOT_PATCHED, "metadata")
    }
    metadata = {
        # Never as a whole: others write to both.
        name: _missing(before["metadata"].get(name) or {}, body["metadata"].get(name) or {})
        for name in _METADATA
        if isinstance(before.get("metadata"), dict)
    }
    return _without_empty({**fields, "metadata": _without_empty(metadata)})


def _missing(old: Any, new: Any) -> Any:
    """Return null for what is missing, at any depth; an empty mapping if nothing is."""
    if new is None:
        return None
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return {}
    return _without_empty({name: _missing(value, new.get(name)) for name, value in old.items()})


def _without_empty(nulls: Obj) -> Obj:
    return {name: value for name, value in nulls.items() if value != {}}


# -- server-side ----------------------------------------------------------------------------------


def _released(live: Obj, body: Obj) -> Obj:
    """Return null for applied fields that the manifest omits and no other manager owns."""
    entries = live["metadata"].get("managedFields") or ()
    managers = [entry for entry in entries if _owns_fields(entry)]
    appliers = [entry for entry in managers if entry.get("operation") == "Apply"]
    own = next((entry for entry in appliers if entry.get("manager") == "kubectl"), None)
    if own is None and len(appliers) == 1:
        (own,) = appliers
    if own is None:
        return {}
    others = [entry["fieldsV1"] for entry in managers if entry is not own]
    return _unowned(own["fieldsV1"], others, body)


def _owns_fields(entry: Any) -> bool:
    """Report whether a manager owns fields of the object itself, not of its status."""
    plain = isinstance(entry, Mapping) and isinstance(entry.get("fieldsV1"), Mapping)
    return plain and not entry.get("subresource")


def _unowned(own: Tree, others: Sequence[Tree], body: Any) -> Obj:
    nulls: Obj = {}
    for field, subfields in own.items():
        name = field.removeprefix("f:")
        if name == field:
            continue  # An item of a list: lists are applied as a whole.
        owned = [tree[field] for tree in others if field in tree]
        value = body.get(name) if isinstance(body, dict) else None
        if value is None and not owned:
            nulls[name] = None
        elif _has_fields(subfields):
            nulls[name] = _unowned(subfields, [tree for tree in owned if tree], value)
    return _without_empty(nulls)


def _has_fields(tree: Iterable[str]) -> bool:
    return any(field.startswith("f:") for field in tree)
