"""Annotations of ours: on taint rules and slice patches who made them, why, until when, pauses; on
claims what their devices were, with the finalizer that allocated claims have.

They are annotations because a server that is not ours keeps those, where it would drop a field it
does not know. Strategies stamp and check them here; controllers read them through here.
"""

from collections.abc import Mapping
from datetime import datetime

from sully.api.resource.checks import Errors, Options
from sully.api.resource.eviction_rate import (
    BURST_ANNOTATION,
    MAX_COUNT,
    RATE_ANNOTATION,
    parse_burst,
    parse_rate,
)
from sully.machinery.fields import Path
from sully.machinery.formats.timestamps import TimeError, format_micro_time, parse_time
from sully.machinery.strategy import Obj, WriteContext

CREATED_BY = "sully.dev/created-by"
CREATED_AT = "sully.dev/created-at"
"""When a patch was created, more exactly than in whole seconds: the older one takes precedence."""
POLICY_NAME = "sully.dev/policy-name"
"""The DeviceTaintPolicy that a rule is of."""
CLEARED_AT = "sully.dev/cleared-at"
"""When a user declared the device of a rule, or a managed cluster, healthy."""
MAINTENANCE_NAME = "sully.dev/maintenance-name"
"""The DeviceMaintenance that a rule is of."""
MAINTENANCE_END = "sully.dev/maintenance-end"
"""When the window of that maintenance ends, if it does."""
SUPPRESSES = "sully.dev/suppresses"
"""The taints of a driver that have no effect on the device of a rule, as JSON."""
DESCRIPTION = "sully.dev/description"
EXPIRES_AT = "sully.dev/expires-at"
PAUSED = "sully.dev/paused"
ALLOCATED_ATTRIBUTES = "sully.dev/allocated-attributes"
"""The attributes that the devices of a claim had when they were allocated; rules are matched with
them once no slice has the devices any more."""
DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
"""The finalizer that prevents the deletion of an allocated claim while its devices are in use."""
DESCRIPTION_MAX = 1024
GUARDS = "SullyEvictionGuards"
"""The gate of pauses and expiry."""
_AT = Path("metadata.annotations")


