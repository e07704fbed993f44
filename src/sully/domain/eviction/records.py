"""The records of taints: an EvictionRecord per evicted pod, and a TaintRecord per rule.

`controllers/eviction` writes the first before it deletes a pod; `controllers/history` writes the
second. They show later who evicted which pods, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from sully.api.resource.annotations import DESCRIPTION, EXPIRES_AT, creator_of, pause_reason
from sully.api.resource.eviction_rate import BURST_ANNOTATION, RATE_ANNOTATION
from sully.api.resource.types import DeviceTaint, DeviceTaintRule, DeviceTaintSelector
from sully.api.sully.checks import TEXT_MAX
from sully.api.sully.record_validation import CAUSES_MAX, CHANGES_MAX, CLAIMS_MAX, DEVICES_MAX
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
from sully.domain.devices.rules import rule_rate
from sully.domain.eviction.judge import EvictingTaint
from sully.machinery.formats.names import label_value_problems
from sully.machinery.formats.texts import truncated
from sully.machinery.formats.timestamps import format_time
from sully.machinery.meta import ObjectMeta

EXPIRY = "expiry"
"""What deleted a rule that had expired."""
_NAME_MAX = 253
_UID_SHOWN = 8


def record(
    pod: EvictedPod,
    reasons: Sequence[EvictingTaint],
    *,
    due: datetime,
    now: datetime,
    claims: Iterable[str] = (),
) -> EvictionRecord:
    """Return the record of the eviction of a pod for these reasons.

    The record is named after the pod's uid, so that creating it twice is harmless. Reasons beyond
    what a record may hold are omitted.
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


def _cause(reason: EvictingTaint) -> EvictionCause:
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


def _labels(values: dict[str, str]) -> dict[str, str]:
    """Return the labels whose values are valid."""
    return {
        key: value for key, value in values.items() if value and not label_value_problems(value)
    }


def taint_record_name(rule: str, uid: str) -> str:
    """Return the name of a rule's record: that of the rule, and a part of its uid."""
    length = _NAME_MAX - _UID_SHOWN - 1
    return f"{rule[:length].rstrip('.-')}-{uid[:_UID_SHOWN].rstrip('-')}"


def open_record(rule: DeviceTaintRule, *, now: datetime) -> TaintRecord:
    """Return the record of a new rule; `now` is for a rule without a creation time."""
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
            created_by=creator_of(metadata.annotations),
            description=description(rule),
            added_time=metadata.creation_timestamp or now,
        ),
        status=_observe(TaintRecordStatus(), rule),
    )


def description(rule: DeviceTaintRule) -> str:
    """Return the description of a rule: of its taint, or its annotation."""
    text = rule.spec.taint.description or rule.metadata.annotations.get(DESCRIPTION, "")
    return _cut(text)


def follow(
    status: TaintRecordStatus, rule: DeviceTaintRule, *, now: datetime, by: str = ""
) -> TaintRecordStatus:
    """Add the changes of a rule since it was last observed, and the user if that is known."""
    if status.taint is None:
        return _observe(status, rule)
    new = _observe(status, rule)
    added = [
        TaintChange(time=now, what=_cut(what), by=_cut(by)) for what in differences(status, new)
    ]
    changes = (*status.changes, *added)[-CHANGES_MAX:]
    return msgspec.structs.replace(new, changes=changes)


def set_deleter(status: TaintRecordStatus, *, by: str) -> TaintRecordStatus:
    """Set the user who deletes a rule that still has finalizers; the first one counts."""
    return msgspec.structs.replace(status, deleted_by=status.deleted_by or _cut(by))


def close_record(status: TaintRecordStatus, *, now: datetime, by: str = "") -> TaintRecordStatus:
    """Set the time when a rule was deleted, and the user if that is known."""
    return msgspec.structs.replace(set_deleter(status, by=by), deleted_time=now)


def _observe(status: TaintRecordStatus, rule: DeviceTaintRule) -> TaintRecordStatus:
    annotations = rule.metadata.annotations
    return msgspec.structs.replace(
        status,
        observed_generation=rule.metadata.generation,
        taint=rule.spec.taint,
        device_selector=rule.spec.device_selector,
        description=description(rule),
        expires_at=annotations.get(EXPIRES_AT, ""),
        paused=_cut(pause_reason(annotations) or ""),
        rate=_annotated_rate(rule),
    )


def differences(old: TaintRecordStatus, new: TaintRecordStatus) -> Iterator[str]:
    """Yield what changed in a rule, as text."""
    if old.taint is not None and new.taint is not None:
        yield from _taint_differences(old.taint, new.taint)
        if _rate_text(old) != _rate_text(new):
            yield f"rate {_rate_text(old)} -> {_rate_text(new)}"
    if old.device_selector != new.device_selector:
        yield f"devices {devices_text(old.device_selector)} -> {devices_text(new.device_selector)}"
    if old.paused != new.paused:
        yield _pause_text(new.paused)
    if old.expires_at != new.expires_at:
        yield f"expiry {old.expires_at or 'none'} -> {new.expires_at or 'none'}"
    if old.description != new.description:
        yield f"description {old.description or 'none'} -> {new.description or 'none'}"


def _taint_differences(old: DeviceTaint, new: DeviceTaint) -> Iterator[str]:
    for name in ("key", "value", "effect"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield f"{name} {before or 'none'} -> {after or 'none'}"
    if old.time_added != new.time_added and old.effect == new.effect:
        # A changed effect sets a new time, which is not a change of its own.
        yield f"time added {_moment(old.time_added)} -> {_moment(new.time_added)}"
    if old.data != new.data:
        yield "data changed"


def _rate_text(status: TaintRecordStatus) -> str:
    """Return the eviction rate of a rule: of its annotations, or else of its taint."""
    if status.rate:
        return status.rate
    rate = status.taint.evictions_per_second if status.taint is not None else None
    return "default" if rate is None else f"{rate} per second"


def _annotated_rate(rule: DeviceTaintRule) -> str:
    """Return the rate of a rule whose annotations set it, or its burst."""
    annotations = rule.metadata.annotations
    rate = rule_rate(rule)
    if rate is None or not {RATE_ANNOTATION, BURST_ANNOTATION} & annotations.keys():
        return ""
    return f"{rate}, burst {rate.burst}"


def _moment(time: datetime | None) -> str:
    return format_time(time) if time is not None else "none"


def _pause_text(paused: str) -> str:
    if not paused:
        return "resumed"
    return "paused" if paused == "true" else f"paused: {paused}"


def devices_text(selector: DeviceTaintSelector | None) -> str:
    """Return a selector as `driver/pool/device`, with `*` for any."""
    if selector is None:
        return "none"
    parts = (selector.driver, selector.pool, selector.device)
    text = "/".join("*" if part is None else part for part in parts)
    if selector.device_class_name is not None:
        text += f" of class {selector.device_class_name}"
    for expression in selector.selectors:
        text += f" where {expression.cel.expression if expression.cel is not None else ''}"
    return text


def _cut(text: str) -> str:
    """Return a text, shortened to what a record may hold."""
    return truncated(text, TEXT_MAX)
