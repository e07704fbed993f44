"""The way from client-side to server-side apply.

kubectl's client-side apply keeps what it applied in an annotation. The first server-side apply by
kubectl may take over what that annotation shows to be its own, and keeps the annotation up to date
so that the way back stays open.
"""

import json
from typing import Any

from sully.machinery.patch.checking import TypedError, check
from sully.machinery.patch.ownership.fieldset import Tree, difference
from sully.machinery.patch.ownership.managed import Write
from sully.machinery.patch.ownership.typed import compare, to_field_set
from sully.machinery.serialization.gotext import compact_json

Obj = dict[str, Any]

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
# More would not pass validation; the annotation is removed then.
_MAX_BYTES = 256 * 1024
_KUBECTL = "kubectl"


def allowed_conflicts(live: Obj, write: Write) -> Tree:
    """Return the fields that kubectl may take over: applied by it before, and unchanged since."""
    text = _annotation(live)
    if write.manager != _KUBECTL or not text:
        return {}
    try:
        last = json.loads(text)
        if not isinstance(last, dict) or last.get("apiVersion") != write.api_version:
            return {}
        check(last, write.schema)
    except (ValueError, RecursionError, TypedError):
        # The annotation is not valid: nothing is allowed.
        return {}
    comparison = compare(last, live, write.schema)
    fields = to_field_set(last, write.schema).tree
    return difference(
        difference(difference(fields, comparison.modified), comparison.added), comparison.removed
    )


def with_last_applied(obj: Obj, applied: Obj, manager: str) -> Obj:
    """Update the annotation if it exists and kubectl applies."""
    if manager != _KUBECTL or not _annotation(obj):
        return obj
    text = compact_json(_without_annotation(applied)) + "\n"
    annotations = {**obj["metadata"]["annotations"], ANNOTATION: text}
    if sum(len(f"{name}{value}".encode()) for name, value in annotations.items()) > _MAX_BYTES:
        del annotations[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _annotation(obj: Obj) -> str:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return annotations.get(ANNOTATION) or ""


def _without_annotation(applied: Obj) -> Obj:
    metadata = applied.get("metadata") or {}
    annotations = metadata.get("annotations")
    if not annotations or ANNOTATION not in annotations:
        return applied
    rest = {name: value for name, value in annotations.items() if name != ANNOTATION}
    return {**applied, "metadata": {**metadata, "annotations": rest}}
