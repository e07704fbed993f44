"""PersistentVolumes: storage that claims are bound to. Stored; no controller binds them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from sully.api.core.checks import Errors, dns_subdomain, driver_name, one_of, same
from sully.api.core.columns import NAME, UNSET, age_cell, plain
from sully.api.core.gotypes import core_type
from sully.api.core.pods.spec.paths import no_backsteps
from sully.api.core.pods.spec.scheduling import node_selector
from sully.api.core.pods.spec.volumes import MANY
from sully.api.core.volumes.persistentvolumeclaims import (
    VOLUME_MODES,
    access_modes,
    class_cell,
    modes_cell,
    phase,
)
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.quantity import parse_quantity
from sully.machinery.formats.timestamps import format_time
from sully.machinery.schema import ObjectType
from sully.machinery.serialization.gostructs import diff
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
# Volume sources with the fields that each must have, in the order in which they are checked.
_SOURCES: Mapping[str, tuple[str, ...]] = {
    "hostPath": ("path",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "glusterfs": ("endpoints", "path"),
    "flocker": (),
    "nfs": ("server", "path"),
    "rbd": ("monitors", "image"),
    "quobyte": ("registry", "volume"),
    "cephfs": ("monitors",),
    "iscsi": ("targetPortal", "iqn"),
    "cinder": ("volumeID",),
    "fc": (),
    "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "local": ("path",),
    "storageos": ("volumeName",),
    "csi": ("volumeHandle",),
}


def volume_source(spec: Obj, at: Path) -> Errors:
    """Check that there is exactly one source, and that it points somewhere."""
    sources = [name for name in _SOURCES if name in spec]
    for name in sources[1:]:
        yield at.child(name).forbidden(MANY)
    for name in sources[:1]:
        source, here = spec[name], at.child(name)
        if name == "csi":
            yield from driver_name(source.get("driver", ""), here.child("driver"))
        for field in _SOURCES[name]:
            if not source.get(field):
                yield here.child(field).required()
        if name in ("hostPath", "local") and source.get("path"):
            yield from no_backsteps(source["path"], here.child("path"))
        if name == "nfs" and source.get("path") and not source["path"].startswith("/"):
            yield here.child("path").invalid(source["path"], "must be an absolute path")
        if name == "local" and "nodeAffinity" not in spec:
            yield at.child("nodeAffinity").required("Local volume requires node affinity")
    if not sources:
        yield at.required("must specify a volume type")


def _capacity(capacity: Obj, at: Path) -> Errors:
    if not capacity:
        yield at.required()
    if [*capacity] != ["storage"]:
        yield at.not_supported(dict(sorted(capacity.items())) or None, ("storage",))
    for name, amount in sorted(capacity.items()):
        if parse_quantity(amount).sign() <= 0:
            yield at.key(name).invalid(amount, "must be greater than zero")


class VolumeStrategy(Strategy, frozen=True):
    """Writes to the volume itself."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in phase, reclaim policy and volume mode."""
        spec = obj["spec"]
        obj["status"].setdefault("phase", "Pending")
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        if "hostPath" in spec:
            spec["hostPath"].setdefault("type", "")

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start in the phase Pending."""
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": format_time(ctx.now)}

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        obj["status"] = old["status"]

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check access modes, capacity, policies, node affinity and the source."""
        spec, at = obj["spec"], Path("spec")
        modes = spec.get("accessModes") or []
        if not modes:
            yield at.child("accessModes").required()
        yield from access_modes(modes, at.child("accessModes"))
        yield from _capacity(spec.get("capacity") or {}, at.child("capacity"))
        policy = spec["persistentVolumeReclaimPolicy"]
        yield from one_of(policy, RECLAIM_POLICIES, at.child("persistentVolumeReclaimPolicy"))
        if "nodeAffinity" in spec:
            required = at.child("nodeAffinity", "required")
            if "required" in spec["nodeAffinity"]:
                yield from node_selector(spec["nodeAffinity"]["required"], required)
            else:
                yield required.required("must specify required node constraints")
        yield from volume_source(spec, at)
        if spec.get("storageClassName"):
            yield from dns_subdomain(spec["storageClassName"], at.child("storageClassName"))
        yield from one_of(spec["volumeMode"], VOLUME_MODES, at.child("volumeMode"))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and that source, mode and nodes stay."""
        yield from self.validate_create(obj, ctx)
        new, before = obj["spec"], old["spec"]
        if any(not same(new.get(name), before.get(name)) for name in _SOURCES):
            shown = diff(before, new, _source_type())
            text = f"spec.persistentvolumesource is immutable after creation\n{shown}"
            yield Path("spec.persistentvolumesource").forbidden(text)
        # Kubernetes leaves spec out of these two paths.
        if new["volumeMode"] != before.get("volumeMode"):
            yield Path("volumeMode").invalid(new["volumeMode"], "field is immutable")
        nodes, fixed = new.get("nodeAffinity"), before.get("nodeAffinity")
        if fixed is not None and not same(nodes, fixed):
            yield Path("nodeAffinity").invalid(nodes, "field is immutable")


class VolumeStatusStrategy(VolumeStrategy, frozen=True):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec; note when the phase changes."""
        obj["spec"] = old["spec"]
        status, before = obj["status"], old["status"]
        since = before.get("lastPhaseTransitionTime")
        if status.get("phase") != before.get("phase"):
            if status.get("lastPhaseTransitionTime", since) == since:
                status["lastPhaseTransitionTime"] = format_time(ctx.now)
        elif since is not None:
            status.setdefault("lastPhaseTransitionTime", since)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Accept every status, as Kubernetes does."""
        return iter(())


@cache
def _source_type() -> ObjectType:
    """Return the struct that Go embeds in the spec: the sources alone."""
    spec = core_type("PersistentVolumeSpec")
    fields = {name: spec.fields[name] for name in _SOURCES}
    order = tuple(name for name in spec.order if name in fields)
    return ObjectType(spec.package, "PersistentVolumeSource", spec.doc, fields=fields, order=order)


def _claim(obj: Obj, _now: datetime) -> str:
    claim = obj["spec"].get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _spec(name: str, otherwise: str = "") -> Any:
    return plain(lambda obj: obj["spec"].get(name, otherwise))


PERSISTENT_VOLUMES = ResourceType(
    group="",
    kind="PersistentVolume",
    plural="persistentvolumes",
    singular="persistentvolume",
    namespaced=False,
    versions=(Version("v1", "io.k8s.api.core.v1", delete_returns_object=True),),
    strategy=VolumeStrategy(reset=(("status",),)),
    status=VolumeStatusStrategy(reset=(("spec",),)),
    short_names=("pv",),
    columns=(
        NAME,
        Column(
            "Capacity",
            plain(lambda obj: (obj["spec"].get("capacity") or {}).get("storage", "0")),
            description="Size of the volume.",
        ),
        Column(
            "Access Modes",
            plain(lambda obj: modes_cell(obj["spec"].get("accessModes"))),
            description="How the volume can be mounted.",
        ),
        Column(
            "Reclaim Policy",
            _spec("persistentVolumeReclaimPolicy"),
            description="What happens when the claim is deleted.",
        ),
        Column("Status", plain(phase), description="Phase of the volume."),
        Column("Claim", _claim, description="Claim that the volume is bound to."),
        Column("StorageClass", plain(class_cell), description="Class of the storage."),
        Column(
            "VolumeAttributesClass",
            _spec("volumeAttributesClassName", UNSET),
            description="VolumeAttributesClass of the volume.",
        ),
        Column(
            "Reason",
            plain(lambda obj: obj["status"].get("reason", "")),
            description="Reason of a failure.",
        ),
        Column("Age", age_cell, description="Time since the object was created."),
        Column(
            "VolumeMode",
            _spec("volumeMode", UNSET),
            priority=1,
            description="File system or raw device.",
        ),
    ),
)
