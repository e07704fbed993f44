"""PersistentVolumeClaims: requests for storage. Stored; no controller binds or provisions them."""

from collections.abc import Iterator
from typing import Any

from sully.api.core.checks import Errors, dns_subdomain, label_selector, one_of, same
from sully.api.core.columns import NAME, UNSET, age_cell, plain
from sully.api.core.gotypes import core_type
from sully.api.core.quotas.limits import review_volume_claim
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.quantity import parse_quantity
from sully.machinery.serialization.gostructs import diff
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
VOLUME_MODES = ("Block", "Filesystem")
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for"
    " bound claims"
)


def default_claim_spec(spec: Obj) -> None:
    """Fill in the volume mode, and align the two ways to name a data source."""
    spec.setdefault("volumeMode", "Filesystem")


def claim_spec(spec: Obj, at: Path) -> Errors:
    """Check what a claim requests, in a claim or a template."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield at.child("accessModes").required("at least 1 access mode is required")
    yield from label_selector(spec.get("selector"), at.child("selector"))
    yield from access_modes(modes, at.child("accessModes"))
    yield from _storage(spec["resources"].get("requests") or {}, at.child("resources"))
    if spec.get("storageClassName"):
        yield from dns_subdomain(spec["storageClassName"], at.child("storageClassName"))
    if "volumeMode" in spec:
        yield from one_of(spec["volumeMode"], VOLUME_MODES, at.child("volumeMode"))
    for name in ("dataSource", "dataSourceRef"):
        if name in spec:
            yield from _source(spec[name], at.child(name))
    yield from _same_source(spec, at)
    if spec.get("volumeAttributesClassName"):
        name = "volumeAttributesClassName"
        yield from dns_subdomain(spec[name], at.child(name))


def access_modes(modes: list[str], at: Path) -> Errors:
    """Check the names of access modes, and that the exclusive one is alone."""
    for mode in modes:
        yield from one_of(mode, tuple(ACCESS_MODES), at)
    known = set(modes) & ACCESS_MODES.keys()
    if "ReadWriteOncePod" in known and len(known) > 1:
        yield at.forbidden("may not use ReadWriteOncePod with other access modes")


def _storage(requests: Obj, at: Path) -> Errors:
    amount, at = requests.get("storage"), at.key("storage")
    if amount is None:
        yield at.required()
    elif parse_quantity(amount).sign() <= 0:
        yield at.invalid(amount, "must be greater than zero")


def _source(source: Obj, at: Path) -> Errors:
    for name in ("name", "kind"):
        if not source.get(name):
            yield at.child(name).required()
    group, kind = source.get("apiGroup", ""), source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield at.invalid(kind, text)
    if group:
        yield from dns_subdomain(group, at.child("apiGroup"))


def _same_source(spec: Obj, at: Path) -> Errors:
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if old is None or new is None:
        return
    if new.get("namespace"):
        text = "may not be specified when dataSourceRef.namespace is specified"
        yield at.invalid(str(at.child("dataSource")), text)
    elif any(old.get(name) != new.get(name) for name in ("apiGroup", "kind", "name")):
        yield at.invalid(str(at.child("dataSource")), "must match dataSourceRef")


class ClaimStrategy(Strategy, frozen=True):
    """Writes to the claim itself."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in volume mode and phase."""
        default_claim_spec(obj["spec"])
        obj["status"].setdefault("phase", "Pending")

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start unbound."""
        obj["status"] = {"phase": "Pending"}
        _align_sources(obj["spec"])

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        obj["status"] = old["status"]
        _align_sources(obj["spec"])

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the spec."""
        return claim_spec(obj["spec"], Path("spec"))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and that only what may change does."""
        yield from self.validate_create(obj, ctx)
        new, before = _fixed(obj["spec"], old), old["spec"]
        if not same(new, before):
            shown = diff(before, new, core_type("PersistentVolumeClaimSpec"))
            yield Path("spec").forbidden(f"{_FIXED}\n{shown}")
        sizes = [_size(claim["spec"]["resources"].get("requests")) for claim in (obj, old)]
        if sizes[0] < sizes[1] and sizes[0] <= _size(old["status"].get("capacity")):
            at = Path("spec.resources.requests.storage")
            yield at.forbidden("field can not be less than status.capacity")

    def review(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Enforce the limits of the namespace, except while the claim is being deleted."""
        if old is None or "deletionTimestamp" not in old["metadata"]:
            review_volume_claim(obj, ctx.limit_ranges(obj["metadata"].get("namespace", "")))


