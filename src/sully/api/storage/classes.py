"""StorageClasses: from what, and when, volumes are provisioned."""

from collections.abc import Iterator
from typing import Any

from sully.api.core.checks import Errors, formatted, label_key, one_of, same
from sully.api.core.columns import NAME, UNSET, age_cell, plain
from sully.machinery.declared import declared
from sully.machinery.fields import FieldError, Path
from sully.machinery.formats.names import label_key_problems, label_value_problems
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

STORAGE = "io.k8s.api.storage.v1"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_OLD_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"
_MOST_PARAMETERS = 512
_MOST_BYTES = 256 * 1024
_FIXED = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")


class ClassStrategy(Strategy, frozen=True):
    """Writes to storage classes."""

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Fill in reclaim policy and binding mode."""
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check provisioner, parameters, policies and topologies."""
        provisioner = obj["provisioner"]
        if not provisioner:
            yield from declared([Path("provisioner").required()])
        for text in label_key_problems(provisioner.lower()) if provisioner else ():
            yield Path("provisioner").invalid(provisioner.lower(), text)
        yield from _parameters(obj.get("parameters") or {})
        if obj["reclaimPolicy"]:
            yield from one_of(obj["reclaimPolicy"], ("Delete", "Retain"), Path("reclaimPolicy"))
        modes = ("Immediate", "WaitForFirstConsumer")
        yield from one_of(obj["volumeBindingMode"], modes, Path("volumeBindingMode"))
        for position, term in enumerate(obj.get("allowedTopologies") or ()):
            yield from _topology(term, Path("allowedTopologies").index(position))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new state, and what must stay."""
        yield from self.validate_create(obj, ctx)
        for name in _FIXED:
            if not same(obj.get(name), old.get(name)):
                # Kubernetes does not show the value.
                yield from declared([Path(name).invalid(None, "field is immutable")])


def _parameters(parameters: dict[str, str]) -> Errors:
    at = Path("parameters")
    if len(parameters) > _MOST_PARAMETERS:
        yield at.too_long(_MOST_PARAMETERS)
        return
    if "" in parameters:
        yield at.invalid("", "field can not be empty.")
    if sum(len(k.encode()) + len(v.encode()) for k, v in parameters.items()) > _MOST_BYTES:
        yield at.too_long(_MOST_BYTES)


def _topology(term: Obj, at: Path) -> Errors:
    keys: set[str] = set()
    for position, requirement in enumerate(term.get("matchLabelExpressions") or ()):
        here, key = at.child("matchLabelExpressions").index(position), requirement.get("key", "")
        values, inside = requirement.get("values") or [], here.child("values")
        if not values:
            yield inside.required()
        for index, value in enumerate(values):
            if value in values[:index]:
                yield inside.index(index).duplicate(value)
            yield from formatted(value, label_value_problems, inside.index(index))
        yield from label_key(key, here.child("key"))
        if key in keys:
            yield here.child("key").duplicate(key)
        keys.add(key)


def _name(obj: Obj) -> str:
    notes = obj["metadata"].get("annotations") or {}
    default = "true" in (notes.get(_DEFAULT), notes.get(_OLD_DEFAULT))
    return f"{obj['metadata']['name']} (default)" if default else str(obj["metadata"]["name"])


STORAGE_CLASSES = ResourceType(
    group="storage.k8s.io",
    kind="StorageClass",
    plural="storageclasses",
    singular="storageclass",
    namespaced=False,
    versions=(Version("v1", STORAGE, delete_returns_object=True),),
    strategy=ClassStrategy(),
    short_names=("sc",),
    columns=(
        Column(NAME.name, plain(_name), format=NAME.format, description=NAME.description),
        Column(
            "Provisioner",
            plain(lambda obj: obj["provisioner"]),
            description="Driver that provisions the volumes.",
        ),
        Column(
            "ReclaimPolicy",
            plain(lambda obj: obj.get("reclaimPolicy", "Delete")),
            description="Reclaim policy of the volumes.",
        ),
        Column(
            "VolumeBindingMode",
            plain(lambda obj: obj.get("volumeBindingMode", UNSET)),
            description="When claims are bound.",
        ),
        Column(
            "AllowVolumeExpansion",
            plain(lambda obj: obj.get("allowVolumeExpansion", False)),
            description="Whether claims can be expanded.",
        ),
        Column("Age", age_cell, description="Time since the object was created."),
    ),
)
