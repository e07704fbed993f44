"""JSON Merge Patch (RFC 7396): the patch looks like the object, null removes.

The neighbour strategic.py does the same with lists that merge by key.
"""

from typing import Any

from sully.machinery.patch.errors import MAX_DEPTH, MalformedPatchError, too_deep


def check_merge_patch(patch: Any) -> None:
    """Refuse a patch that is not an object: it would replace the whole document."""
    if patch is None:
        raise MalformedPatchError("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise MalformedPatchError(
            f"error decoding patch: json: cannot unmarshal {go_kind(patch)} "
            "into Go value of type map[string]interface {}"
        )


def apply_merge_patch(document: Any, patch: Any) -> Any:
    """Return the patched document; parts that do not change are shared with the old one."""
    return _merge(document, patch, 0)


def reverse_merge_patch(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return the patch that undoes a patch of this document; empty if it changes nothing."""
    reverse: dict[str, Any] = {}
    for name, value in patch.items():
        before = document.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := reverse_merge_patch(before, value):
                reverse[name] = inner
        elif value != before:
            reverse[name] = before
    return reverse


def go_kind(value: Any) -> str:
    """Name a JSON value as Go's decoder names it in errors."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "null" if value is None else "object"


def _merge(document: Any, patch: Any, depth: int) -> Any:
    if not isinstance(patch, dict):
        return patch
    if depth > MAX_DEPTH:
        raise too_deep()
    result: dict[str, Any] = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = _merge(result.get(name), value, depth + 1)
        else:
            result[name] = value
    return result
