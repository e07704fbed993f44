"""What writes to the kinds of this group share: clients write the spec, controllers the status."""

from typing import Any

import msgspec

from sully.api.core import generations
from sully.api.core.checks import Errors
from sully.api.resource.annotations import keep_author
from sully.api.resource.validation.conditions import limit_conditions, validate_conditions
from sully.api.sully import SULLY
from sully.api.sully.types import VERSION
from sully.machinery.fields import Path
from sully.machinery.meta import Condition
from sully.machinery.strategy import Strategy, Version, WriteContext

Obj = dict[str, Any]

SPEC = Path("spec")
STATUS = Path("status")
VERSIONS = (Version(VERSION, SULLY, delete_returns_object=True),)
NO_STATUS = (("status",),)
ONLY_STATUS = (("metadata",), ("spec",))


class SpecStrategy(Strategy, frozen=True):
    """Writes to the object itself: the status stays, a new spec counts as a change."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status."""
        obj["status"] = {}
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status, count changes."""
        obj["status"] = old.get("status", {})
        # An empty selector is not an absent one.
        generations.follow(obj, old, bump=obj["spec"] != old["spec"])

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check the new state like a new object."""
        return self.validate_create(obj, ctx)


class AuthoredStrategy(SpecStrategy, frozen=True):
    """Writes to objects that users create: the user is recorded."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status."""
        super().prepare_create(obj, ctx)
        keep_author(obj, None, ctx)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status and the author, count changes."""
        super().prepare_update(obj, old, ctx)
        keep_author(obj, old, ctx)


class StatusStrategy(Strategy, frozen=True):
    """Writes to the status endpoint: only the status changes."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        generations.keep_spec(obj, old)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check conditions."""
        conditions = obj.get("status", {}).get("conditions", [])
        typed = msgspec.convert(conditions, tuple[Condition, ...])
        yield from validate_conditions(typed, STATUS.child("conditions"))
        yield from limit_conditions(typed, STATUS.child("conditions"))
