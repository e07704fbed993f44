"""What happens on a write of claims, their status, and templates."""

from collections.abc import Iterable
from functools import cache
from itertools import chain

import msgspec

from sully.api.resource.annotations import keep_allocated_attributes, protect_allocated
from sully.api.resource.checks import Errors, named_in, options
from sully.api.resource.defaults import (
    default_claim_spec,
    default_claim_status,
    results_of,
    settle_claim_spec,
)
from sully.api.resource.features import CLAIM_SPEC_FEATURES, CLAIM_STATUS_FEATURES, drop_disabled
from sully.api.resource.strategy import NO_STATUS, ONLY_STATUS, SPEC
from sully.api.resource.types import (
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplateSpec,
)
from sully.api.resource.validation.claim_status import validate_claim_status
from sully.api.resource.validation.claims import validate_claim_spec
from sully.api.resource.validation.names import validate_label_key, validate_label_value
from sully.api.resource.validation.slices import IMMUTABLE
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import label_key_problems
from sully.machinery.memo import ValidValues
from sully.machinery.meta import owner_in_order
from sully.machinery.schema import ObjectType, Tables
from sully.machinery.serialization.codec import to_json
from sully.machinery.serialization.empties import without_empties
from sully.machinery.serialization.gostructs import internal
from sully.machinery.strategy import Obj, Strategy, WriteContext, keep_all_but_status

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
ANNOTATIONS_MAX = 256 * 1024
METADATA_FIELDS = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels"),
    *("annotations", "ownerReferences", "finalizers", "managedFields"),
)
"""All fields of an object's metadata, in their order in Go."""
_VALID_SPECS = ValidValues(256)


