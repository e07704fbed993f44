"""The kinds of the group: what a write of a record may do, and how records are printed.

Records are written by controllers and read by everyone; a record of what happened does not change.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sully.api.core import generations
from sully.api.core.columns import AGE, NAME, NONE, plain, since
from sully.api.sully import SULLY
from sully.api.sully.types import GROUP, VERSION
from sully.api.sully.validation import (
    validate_eviction,
    validate_same,
    validate_taint,
    validate_taint_status,
)
from sully.machinery.fields import FieldError, Path
from sully.machinery.strategy import Column, ResourceType, Strategy, Version, WriteContext

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


def taint_text(taint: Obj) -> str:
    """Write a taint as people do: `key=value:effect`."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"


def _first_cause(obj: Obj) -> Obj:
    causes = obj["spec"].get("causes") or [{}]
    first: Obj = causes[0]
    return first


def _cause(obj: Obj) -> str:
    cause = _first_cause(obj)
    more = len(obj["spec"].get("causes") or ()) - 1
    text = f"{cause.get('kind', '')}/{cause.get('name', '')}"
    return f"{text} and {more} more" if more > 0 else text


def _evicted(obj: Obj, now: datetime) -> str:
    return since(obj["spec"].get("evictedTime"), now)


def _latest_taint(obj: Obj) -> Obj:
    """Return the taint as last seen, or as first seen."""
    taint: Obj = obj.get("status", {}).get("taint") or obj["spec"]["taint"]
    return taint


def _deleted(obj: Obj, now: datetime) -> str:
    deleted = obj.get("status", {}).get("deletedTime")
    return since(deleted, now) if deleted else NONE


EVICTIONS = ResourceType(
    group=GROUP,
    kind="EvictionRecord",
    plural="evictionrecords",
    singular="evictionrecord",
    namespaced=True,
    versions=_ONE_VERSION,
    strategy=EvictionRecordStrategy(),
    short_names=("evr",),
    columns=(
        NAME,
        Column(
            "Pod", plain(lambda obj: obj["spec"]["pod"]["name"]), description="The evicted pod."
        ),
        Column(
            "Node",
            plain(lambda obj: obj["spec"]["pod"].get("node", "")),
            description="Where the pod ran.",
        ),
        Column(
            "Taint",
            plain(lambda obj: taint_text(_first_cause(obj))),
            description="The first of the taints that caused the eviction.",
        ),
        Column("Cause", plain(_cause), description="The object with that taint."),
        Column("Evicted", _evicted, description="How long ago the pod was evicted."),
        AGE,
    ),
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
    columns=(
        NAME,
        Column("Rule", plain(lambda obj: obj["spec"]["rule"]["name"]), description="The rule."),
        Column(
            "Taint",
            plain(lambda obj: taint_text(_latest_taint(obj))),
            description="The taint as last seen.",
        ),
        Column(
            "By",
            plain(lambda obj: obj["spec"].get("createdBy", "")),
            description="Who created the rule.",
        ),
        Column(
            "Evicted",
            plain(lambda obj: obj.get("status", {}).get("evicted", 0)),
            type="integer",
            description="How many pods it evicted.",
        ),
        Column("Deleted", _deleted, description="How long ago the rule was deleted."),
        AGE,
    ),
)
