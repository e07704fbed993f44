"""What happens on a write of slices, classes, taint rules and patches.

Claims and templates are in claim_strategy.py. Everything here changes `obj` in place and leaves
`old` alone; the checks themselves are in validation/.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec

from sully.api.core import generations
from sully.api.resource.annotations import keep_author, keep_creation_time, validate_annotations
from sully.api.resource.checks import Errors, options, under_basic
from sully.api.resource.defaults import default_taints, slice_taints
from sully.api.resource.features import (
    PATCH_FEATURES,
    RULE_FEATURES,
    SLICE_FEATURES,
    drop_disabled,
)
from sully.api.resource.types import (
    DeviceClassSpec,
    DeviceTaintRuleSpec,
    DeviceTaintRuleStatus,
    ResourceSlicePatchSpec,
    ResourceSliceSpec,
)
from sully.api.resource.validation.classes import validate_class_spec
from sully.api.resource.validation.conditions import limit_conditions, validate_conditions
from sully.api.resource.validation.rules import validate_patch, validate_rule_spec
from sully.api.resource.validation.slices import (
    EMPTY_COUNTERS,
    EMPTY_DEVICES,
    validate_slice_spec,
)
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import dns_subdomain_problems
from sully.machinery.formats.timestamps import format_time
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import Obj, Strategy, WriteContext, keep_all_but_status

SPEC = Path("spec")
NO_STATUS = (("status",),)
ONLY_STATUS = (("metadata",), ("spec",))


def taint_warnings(taints: Iterable[tuple[str, Obj]], ctx: WriteContext) -> Iterator[str]:
    """Warn of reserved taint keys."""
    for place, taint in taints:
        domain = taint["key"].partition("/")[0] if "/" in taint["key"] else ""
        reserved = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
        if reserved and ctx.compat.warns_of_reserved_taint_keys:
            yield (
                f"{place}.key: keys under kubernetes.io/ are reserved for Kubernetes;"
                f" {quote(taint['key'])} may come to mean something else"
            )


class _Comparing(Strategy, frozen=True):
    """Checks new and changed objects; unchanged stored values may be excused."""

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new object."""
        return self.check(obj, None, ctx)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check a changed object."""
        return self.check(obj, old, ctx)

    @abstractmethod
    def check(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Errors:
        """Yield what is wrong."""


class SliceStrategy(_Comparing, frozen=True):
    """Slices belong to drivers; the server sets only their generation."""

    def empties(self) -> tuple[tuple[str, ...], ...]:
        """Devices and counters exclude each other, also without items."""
        return EMPTY_DEVICES, EMPTY_COUNTERS

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Stamp taints; in v1beta1 an empty node and `allNodes: false` are the same as none."""
        default_taints(slice_taints(obj["spec"]), ctx.now)
        if ctx.version == "v1beta1":
            for name in ("nodeName", "allNodes"):
                if not obj["spec"].get(name):
                    obj["spec"].pop(name, None)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start the generation, drop what is switched off."""
        generations.start(obj)
        drop_disabled(SLICE_FEATURES, obj, None, ctx.gates)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Count changes, also of fields that are then dropped."""
        generations.follow(obj, old, bump=obj["spec"] != old["spec"])
        drop_disabled(SLICE_FEATURES, obj, old, ctx.gates)

    def check(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Errors:
        """Check the spec against what it was."""
        spec = msgspec.convert(obj["spec"], ResourceSliceSpec)
        before = msgspec.convert(old["spec"], ResourceSliceSpec) if old is not None else None
        errors = validate_slice_spec(spec, before, SPEC, options(ctx))
        if ctx.version == "v1beta1":
            errors = under_basic(errors, only_declared=not ctx.compat.names_fields_under_basic)
        return errors

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Warn of upper case in the driver's name and of reserved taint keys."""
        driver = obj["spec"]["driver"]
        if driver != driver.lower():
            yield (
                f"spec.driver: driver names should be lowercase; {quote(driver)} contains"
                " uppercase characters"
            )
        yield from taint_warnings(_slice_taint_places(obj["spec"]), ctx)


def _slice_taint_places(spec: Obj) -> Iterator[tuple[str, Obj]]:
    for i, device in enumerate(spec.get("devices", ())):
        for j, taint in enumerate(device.get("taints", ())):
            yield f"spec.devices[{i}].taints[{j}]", taint
    for i, entry in enumerate(spec.get("taints", ())):
        yield f"spec.taints[{i}].taint", entry["taint"]


class ClassStrategy(Strategy, frozen=True):
    """Classes may change freely; existing allocations are not affected."""

    declares_name: ClassVar[bool] = True
    declared: ClassVar[tuple[str, ...]] = (
        "spec.selectors",
        "spec.config",
        "spec.config.opaque.driver",
        "spec.extendedResourceName",
    )

    def validate_name(self, name: str) -> list[str]:
        """Check the name as the format that the schema declares."""
        return dns_subdomain_problems(name, unit="bytes")

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start the generation."""
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Count changes."""
        generations.follow(obj, old, bump=obj["spec"] != old["spec"])

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new class."""
        spec = msgspec.convert(obj["spec"], DeviceClassSpec)
        return validate_class_spec(spec, None, SPEC, options(ctx))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check a changed class."""
        spec = msgspec.convert(obj["spec"], DeviceClassSpec)
        before = msgspec.convert(old["spec"], DeviceClassSpec)
        return validate_class_spec(spec, before, SPEC, options(ctx))


class RuleStrategy(_Comparing, frozen=True):
    """Rules: a changed effect restarts toleration periods."""

    reset: tuple[tuple[str, ...], ...] = NO_STATUS

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Stamp the taint."""
        default_taints(iter((obj["spec"]["taint"],)), ctx.now)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Reset the status, set the generation and the creator."""
        obj["status"] = {}
        generations.start(obj)
        drop_disabled(RULE_FEATURES, obj, None, ctx.gates)
        keep_author(obj, None, ctx)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; stamp the taint when its effect changed and its time did not."""
        obj["status"] = old.get("status", {})
        drop_disabled(RULE_FEATURES, obj, old, ctx.gates)
        keep_author(obj, old, ctx)
        taint, before = obj["spec"]["taint"], old["spec"]["taint"]
        same_time = taint.get("timeAdded") == before.get("timeAdded")
        if taint["effect"] != before["effect"] and same_time:
            taint["timeAdded"] = format_time(ctx.now)
        generations.follow(obj, old, bump=obj["spec"] != old["spec"])

    def check(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Errors:
        """Check the spec against what it was."""
        spec = msgspec.convert(obj["spec"], DeviceTaintRuleSpec)
        before = msgspec.convert(old["spec"], DeviceTaintRuleSpec) if old is not None else None
        yield from validate_annotations(obj, old, options(ctx))
        yield from validate_rule_spec(spec, before, SPEC, options(ctx))

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Warn of a reserved taint key."""
        return taint_warnings([("spec.taint", obj["spec"]["taint"])], ctx)


class PatchStrategy(_Comparing, frozen=True):
    """Patches: like rules, but with a list of taints."""

    reset: tuple[tuple[str, ...], ...] = NO_STATUS

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Stamp taints."""
        default_taints(iter(_patch_taints(obj)), ctx.now)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Reset the status, set the generation and the creator."""
        obj["status"] = {}
        generations.start(obj)
        drop_disabled(PATCH_FEATURES, obj, None, ctx.gates)
        keep_author(obj, None, ctx)
        keep_creation_time(obj, None, ctx)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status; stamp taints whose effect changed and whose time did not."""
        obj["status"] = old.get("status", {})
        drop_disabled(PATCH_FEATURES, obj, old, ctx.gates)
        keep_author(obj, old, ctx)
        keep_creation_time(obj, old, ctx)
        _restamp(_patch_taints(obj), _patch_taints(old), format_time(ctx.now))
        generations.follow(obj, old, bump=obj["spec"] != old["spec"])

    def check(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Errors:
        """Check the spec against what it was."""
        spec = msgspec.convert(obj["spec"], ResourceSlicePatchSpec)
        before = msgspec.convert(old["spec"], ResourceSlicePatchSpec) if old is not None else None
        yield from validate_annotations(obj, old, options(ctx))
        devices = before.devices if before is not None else None
        at = SPEC.child("devices")
        yield from validate_patch(spec.devices, devices, at, options(ctx))

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Warn of reserved taint keys."""
        taints = enumerate(_patch_taints(obj))
        return taint_warnings(((f"spec.devices.taints[{i}]", t) for i, t in taints), ctx)


def _patch_taints(obj: Obj) -> list[Obj]:
    taints: list[Obj] = obj["spec"]["devices"].get("taints", [])
    return taints


def _restamp(taints: list[Obj], before: list[Obj], now: str) -> None:
    known: dict[Any, set[str]] = {}
    for taint in before:
        known.setdefault((taint["key"], taint.get("timeAdded")), set()).add(taint["effect"])
    for taint in taints:
        # Taints of a list have no identity; the key is the closest to one.
        effects = known.get((taint["key"], taint.get("timeAdded")))
        if effects is not None and taint["effect"] not in effects:
            taint["timeAdded"] = now


class ConditionsStrategy(Strategy, frozen=True):
    """The status of rules and patches: conditions, and nothing else changes."""

    reset: tuple[tuple[str, ...], ...] = ONLY_STATUS

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Take everything but the status from the stored object."""
        keep_all_but_status(obj, old)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the conditions."""
        status = msgspec.convert(obj.get("status", {}), DeviceTaintRuleStatus)
        yield from validate_conditions(status.conditions, Path("status.conditions"))
        yield from limit_conditions(status.conditions, Path("status.conditions"))
