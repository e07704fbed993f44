"""Namespaces: the scopes of names.

A namespace is deleted in two steps: a delete only sets the deletionTimestamp, and the controllers
named in `spec.finalizers` empty it and then call the finalize endpoint (`finalized` below). The
server sets the timestamp.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sully.api.core.checks import formatted
from sully.api.core.columns import AGE, NAME, plain
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import dns_label_problems, label_key_problems
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"
_STANDARD_FINALIZERS = (FINALIZER, "orphan", "foregroundDeletion")
_NOT_A_FINALIZER = "name is neither a standard finalizer name nor is it fully qualified"


def _label(obj: Obj) -> None:
    name = obj["metadata"].get("name")
    if name:
        obj["metadata"].setdefault("labels", {})[NAME_LABEL] = name


def validate_finalizers(obj: Obj) -> Iterator[FieldError]:
    """Check the names of the finalizers of a new namespace."""
    at = Path("spec.finalizers")
    for name in obj["spec"].get("finalizers") or ():
        yield from formatted(name, label_key_problems, at)
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            yield at.invalid(name, _NOT_A_FINALIZER)


class NamespaceStrategy(Strategy, frozen=True):
    """Writes to the namespace itself; finalizers and status have endpoints of their own."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Set the label with its name, and the first phase."""
        _label(obj)
        obj["status"].setdefault("phase", "Active")

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start active, with the finalizer that makes deletion wait for the content."""
        _label(obj)  # again: a generated name was not known before
        obj["status"] = {"phase": "Active"}
        finalizers = obj["spec"].setdefault("finalizers", [])
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep finalizers and status."""
        obj["spec"] = old["spec"]
        obj["status"] = old["status"]

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the finalizers."""
        return validate_finalizers(obj)

    def validate_name(self, name: str) -> Sequence[str]:
        """Allow DNS labels only: namespaces become parts of host names."""
        return dns_label_problems(name)


class NamespaceStatusStrategy(NamespaceStrategy, frozen=True):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep everything but the status."""
        obj["spec"] = old["spec"]

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check that the phase agrees with the deletion timestamp."""
        phase, at = obj["status"].get("phase", ""), Path("status.Phase")
        if "deletionTimestamp" in obj["metadata"]:
            if phase != "Terminating":
                text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
                yield at.invalid(phase, text)
        elif phase != "Active":
            yield at.invalid(phase, "may only be 'Active' if `deletionTimestamp` is empty")


class NamespaceFinalizeStrategy(Strategy, frozen=True):
    """Writes to the finalize endpoint: the namespace with its finalizers in the spec.

    Once there is none and a deletion was requested, the server removes the namespace.
    """

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        obj["status"] = old["status"]

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the names of the finalizers."""
        for position, name in enumerate(obj["spec"].get("finalizers") or ()):
            at = Path("spec.finalizers").index(position)
            yield from formatted(name, label_key_problems, at)
            if "/" not in name and name not in _STANDARD_FINALIZERS:
                yield at.invalid(name, _NOT_A_FINALIZER)


FINALIZE = NamespaceFinalizeStrategy(reset=(("status",),))


def finalized(old: Obj, sent: Obj) -> Obj:
    """Return the namespace as it was sent, with the status that it has."""
    version = sent["metadata"].get("resourceVersion") or old["metadata"]["resourceVersion"]
    metadata = {**sent["metadata"], "resourceVersion": version}
    namespace = {"metadata": metadata, "spec": sent["spec"], "status": old["status"]}
    _label(namespace)
    return namespace


def _phase(obj: Obj) -> str:
    return str(obj["status"].get("phase", ""))


def unsupported_label(_group: str, _version: str, _kind: str, label: str) -> str:
    """Return the error text for a field selector that the core kinds do not support."""
    return f"field label not supported: {label}"


NAMESPACES = ResourceType(
    group="",
    kind="Namespace",
    plural="namespaces",
    singular="namespace",
    namespaced=False,
    versions=(Version("v1", "io.k8s.api.core.v1"),),
    strategy=NamespaceStrategy(reset=(("status",),)),
    status=NamespaceStatusStrategy(reset=(("spec",),)),
    connect=("finalize",),
    short_names=("ns",),
    columns=(
        NAME,
        Column("Status", plain(_phase), description="Where the namespace is in its life."),
        AGE,
    ),
    selectable={"status.phase": _phase},
    unknown_label=unsupported_label,
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
)
