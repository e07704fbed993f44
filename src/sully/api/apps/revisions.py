"""ControllerRevisions: the templates that StatefulSets and DaemonSets have and had."""

from collections.abc import Iterator
from typing import Any

from sully.api.apps.workloads import APPS
from sully.api.core.checks import not_negative, unchanged
from sully.api.core.columns import AGE, NAME, NONE, plain
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]


class ControllerRevisionStrategy(Strategy, frozen=True):
    """Writes to revisions, whose data is immutable."""

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check number and data."""
        yield from not_negative(obj["revision"], Path("revision"))
        if obj.get("data") is None:
            yield Path("data").required("data is mandatory")

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the number, and that the data stays."""
        yield from not_negative(obj["revision"], Path("revision"))
        yield from unchanged(obj.get("data"), old.get("data"), Path("data"))


def _controller(obj: Obj) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = f"{owner['kind'].lower()}.{group}" if group else owner["kind"].lower()
            return f"{kind}/{owner['name']}"
    return NONE


CONTROLLER_REVISIONS = ResourceType(
    group="apps",
    kind="ControllerRevision",
    plural="controllerrevisions",
    singular="controllerrevision",
    namespaced=True,
    versions=(Version("v1", APPS),),
    strategy=ControllerRevisionStrategy(),
    columns=(
        NAME,
        Column("Controller", plain(_controller), description="Owner of the revision."),
        Column("Revision", plain(lambda obj: obj["revision"]), description="Its number."),
        AGE,
    ),
)