class ClaimStrategy(Strategy, frozen=True):
    """Claims: the spec never changes, the status belongs to its own endpoint."""

    reset: tuple[tuple[str, ...], ...] = NO_STATUS

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in requests and results."""
        default_claim_spec(obj["spec"], ctx.version)
        default_claim_status(obj.get("status", {}))

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Wipe the status, drop what is switched off."""
        keep_allocated_attributes(obj, None, ctx)
        obj["status"] = {}
        settle_claim_spec(obj["spec"])
        drop_disabled(CLAIM_SPEC_FEATURES, obj["spec"], None, ctx.gates)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        keep_allocated_attributes(obj, old, ctx)
        obj["status"] = old.get("status", {})
        settle_claim_spec(obj["spec"])
        drop_disabled(CLAIM_SPEC_FEATURES, obj["spec"], old["spec"], ctx.gates)

    def validate_before_metadata(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check whether a new claim may request admin access."""
        return _admin_requested(obj["spec"], obj, ctx)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new claim."""
        rules = ctx.version, ctx.sent_empty, ctx.compat, frozenset(ctx.gates.overrides.items())
        return _VALID_SPECS.check(to_json(obj["spec"]), _spec_errors(obj, ctx), *rules)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Refuse any change of the spec; what is stored was checked when it was new."""
        if obj["spec"] != old["spec"]:
            yield SPEC.invalid(None, IMMUTABLE)


class ClaimStatusStrategy(Strategy, frozen=True):
    """The status of claims: what scheduler, claim controller and drivers write."""

    reset: tuple[tuple[str, ...], ...] = ONLY_STATUS

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in results."""
        default_claim_spec(obj["spec"], ctx.version)
        default_claim_status(obj.get("status", {}))

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep all but the status; drop reports about devices that were deallocated."""
        sent = obj["metadata"]
        keep_all_but_status(obj, old)
        before = old.get("status", {})
        drop_disabled(CLAIM_STATUS_FEATURES, obj.setdefault("status", {}), before, ctx.gates)
        _forget_returned(obj["status"], before)
        protect_allocated(obj, sent, old, ctx)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check the status, and whether it may grant admin access."""
        yield from _admin_granted(obj, old, ctx)
        new, before = msgspec.convert(obj, ResourceClaim), msgspec.convert(old, ResourceClaim)
        yield from validate_claim_status(new, before, options(ctx))


def _spec_errors(obj: Obj, ctx: WriteContext) -> Errors:
    spec = msgspec.convert(obj["spec"], ResourceClaimSpec)
    yield from _named(ctx, validate_claim_spec(spec, SPEC, options(ctx)))


def _forget_returned(status: Obj, before: Obj) -> None:
    def identity(entry: Obj) -> tuple[str, ...]:
        names = ("driver", "pool", "device", "shareID")
        return tuple(entry.get(name, "") for name in names)

    returned = {identity(one) for one in results_of(before)}
    returned -= {identity(one) for one in results_of(status)}
    if returned and status.get("devices"):
        status["devices"] = [one for one in status["devices"] if identity(one) not in returned]
        if not status["devices"]:
            del status["devices"]


class TemplateStrategy(Strategy, frozen=True):
    """Templates never change; unlike a claim's, their spec is checked again on an update."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in requests."""
        default_claim_spec(obj["spec"]["spec"], ctx.version)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Drop what is switched off."""
        settle_claim_spec(obj["spec"]["spec"])
        drop_disabled(CLAIM_SPEC_FEATURES, obj["spec"]["spec"], None, ctx.gates)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Drop what is switched off and was not stored."""
        before = old["spec"]["spec"]
        settle_claim_spec(obj["spec"]["spec"])
        drop_disabled(CLAIM_SPEC_FEATURES, obj["spec"]["spec"], before, ctx.gates)

    def validate_before_metadata(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check whether a new template may request admin access."""
        return _admin_requested(obj["spec"]["spec"], obj, ctx)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new template."""
        yield from _named(ctx, _validate_template(obj, ctx, stored=False))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Refuse any change of the spec."""
        stored = obj["spec"] == old["spec"]
        errors = chain(_validate_template(obj, ctx, stored=stored), _same(obj, old))
        yield from _named(ctx, errors)


def _named(ctx: WriteContext, errors: Iterable[FieldError]) -> Errors:
    return named_in(ctx.version, errors, only_declared=not ctx.compat.names_fields_under_basic)


def _validate_template(obj: Obj, ctx: WriteContext, *, stored: bool) -> Errors:
    yield from _template_metadata(obj["spec"].get("metadata", {}), SPEC.child("metadata"))
    spec = msgspec.convert(obj["spec"], ResourceClaimTemplateSpec)
    rules = options(ctx).as_stored(stored)
    yield from validate_claim_spec(spec.spec, SPEC.child("spec"), rules)


def _same(obj: Obj, old: Obj) -> Errors:
    if obj["spec"] != old["spec"]:
        # Kubernetes shows its own struct here, in which the metadata is embedded.
        metadata = without_empties(_in_order(obj["spec"].get("metadata", {})))
        shown = {**metadata, "Spec": internal(obj["spec"]["spec"], _claim_spec())}
        yield SPEC.invalid(shown, IMMUTABLE)


@cache
def _claim_spec() -> ObjectType:
    """Return the type of the spec of claims; only error texts need it."""
    # Late: the group's own package imports the modules that need this.
    from sully.api.core import load_tables as load_core
    from sully.api.meta import load_tables as load_meta
    from sully.api.resource import VERSIONS, load_tables, package

    tables = Tables()
    for load in (load_meta, load_core, load_tables):
        load(tables)
    return tables.get(package(VERSIONS[0]), "ResourceClaimSpec")


def _in_order(meta: Obj) -> Obj:
    """Return the metadata of a template in the order in which Go's struct has its fields."""
    ordered = {name: meta[name] for name in METADATA_FIELDS if name in meta}
    for name in {"labels", "annotations"} & ordered.keys():
        ordered[name] = dict(sorted(ordered[name].items()))
    if "ownerReferences" in ordered:
        ordered["ownerReferences"] = [owner_in_order(one) for one in ordered["ownerReferences"]]
    return ordered


def _template_metadata(meta: Obj, at: Path) -> Errors:
    annotations = meta.get("annotations", {})
    for key in annotations:
        # Annotation keys may be written in upper case.
        for text in label_key_problems(key.lower()):
            yield at.child("annotations").invalid(key, text)
    if sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > ANNOTATIONS_MAX:
        yield at.child("annotations").too_long(ANNOTATIONS_MAX)
    for key, value in meta.get("labels", {}).items():
        yield from validate_label_key(key, at.child("labels"))
        yield from validate_label_value(value, at.child("labels"))
    for name in _in_order(meta):
        if name not in ("annotations", "labels"):
            # Kubernetes derives the name from that of the Go field.
            yield at.child("uID" if name == "uid" else name).forbidden("cannot be set")


def _admin_requested(spec: Obj, obj: Obj, ctx: WriteContext) -> Errors:
    """Refuse admin access in a namespace without the label for it."""
    requests = spec["devices"].get("requests") or ()
    for position, request in enumerate(requests):
        if request.get("exactly", {}).get("adminAccess"):
            at = Path("spec.devices.requests").index(position).child("adminAccess")
            yield from _admin_allowed(at, obj, ctx)
            return


def _admin_granted(obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
    if any(one.get("adminAccess") for one in results_of(old.get("status", {}))):
        return
    for position, result in enumerate(results_of(obj.get("status", {}))):
        if result.get("adminAccess"):
            at = Path("status.allocation.devices.results").index(position).child("adminAccess")
            yield from _admin_allowed(at, obj, ctx)
            return


def _admin_allowed(at: Path, obj: Obj, ctx: WriteContext) -> Errors:
    namespace = ctx.lookup("namespaces", "", obj["metadata"].get("namespace", ""))
    labels = namespace["metadata"].get("labels", {}) if namespace is not None else {}
    if labels.get(ADMIN_LABEL) != "true":
        yield at.forbidden(
            f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing"
            " namespace"
        )