def keep_author(obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
    """Record who created an object; clients cannot set it."""
    _keep(CREATED_BY, ctx.user, obj, old, ctx)


def keep_creation_time(obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
    """Record when an object was created; clients cannot set it."""
    _keep(CREATED_AT, format_micro_time(ctx.now), obj, old, ctx)


def _keep(name: str, new: str, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
    """Set an annotation of a new object, and keep it as it is stored."""
    if not ctx.compat.records_creator:
        return
    annotations = dict(obj["metadata"].get("annotations", {}))
    annotations.pop(name, None)
    value = new if old is None else old["metadata"].get("annotations", {}).get(name, "")
    if value:
        annotations[name] = value
    if annotations:
        obj["metadata"]["annotations"] = annotations
    else:
        obj["metadata"].pop("annotations", None)


def keep_allocated_attributes(obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
    """Allow only users who may allocate devices to change what is recorded of them."""
    annotations = obj["metadata"].get("annotations") or {}
    stored = (old["metadata"].get("annotations") or {}) if old is not None else {}
    note = stored.get(ALLOCATED_ATTRIBUTES)
    if annotations.get(ALLOCATED_ATTRIBUTES) == note or not ctx.compat.records_allocated_attributes:
        return
    if ctx.may("update", "binding") or ctx.may("patch", "binding"):
        return
    remaining = {key: text for key, text in annotations.items() if key != ALLOCATED_ATTRIBUTES}
    if note is not None:
        remaining[ALLOCATED_ATTRIBUTES] = note
    if remaining:
        obj["metadata"]["annotations"] = remaining
    else:
        obj["metadata"].pop("annotations", None)


def protect_allocated(obj: Obj, sent: Obj, old: Obj, ctx: WriteContext) -> None:
    """Take what protects a claim from the metadata sent with its allocation: finalizer and record.

    Kubernetes ignores all metadata in a write of the status, so its scheduler writes the finalizer
    before.
    """
    metadata = obj["metadata"]
    allocates = "allocation" in obj["status"] and "allocation" not in old.get("status", {})
    if not ctx.compat.protects_with_allocation or not allocates or "deletionTimestamp" in metadata:
        return
    finalizers, annotations = metadata.get("finalizers", []), sent.get("annotations", {})
    if DELETE_PROTECTION in sent.get("finalizers", ()) and DELETE_PROTECTION not in finalizers:
        metadata["finalizers"] = [*finalizers, DELETE_PROTECTION]
    if ALLOCATED_ATTRIBUTES in annotations:
        record = {ALLOCATED_ATTRIBUTES: annotations[ALLOCATED_ATTRIBUTES]}
        metadata["annotations"] = metadata.get("annotations", {}) | record
        keep_allocated_attributes(obj, old, ctx)


def validate_annotations(obj: Obj, old: Obj | None, rules: Options) -> Errors:
    """Check what is ours; unchanged stored values are accepted."""
    if not rules.compat.validates_annotations:
        return
    annotations = obj["metadata"].get("annotations") or {}
    before = old["metadata"].get("annotations") or {} if old is not None else {}
    changed = {key: text for key, text in annotations.items() if before.get(key) != text}
    if len(changed.get(DESCRIPTION, "").encode()) > DESCRIPTION_MAX:
        yield _AT.key(DESCRIPTION).too_long(DESCRIPTION_MAX)
    if EXPIRES_AT in changed and rules.gates[GUARDS]:
        yield from _time(changed[EXPIRES_AT], _AT.key(EXPIRES_AT))
    yield from _rates(changed)


def _rates(changed: Mapping[str, str]) -> Errors:
    if RATE_ANNOTATION in changed:
        try:
            parse_rate(changed[RATE_ANNOTATION])
        except ValueError:
            at = _AT.key(RATE_ANNOTATION)
            yield at.invalid(changed[RATE_ANNOTATION], "must be a rate, for example 2/s or 1/5m")
    if BURST_ANNOTATION in changed:
        try:
            parse_burst(changed[BURST_ANNOTATION])
        except ValueError:
            at = _AT.key(BURST_ANNOTATION)
            yield at.invalid(changed[BURST_ANNOTATION], f"must be 1 to {MAX_COUNT}")


def _time(text: str, at: Path) -> Errors:
    try:
        parse_time(text)
    except TimeError:
        yield at.invalid(text, "must be a time as in RFC 3339, for example 2026-01-02T15:04:05Z")


def creator_of(annotations: Mapping[str, str]) -> str:
    """Return who created a rule or patch: policy, maintenance, or the user where recorded."""
    for name, kind in ((POLICY_NAME, "policy"), (MAINTENANCE_NAME, "maintenance")):
        if author := annotations.get(name, ""):
            return f"{kind} {author}"
    return annotations.get(CREATED_BY, "")


def maintenance_end(annotations: Mapping[str, str]) -> datetime | None:
    """Return when the maintenance that a rule is of ends; None if that is not known."""
    return _time_of(annotations.get(MAINTENANCE_END, ""))


def expiry(annotations: Mapping[str, str]) -> datetime | None:
    """Return when an object expires; an invalid time does not count.

    Another server, or a server whose gate was off, may have stored such a text.
    """
    return _time_of(annotations.get(EXPIRES_AT, ""))


def _time_of(text: str) -> datetime | None:
    if not text:
        # Most objects; what is wrong with it would be worked out in detail.
        return None
    try:
        return parse_time(text)
    except TimeError:
        return None


def pause_reason(annotations: Mapping[str, str]) -> str | None:
    """Return why eviction is paused, `true` if there is no reason, or None when it is not."""
    text = annotations.get(PAUSED, "").strip()
    return None if text.lower() in ("", "false") else text
