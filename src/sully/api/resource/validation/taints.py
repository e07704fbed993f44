"""Validation of taints and tolerations, in all kinds that have them."""

from sully.api.resource.checks import Errors, Options
from sully.api.resource.types import DeviceTaint, DeviceToleration
from sully.api.resource.validation.names import validate_label_key, validate_label_value
from sully.machinery.declared import declared
from sully.machinery.fields import Path
from sully.machinery.serialization.gotext import compact_json

TAINTS_MAX = 16
TOLERATIONS_MAX = 16
DESCRIPTION_MAX = 1024
DATA_MAX = 10 * 1024
NO_KEY = "must be `Exists` when `key` is empty"


def validate_taint(
    taint: DeviceTaint, at: Path, rules: Options, old: DeviceTaint | None = None
) -> Errors:
    """Yield everything wrong with one taint.

    An effect that was stored before is left alone, also if it is unknown: an object written
    by a newer server must stay editable.
    """
    yield from validate_label_key(taint.key, at.child("key"))
    if taint.value:
        yield from validate_label_value(taint.value, at.child("value"))
    if old is None or old.effect != taint.effect:
        yield from declared(_effect(taint.effect, at.child("effect"), rules))
    yield from validate_taint_details(taint, at)


def _effect(effect: str, at: Path, rules: Options) -> Errors:
    if not effect:
        yield at.required()
    elif effect not in rules.effects:
        yield at.not_supported(effect, rules.effects)


def validate_taint_details(taint: DeviceTaint, at: Path) -> Errors:
    """Check what Sully adds to taints: description, data, eviction rate."""
    if len(taint.description.encode()) > DESCRIPTION_MAX:
        yield at.child("description").too_long(DESCRIPTION_MAX)
    if taint.data is not None and len(compact_json(taint.data).encode()) > DATA_MAX:
        yield at.child("data").too_long(DATA_MAX)
    if taint.evictions_per_second is not None and taint.evictions_per_second <= 0:
        yield at.child("evictionsPerSecond").invalid(
            taint.evictions_per_second, "must be greater than zero"
        )


def validate_tolerations(
    tolerations: tuple[DeviceToleration, ...], at: Path, rules: Options
) -> Errors:
    """Check the tolerations of a request or of an allocation result.

    Kubernetes documents a maximum and does not enforce it.
    """
    if len(tolerations) > TOLERATIONS_MAX and rules.compat.limits_tolerations:
        yield at.too_many(len(tolerations), TOLERATIONS_MAX)
        return
    for position, toleration in enumerate(tolerations):
        yield from validate_toleration(toleration, at.index(position), rules)


def validate_keys_of_tolerations(
    tolerations: tuple[DeviceToleration, ...], at: Path, rules: Options
) -> Errors:
    """Check that a toleration without a key has operator Exists; not in allocations.

    With `Equal` it would tolerate every key with that value, also an empty one, which is never
    intended. Kubernetes documents this and accepts it.
    """
    if not rules.compat.rejects_equal_without_key or len(tolerations) > TOLERATIONS_MAX:
        return
    for position, toleration in enumerate(tolerations):
        if not toleration.key and toleration.operator == "Equal":
            yield at.index(position).child("operator").invalid(toleration.operator, NO_KEY)


def validate_toleration(toleration: DeviceToleration, at: Path, rules: Options) -> Errors:
    """Yield everything wrong with one toleration, not only the first error."""
    if toleration.key:
        yield from declared(validate_label_key(toleration.key, at.child("key")))
    yield from _operator(toleration, at)
    if toleration.effect and toleration.effect not in rules.effects:
        yield from declared([at.child("effect").not_supported(toleration.effect, rules.effects)])


def _operator(toleration: DeviceToleration, at: Path) -> Errors:
    match toleration.operator:
        case "Exists":
            if toleration.value:
                yield at.child("value").invalid(
                    toleration.value, "must be empty for operator `Exists`"
                )
        case "Equal":
            yield from validate_label_value(toleration.value, at.child("value"))
        case "":
            # Only a request without a class has no default, which is an error by itself.
            return
        case unknown:
            known = ("Equal", "Exists")
            yield from declared([at.child("operator").not_supported(unknown, known)])
