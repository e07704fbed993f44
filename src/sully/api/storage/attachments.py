"""VolumeAttachments: which volume is attached to which node."""

from collections.abc import Iterator
from typing import Any

from sully.api.core.checks import DRIVER_MAX, Errors, dns_subdomain, formatted, same
from sully.api.core.columns import AGE, NAME, plain
from sully.api.core.volumes.persistentvolumes import volume_source
from sully.api.storage.classes import STORAGE
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import caseless_subdomain_problems
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

_ONE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


class AttachmentStrategy(Strategy, frozen=True):
    """Writes to the attachment itself."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start detached."""
        obj["status"] = {"attached": False}

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        obj["status"] = old["status"]

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check driver, volume and node."""
        spec, at = obj["spec"], Path("spec")
        yield from _source(spec["source"], at.child("source"))
        yield from dns_subdomain(spec["nodeName"], at.child("nodeName"))
        yield from _attacher(spec["attacher"], at.child("attacher"))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and that it is about the same volume and node."""
        yield from self.validate_create(obj, ctx)
        if not same(obj["spec"], old["spec"]):
            # Kubernetes does not show the value.
            yield Path("spec").invalid(None, "field is immutable")


class AttachmentStatusStrategy(AttachmentStrategy, frozen=True):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]


def _attacher(name: str, at: Path) -> Errors:
    if not name:
        yield at.required()
        return
    if len(name.encode()) > DRIVER_MAX:
        yield at.too_long(DRIVER_MAX)
    yield from formatted(name, caseless_subdomain_problems, at)


def _source(source: Obj, at: Path) -> Errors:
    named, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if named is None and inline is None:
        yield at.required(_ONE)
    elif named is not None and inline is not None:
        yield at.forbidden(_ONE)
    elif named == "":
        text = "must specify non empty persistentVolumeName"
        yield at.child("persistentVolumeName").required(text)
    elif named is not None:
        yield from dns_subdomain(named, at.child("persistentVolumeName"))
    else:
        yield from volume_source(inline or {}, at.child("inlineVolumeSpec"))


VOLUME_ATTACHMENTS = ResourceType(
    group="storage.k8s.io",
    kind="VolumeAttachment",
    plural="volumeattachments",
    singular="volumeattachment",
    namespaced=False,
    versions=(Version("v1", STORAGE, unconditional_update=False, delete_returns_object=True),),
    strategy=AttachmentStrategy(reset=(("status",),)),
    status=AttachmentStatusStrategy(reset=(("metadata",), ("spec",))),
    columns=(
        NAME,
        Column(
            "Attacher",
            plain(lambda obj: obj["spec"]["attacher"]),
            format="name",
            description="Driver that attaches the volume.",
        ),
        Column(
            "PV",
            plain(lambda obj: obj["spec"]["source"].get("persistentVolumeName", "")),
            description="Name of the volume.",
        ),
        Column("Node", plain(lambda obj: obj["spec"]["nodeName"]), description="Name of the node."),
        Column(
            "Attached",
            plain(lambda obj: obj["status"]["attached"]),
            type="boolean",
            description="Whether the volume is attached.",
        ),
        AGE,
    ),
)
