"""What is remembered of taints: the record of a pod that left, and of a rule's life.

`controllers/eviction` writes the first kind before it deletes a pod; `controllers/history` keeps
the second. Both survive restarts, so that "who did this, why, and what left" has an answer later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from sully.api.resource.annotations import CREATED_BY, DESCRIPTION, EXPIRES_AT, pause_reason
from sully.api.resource.types import DeviceTaint, DeviceTaintRule, DeviceTaintSelector
from sully.api.sully.types import (
    NODE_LABEL,
    RULE_LABEL,
    EvictedPod,
    EvictionCause,
    EvictionRecord,
    EvictionRecordSpec,
    TaintChange,
    TaintRecord,
    TaintRecordRule,
    TaintRecordSpec,
    TaintRecordStatus,
)
from sully.api.sully.validation import CAUSES_MAX, CHANGES_MAX, CLAIMS_MAX, DEVICES_MAX, TEXT_MAX
from sully.domain.eviction.judge import Reason
from sully.machinery.meta import ObjectMeta
from sully.machinery.names import label_value_problems
from sully.machinery.timestamps import format_time

EXPIRY = "expiry"
"""The value of `deletedBy` for a rule that expired."""
_NAME_MAX = 253
_UID_SHOWN = 8


def record(
    pod: EvictedPod,
    reasons: Sequence[Reason],
    *,
    due: datetime,
    now: datetime,
    claims: Iterable[str] = (),
) -> EvictionRecord:
    """Write down that a pod leaves, for these reasons, which were due since then.

    The record is named after the pod's uid, so that writing it twice is harmless. Beyond what a
    record may hold, reasons are left out: the first ones stand for the others.
    """
    causes = tuple(_cause(reason) for reason in reasons[:CAUSES_MAX])
    devices = tuple(dict.fromkeys(str(reason.device) for reason in reasons))
    rule = next((reason.taint.origin.name for reason in reasons if reason.rule is not None), "")
    return EvictionRecord(
        metadata=ObjectMeta(
            name=pod.uid,
            namespace=pod.namespace,
            labels=_labels({RULE_LABEL: rule, NODE_LABEL: pod.node}),
        ),
        spec=EvictionRecordSpec(
            pod=pod,
            claims=tuple(sorted(set(claims)))[:CLAIMS_MAX],
            devices=devices[:DEVICES_MAX],
            causes=causes,
            due_time=due,
            evicted_time=now,
        ),
    )


def _cause(reason: Reason) -> EvictionCause:
    taint, origin = reason.taint.taint, reason.taint.origin
    return EvictionCause(
        kind=origin.kind,
        name=origin.name,
        uid=origin.uid,
        key=taint.key,
        value=taint.value,
        effect=taint.effect,
        description=taint.description,
        device=str(reason.device),
    )


def _labels(wanted: dict[str, str]) -> dict[str, str]:
    """Return the labels whose values can be values of labels."""
    return {
        key: value for key, value in wanted.items() if value and not label_value_problems(value)
    }


def taint_record_name(rule: str, uid: str) -> str:
    """Return the name of a rule's record: the rule's own, and enough of its uid to tell twins."""
    room = _NAME_MAX - _UID_SHOWN - 1
    return f"{rule[:room].rstrip('.-')}-{uid[:_UID_SHOWN].rstrip('-')}"


def open_record(rule: DeviceTaintRule, *, now: datetime) -> TaintRecord:
    """Begin the record of a rule; `now` is for a rule that does not know when it was made."""
    metadata = rule.metadata
    return TaintRecord(
        metadata=ObjectMeta(
            name=taint_record_name(metadata.name, metadata.uid),
            labels=_labels({RULE_LABEL: metadata.name}),
        ),
        spec=TaintRecordSpec(
            rule=TaintRecordRule(name=metadata.name, uid=metadata.uid),
            taint=rule.spec.taint,
            device_selector=rule.spec.device_selector,
            created_by=metadata.annotations.get(CREATED_BY, ""),
            description=description(rule),
            added_time=metadata.creation_timestamp or now,
        ),
        status=_as_seen(TaintRecordStatus(), rule),
    )


def description(rule: DeviceTaintRule) -> str:
    """Say why a rule is there, if it says so: on its taint, or on itself."""
    text = rule.spec.taint.description or rule.metadata.annotations.get(DESCRIPTION, "")
    return _cut(text)


def follow(
    status: TaintRecordStatus, rule: DeviceTaintRule, *, now: datetime, by: str = ""
) -> TaintRecordStatus:
    """Note how a rule differs from what was last seen, and who changed it if that is known."""
    if status.taint is None:
        return _as_seen(status, rule)
    new = _as_seen(status, rule)
    noted = [
        TaintChange(time=now, what=_cut(what), by=_cut(by)) for what in differences(status, new)
    ]
    changes = (*status.changes, *noted)[-CHANGES_MAX:]
    return msgspec.structs.replace(new, changes=changes)


def leave(status: TaintRecordStatus, *, by: str) -> TaintRecordStatus:
    """Note who deletes a rule that still has finalizers; the first one counts."""
    return msgspec.structs.replace(status, deleted_by=status.deleted_by or _cut(by))


def lift(status: TaintRecordStatus, *, now: datetime, by: str = "") -> TaintRecordStatus:
    """Note that a rule is gone, and who deleted it if that is known."""
    return msgspec.structs.replace(leave(status, by=by), deleted_time=now)


def _as_seen(status: TaintRecordStatus, rule: DeviceTaintRule) -> TaintRecordStatus:
    annotations = rule.metadata.annotations
    return msgspec.structs.replace(
        status,
        observed_generation=rule.metadata.generation,
        taint=rule.spec.taint,
        device_selector=rule.spec.device_selector,
        description=description(rule),
        expires_at=annotations.get(EXPIRES_AT, ""),
        paused=_cut(pause_reason(annotations) or ""),
    )


def differences(old: TaintRecordStatus, new: TaintRecordStatus) -> Iterator[str]:
    """Say in words what changed about a rule."""
    if old.taint is not None and new.taint is not None:
        yield from _taint_differences(old.taint, new.taint)
    if old.device_selector != new.device_selector:
        yield f"devices {devices_text(old.device_selector)} -> {devices_text(new.device_selector)}"
    if old.paused != new.paused:
        yield _pause_text(new.paused)
    if old.expires_at != new.expires_at:
        yield f"expires at {old.expires_at or 'no time'} -> {new.expires_at or 'no time'}"
    if old.description != new.description:
        yield f"description {old.description or 'none'} -> {new.description or 'none'}"


def _taint_differences(old: DeviceTaint, new: DeviceTaint) -> Iterator[str]:
    for name in ("key", "value", "effect"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield f"{name} {before or 'none'} -> {after or 'none'}"
    if old.evictions_per_second != new.evictions_per_second:
        yield f"pace {_pace(old)} -> {_pace(new)}"
    if old.time_added != new.time_added and old.effect == new.effect:
        # A changed effect brings a new time with it; then the effect says it all.
        yield f"time added {_moment(old.time_added)} -> {_moment(new.time_added)}"
    if old.data != new.data:
        yield "data changed"


def _pace(taint: DeviceTaint) -> str:
    rate = taint.evictions_per_second
    return "unlimited" if rate is None else f"{rate} a second"


def _moment(time: datetime | None) -> str:
    return format_time(time) if time is not None else "none"


def _pause_text(paused: str) -> str:
    if not paused:
        return "resumed"
    return "paused" if paused == "true" else f"paused: {paused}"


def devices_text(selector: DeviceTaintSelector | None) -> str:
    """Write a selector as people write devices, `driver/pool/device` with `*` for any."""
    if selector is None:
        return "none"
    parts = (selector.driver, selector.pool, selector.device)
    text = "/".join("*" if part is None else part for part in parts)
    if selector.device_class_name is not None:
        text += f" of class {selector.device_class_name}"
    for each in selector.selectors:
        text += f" where {each.cel.expression if each.cel is not None else ''}"
    return text


def _cut(text: str) -> str:
    """Shorten a text to what a record may hold."""
    return text.encode()[:TEXT_MAX].decode(errors="ignore")
