"""Validation of records."""

from typing import Any

from sully.api.core.checks import (
    Errors,
    dns_subdomain,
    formatted,
    label_key,
    not_negative,
    one_of,
    unchanged,
)
from sully.api.sully.checks import limited, required, required_key, validate_device, validate_items
from sully.api.sully.strategies import SPEC
from sully.api.sully.types import CAUSE_KINDS
from sully.machinery.fields import Path
from sully.machinery.formats.names import label_value_problems

Obj = dict[str, Any]

CLAIMS_MAX = 256
DEVICES_MAX = 1024
CAUSES_MAX = 256
CHANGES_MAX = 50


def validate_eviction(spec: Obj, namespace: str) -> Errors:
    """Yield everything wrong with the record of an eviction."""
    yield from _pod(spec.get("pod") or {}, namespace, SPEC.child("pod"))
    yield from validate_items(spec.get("claims"), CLAIMS_MAX, SPEC.child("claims"), dns_subdomain)
    devices, at = spec.get("devices"), SPEC.child("devices")
    yield from validate_items(devices, DEVICES_MAX, at, validate_device)
    if not spec.get("causes"):
        yield SPEC.child("causes").required("a record needs at least one cause")
    yield from validate_items(spec.get("causes"), CAUSES_MAX, SPEC.child("causes"), _cause)
    yield from required(spec, "evictedTime", SPEC)


def validate_taint(spec: Obj) -> Errors:
    """Yield everything wrong with the record of a rule; its spec was checked as a rule's."""
    rule, at = spec.get("rule") or {}, SPEC.child("rule")
    yield from _name(rule, at)
    yield from required(rule, "uid", at)
    key = (spec.get("taint") or {}).get("key", "")
    yield from required_key(key, SPEC.child("taint", "key"))
    yield from required(spec, "addedTime", SPEC)
    yield from limited(spec, "description", SPEC)


def validate_taint_status(status: Obj, at: Path) -> Errors:
    """Yield everything wrong with the status of the record of a rule."""
    yield from not_negative(status.get("evicted", 0), at.child("evicted"))
    yield from validate_items(status.get("changes"), CHANGES_MAX, at.child("changes"), _change)


def _change(change: Obj, at: Path) -> Errors:
    yield from required(change, "time", at)
    yield from required(change, "what", at)
    yield from limited(change, "what", at)
    yield from limited(change, "by", at)


def validate_same(spec: Obj, old: Obj) -> Errors:
    """Check that what is recorded does not change."""
    return unchanged(spec, old, SPEC)


def _pod(pod: Obj, namespace: str, at: Path) -> Errors:
    if pod.get("namespace", "") != namespace:
        text = f"must be the namespace of the record, {namespace}"
        yield at.child("namespace").invalid(pod.get("namespace", ""), text)
    yield from _name(pod, at)
    yield from required(pod, "uid", at)
    if "owner" in pod:
        for name in ("kind", "name"):
            yield from required(pod["owner"], name, at.child("owner"))


def _cause(cause: Obj, at: Path) -> Errors:
    yield from one_of(cause.get("kind", ""), CAUSE_KINDS, at.child("kind"), required=True)
    yield from _name(cause, at)
    yield from label_key(cause.get("key", ""), at.child("key"))
    yield from formatted(cause.get("value", ""), label_value_problems, at.child("value"))
    yield from required(cause, "effect", at)
    yield from limited(cause, "description", at)
    yield from validate_device(cause.get("device", ""), at.child("device"))


def _name(holder: Obj, at: Path) -> Errors:
    if not holder.get("name"):
        yield at.child("name").required()
    else:
        yield from dns_subdomain(holder["name"], at.child("name"))
