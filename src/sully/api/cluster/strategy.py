"""What a write to a custom resource does: prune, default, validate, count generations.

All kinds of the group go through here; clusters.py, sets.py and placements.py add what their
admission does. `default` refuses what is misshapen, since no later step could read it;
every other problem is reported by validation.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sully.api.cluster.schemas import schema
from sully.api.cluster.types import GROUP
from sully.api.core import generations
from sully.machinery.customresources.structural import fill, problems, status_problems
from sully.machinery.customresources.validation import is_misshapen
from sully.machinery.errors import ApiError, BadRequest, Forbidden, forbidden, invalid
from sully.machinery.fields import FieldError
from sully.machinery.strategy import Strategy, WriteContext, keep_all_but_status

Obj = dict[str, Any]

MOST_WARNINGS = 20
"""How many a client gets about one object; each is a header of the response."""


class CustomStrategy(Strategy, frozen=True):
    """Writes to the main endpoint: everything but the status."""

    version: str = ""
    kind: str = ""
    reset: tuple[tuple[str, ...], ...] = (("status",),)

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Drop the status, which has its own endpoint, and set defaults."""
        obj.pop("status", None)
        fill(obj, schema(self.version, self.kind))
        refuse_misshapen(obj, self.kind, problems(obj, schema(self.version, self.kind)))

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start the generation."""
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status, count changes of everything else."""
        generations.follow(obj, old, bump=_without_status(obj) != _without_status(old))
        if "status" in old:
            obj["status"] = old["status"]

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check a new object."""
        return problems(obj, schema(self.version, self.kind))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check a changed object."""
        return problems(obj, schema(self.version, self.kind))

    def validate_finalizer(self, name: str) -> Sequence[str]:
        """Allow names without a domain: that of a custom resource is its controller's own."""
        return ()


class CustomStatusStrategy(Strategy, frozen=True):
    """Writes to the status endpoint: nothing but the status."""

    version: str = ""
    kind: str = ""
    reset: tuple[tuple[str, ...], ...] = (("metadata",), ("spec",))

    def default(self, obj: Obj, ctx: WriteContext) -> None:
        """Set defaults; only the status is read."""
        fill(obj, schema(self.version, self.kind))
        obj.pop("spec", None)
        refuse_misshapen(obj, self.kind, status_problems(obj, schema(self.version, self.kind)))

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Take everything but the status from the stored object."""
        keep_all_but_status(obj, old)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Iterator[FieldError]:
        """Check the new status."""
        return status_problems(obj, schema(self.version, self.kind))


def refuse_misshapen(obj: Obj, kind: str, problems: Iterator[FieldError]) -> None:
    """Raise the error for an object of the wrong types."""
    errors = list(problems)
    if any(map(is_misshapen, errors)):
        raise invalid(kind, GROUP, obj["metadata"].get("name", ""), errors)


def _without_status(obj: Obj) -> Obj:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def denied_badly(webhook: str, why: str) -> BadRequest:
    """Return the error of OCM's admission for an invalid request."""
    return BadRequest(f"{_prefix(webhook)}{why}")


class UnreadableError(ApiError):
    """An object that a webhook cannot read; unlike other denials it has no reason."""

    code = 400


def denied_unread(webhook: str, why: str) -> UnreadableError:
    """Return the error of OCM's admission for an object that is not of the type it has."""
    return UnreadableError(f"{_prefix(webhook)}{why}")


def denied(webhook: str, resource: str, name: str, why: str) -> Forbidden:
    """Return the error of OCM's admission for a request without permission."""
    error = forbidden(resource, GROUP, name, why)
    error.message = f"{_prefix(webhook)}{error.message}"
    return error


def _prefix(webhook: str) -> str:
    # OCM checks in webhooks, and the API server names them; clients know the texts.
    return f'admission webhook "{webhook}.admission.{GROUP}" denied the request: '
