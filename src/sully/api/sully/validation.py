"""Validation of records, and checks that other kinds of the group share."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sully.api.core.checks import (
    dns_subdomain,
    formatted,
    label_key,
    not_negative,
    one_of,
    unchanged,
)
from sully.api.sully.types import CAUSE_KINDS
from sully.machinery.fields import FieldError, Path
from sully.machinery.names import label_value_problems

Obj = dict[str, Any]
Errors = Iterator[FieldError]

SPEC = Path("spec")
CLAIMS_MAX = 256
DEVICES_MAX = 1024
CAUSES_MAX = 256
CHANGES_MAX = 50
TEXT_MAX = 1024
_NO_DEVICE = "must be written driver/pool/device"


def validate_eviction(spec: Obj, namespace: str) -> Errors:
    """Yield everything wrong with the record of an eviction."""
    yield from _pod(spec.get("pod") or {}, namespace, SPEC.child("pod"))
    yield from _items(spec, "claims", CLAIMS_MAX, dns_subdomain)
    yield from _items(spec, "devices", DEVICES_MAX, validate_device)
    if not spec.get("causes"):
        yield SPEC.child("causes").required("a record needs at least one cause")
    yield from _items(spec, "causes", CAUSES_MAX, _cause)
    yield from required(spec, "evictedTime", SPEC)


def validate_taint(spec: Obj) -> Errors:
    """Yield everything wrong with the record of a rule; its spec was checked as a rule's."""
    rule, at = spec.get("rule") or {}, SPEC.child("rule")
    yield from _name(rule, at)
    yield from required(rule, "uid", at)
    key, where = (spec.get("taint") or {}).get("key"), SPEC.child("taint").child("key")
    yield from label_key(key, where) if key else (where.required(),)
    yield from required(spec, "addedTime", SPEC)
    yield from limited(spec, "description", SPEC)


def validate_taint_status(status: Obj, at: Path) -> Errors:
    """Yield everything wrong with the status of the record of a rule."""
    yield from not_negative(status.get("evicted", 0), at.child("evicted"))
    changes, where = status.get("changes") or [], at.child("changes")
    if len(changes) > CHANGES_MAX:
        yield where.too_many(len(changes), CHANGES_MAX)
    for position, change in enumerate(changes[:CHANGES_MAX]):
        yield from required(change, "time", where.index(position))
        yield from required(change, "what", where.index(position))
        yield from limited(change, "what", where.index(position))
        yield from limited(change, "by", where.index(position))


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


def validate_device(device: str, at: Path) -> Errors:
    """Check the name of a device, written `driver/pool/device`."""
    # The name of a pool may have slashes itself.
    driver, _, rest = device.partition("/")
    pool, _, name = rest.rpartition("/")
    if not (driver and pool and name):
        yield at.invalid(device, _NO_DEVICE)


def _items(
    spec: Obj, name: str, limit: int, check: Callable[[Any, Path], Iterator[FieldError]]
) -> Errors:
    items: Sequence[Any] = spec.get(name) or ()
    at = SPEC.child(name)
    if len(items) > limit:
        yield at.too_many(len(items), limit)
        return
    for position, item in enumerate(items):
        yield from check(item, at.index(position))


def _name(holder: Obj, at: Path) -> Errors:
    if not holder.get("name"):
        yield at.child("name").required()
    else:
        yield from dns_subdomain(holder["name"], at.child("name"))


def required(holder: Obj, name: str, at: Path) -> Errors:
    """Check that a field is set."""
    if not holder.get(name):
        yield at.child(name).required()


def limited(holder: Obj, name: str, at: Path, most: int = TEXT_MAX) -> Errors:
    """Check the length of a text, in bytes."""
    if len(holder.get(name, "").encode()) > most:
        yield at.child(name).too_long(most)