class ClaimStatusStrategy(ClaimStrategy, frozen=True):
    """Writes to the status endpoint."""

    def review(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> None:
        """Enforce no limits: the spec is not written here."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the capacity."""
        at = Path("status.capacity")
        for name, amount in sorted((obj["status"].get("capacity") or {}).items()):
            if parse_quantity(amount).sign() < 0:
                yield at.key(name).invalid(amount, f"must be a valid resource quantity: {amount}")


def _align_sources(spec: Obj) -> None:
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if old is not None and new is None:
        spec["dataSourceRef"] = dict(old)
    elif new is not None and old is None and not new.get("namespace"):
        spec["dataSource"] = {name: value for name, value in new.items() if name != "namespace"}


def _fixed(spec: Obj, before: Obj) -> Obj:
    """Return a spec with the old values where it may change after the state `before`."""
    fixed, old = dict(spec), before["spec"]
    may_change = ["volumeName"] if not old.get("volumeName") else []
    if old.get("storageClassName") is None:
        may_change.append("storageClassName")
    if before["status"].get("phase") == "Bound":
        may_change.append("volumeAttributesClassName")
        requests, size = spec["resources"].get("requests"), old["resources"].get("requests") or {}
        if requests and "storage" in size:
            resized = requests | {"storage": size["storage"]}
            fixed["resources"] = spec["resources"] | {"requests": resized}
    for name in may_change:
        fixed.pop(name, None)
        if name in old:
            fixed[name] = old[name]
    return fixed


def _size(amounts: Obj | None) -> int:
    return parse_quantity((amounts or {}).get("storage", "0")).nanos


def modes_cell(modes: list[str] | None) -> str:
    """Write access modes in their short forms, in Kubernetes' order."""
    return ",".join(short for mode, short in ACCESS_MODES.items() if mode in (modes or ()))


def class_cell(obj: Obj) -> str:
    """Return the storage class of a claim or volume."""
    noted = (obj["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
    return str(noted or obj["spec"].get("storageClassName") or "")


def _bound(obj: Obj, shown: Any) -> str:
    return str(shown) if obj["spec"].get("volumeName") else ""


def phase(obj: Obj) -> str:
    """Return the phase of a claim or volume as tables show it."""
    terminating = "deletionTimestamp" in obj["metadata"]
    return "Terminating" if terminating else obj["status"].get("phase", "")


PERSISTENT_VOLUME_CLAIMS = ResourceType(
    group="",
    kind="PersistentVolumeClaim",
    plural="persistentvolumeclaims",
    singular="persistentvolumeclaim",
    namespaced=True,
    versions=(Version("v1", "io.k8s.api.core.v1", delete_returns_object=True),),
    strategy=ClaimStrategy(reset=(("status",),)),
    status=ClaimStatusStrategy(reset=(("spec",),)),
    short_names=("pvc",),
    columns=(
        NAME,
        Column("Status", plain(phase), description="Phase of the claim."),
        Column(
            "Volume",
            plain(lambda obj: obj["spec"].get("volumeName", "")),
            description="Volume that the claim is bound to.",
        ),
        Column(
            "Capacity",
            plain(
                lambda obj: _bound(obj, (obj["status"].get("capacity") or {}).get("storage", "0"))
            ),
            description="Size of the volume.",
        ),
        Column(
            "Access Modes",
            plain(lambda obj: _bound(obj, modes_cell(obj["status"].get("accessModes")))),
            description="How the volume can be mounted.",
        ),
        Column("StorageClass", plain(class_cell), description="Class of the storage."),
        Column(
            "VolumeAttributesClass",
            plain(lambda obj: obj["spec"].get("volumeAttributesClassName", UNSET)),
            description="VolumeAttributesClass of the claim.",
        ),
        Column("Age", age_cell, description="Time since the object was created."),
        Column(
            "VolumeMode",
            plain(lambda obj: obj["spec"].get("volumeMode", UNSET)),
            priority=1,
            description="File system or raw device.",
        ),
    ),
)
