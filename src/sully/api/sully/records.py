"""The kinds of the group: what a write of a record may do, and how records are printed.

Records are written by controllers and read by everyone; a record of what happened does not change.
"""

from typing import Any

from sully.api.core import generations
from sully.api.core.checks import Errors
from sully.api.sully.columns import table
from sully.api.sully.record_validation import (
    validate_eviction,
    validate_same,
    validate_taint,
    validate_taint_status,
)
from sully.api.sully.strategies import NO_STATUS, STATUS, VERSIONS, SpecStrategy, StatusStrategy
from sully.api.sully.types import GROUP
from sully.machinery.strategy import ResourceType, Strategy, WriteContext

Obj = dict[str, Any]


class EvictionRecordStrategy(Strategy, frozen=True):
    """The spec is immutable; labels and annotations may change."""

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new record."""
        return validate_eviction(obj["spec"], obj["metadata"].get("namespace", ""))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check that what is recorded does not change."""
        return validate_same(obj["spec"], old["spec"])


class TaintRecordStrategy(SpecStrategy, frozen=True):
    """The spec is the rule as first seen and immutable; the status is what happened since."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        obj["status"] = old.get("status", {})
        generations.follow(obj, old, bump=False)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new record."""
        return validate_taint(obj["spec"])

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check that what is recorded does not change."""
        return validate_same(obj["spec"], old["spec"])


class TaintRecordStatusStrategy(StatusStrategy, frozen=True):
    """Writes to the status endpoint."""

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check counts and changes."""
        return validate_taint_status(obj.get("status", {}), STATUS)


EVICTIONS = ResourceType(
    group=GROUP,
    kind="EvictionRecord",
    plural="evictionrecords",
    singular="evictionrecord",
    namespaced=True,
    versions=VERSIONS,
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
    versions=VERSIONS,
    strategy=TaintRecordStrategy(reset=NO_STATUS),
    status=TaintRecordStatusStrategy(reset=(("spec",),)),
    short_names=("tr",),
    columns=table("TaintRecord"),
)
