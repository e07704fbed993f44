"""What happens on a write of ResourcePoolStatusRequests: spec and written status never change.

The checks are in validation/pool_status.py, the answer is `domain/allocation/pools/pool_status.py`.
"""

import msgspec

from sully.api.resource.checks import Errors, options
from sully.api.resource.features import POOL_STATUS_FEATURES, drop_disabled
from sully.api.resource.strategy import NO_STATUS, ONLY_STATUS, SPEC
from sully.api.resource.types import ResourcePoolStatusRequestSpec
from sully.api.resource.validation.conditions import limit_conditions, validate_conditions
from sully.api.resource.validation.pool_status import (
    CONDITIONS_MAX,
    validate_request_spec,
    validate_request_status,
)
from sully.api.resource.validation.slices import IMMUTABLE
from sully.machinery.declared import declared
from sully.machinery.fields import Path
from sully.machinery.meta import Condition
from sully.machinery.strategy import Obj, Strategy, WriteContext, keep_all_but_status

LIMIT = 100
_STATUS = Path("status")


class PoolStatusRequestStrategy(Strategy, frozen=True):
    """Requests: their spec is immutable."""

    reset: tuple[tuple[str, ...], ...] = NO_STATUS

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Limit the number of pools."""
        obj["spec"].setdefault("limit", LIMIT)

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Wipe the status, drop what is switched off."""
        obj.pop("status", None)
        drop_disabled(POOL_STATUS_FEATURES, obj, None, ctx.gates)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status."""
        obj.pop("status", None)
        if "status" in old:
            obj["status"] = old["status"]
        drop_disabled(POOL_STATUS_FEATURES, obj, old, ctx.gates)

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check the spec."""
        spec = msgspec.convert(obj["spec"], ResourcePoolStatusRequestSpec)
        return validate_request_spec(spec, SPEC, options(ctx))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Refuse changes."""
        if obj["spec"] != old["spec"]:
            yield SPEC.invalid(None, IMMUTABLE)


class PoolStatusRequestStatusStrategy(Strategy, frozen=True):
    """The status of requests: written once."""

    reset: tuple[tuple[str, ...], ...] = ONLY_STATUS

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Take everything but the status from the stored object."""
        keep_all_but_status(obj, old)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check a status, or that a written one does not change."""
        status, before = obj.get("status"), old.get("status")
        if status == before:
            return
        if before is not None:
            yield _STATUS.invalid(status, IMMUTABLE)
        if status is None:
            return
        conditions = msgspec.convert(status.get("conditions") or (), tuple[Condition, ...])
        at = _STATUS.child("conditions")
        if before is None:
            yield from validate_conditions(conditions, at)
        # The schema is asked also about a change that is refused.
        yield from validate_request_status(status, _STATUS)
        yield from declared(limit_conditions(conditions, at, CONDITIONS_MAX))
