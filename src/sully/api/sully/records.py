"""The kinds of the group: what a write of a record may do, and how records are printed.

Records are written by controllers and read by everyone; a record of what happened does not change.
"""

from collections.abc import Iterator
from typing import Any

from sully.api.core import generations
from sully.api.sully import SULLY
from sully.api.sully.columns import table
from sully.api.sully.types import GROUP, VERSION
from sully.api.sully.validation import (
    validate_eviction,
    validate_same,
    validate_taint,
    validate_taint_status,
)
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]

_ONE_VERSION = (Version(VERSION, SULLY, delete_returns_object=True),)


class EvictionRecordStrategy(Strategy):
    """The spec is immutable; labels and annotations may change."""

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check a new record."""
        return validate_eviction(obj["spec"], obj["metadata"].get("namespace", ""))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check that what is recorded does not change."""
        return validate_same(obj["spec"], old["spec"])


class TaintRecordStrategy(Strategy):
    """The spec is the rule as first seen and immutable; the status is what happened since."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status."""
        obj["status"] = {}
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        obj["status"] = old.get("status", {})
        generations.follow(obj, old, bump=False)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check a new record."""
        return validate_taint(obj["spec"])

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check that what is recorded does not change."""
        return validate_same(obj["spec"], old["spec"])


class TaintRecordStatusStrategy(Strategy):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]
        generations.follow(obj, old, bump=False)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check counts and changes."""
        return validate_taint_status(obj.get("status", {}), Path("status"))


EVICTIONS = ResourceType(
    group=GROUP,
    kind="EvictionRecord",
    plural="evictionrecords",
    singular="evictionrecord",
    namespaced=True,
    versions=_ONE_VERSION,
    strategy=EvictionRecordStrategy(),
    short_names=("evr",),
    columns=table("EvictionRecord"),
)

TAINTS = ResourceType(
    group=GROUP,
    kind="TaintRecord",
    plural="taintrecords",
    singular="taintrecord",
    namespaced=False,
    versions=_ONE_VERSION,
    strategy=TaintRecordStrategy(reset=(("status",),)),
    status=TaintRecordStatusStrategy(reset=(("spec",),)),
    short_names=("tr",),
    columns=table("TaintRecord"),
)
