"""Writes the list of conditions, if one of them changed.

A merge patch replaces the whole list and must not undo concurrent writes. So it has uid and
resourceVersion as preconditions: if the object changed, the patch conflicts and is retried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Kind, Transport
from sully.domain.placement.results.conditions import PlacementCondition, merge_conditions
from sully.machinery.formats.timestamps import format_time
from sully.machinery.meta import Condition, ObjectMeta

Obj = dict[str, Any]


class _Status(Protocol):
    @property
    def conditions(self) -> tuple[Condition, ...]: ...


class Conditioned(Protocol):
    """An object whose status has conditions."""

    @property
    def metadata(self) -> ObjectMeta:
        """Return its metadata."""
        ...

    @property
    def status(self) -> _Status:
        """Return its status."""
        ...


T = TypeVar("T", bound=Conditioned)


async def write_conditions(  # noqa: PLR0913 - which conditions of what, by whom and when
    transport: Transport,
    kind: Kind[T],
    obj: T,
    findings: Sequence[PlacementCondition],
    *,
    now: datetime,
    field_manager: str,
    other_fields: Mapping[str, Any] | None = None,
) -> bool:
    """Write changed conditions and other fields of the status; return whether there were any."""
    conditions = merge_conditions(obj.status.conditions, findings, now)
    if conditions == obj.status.conditions and not other_fields:
        return False
    status = {**(other_fields or {}), "conditions": list(map(encode_condition, conditions))}
    patch = preconditions(obj.metadata) | {"status": status}
    options = WriteOptions(field_manager=field_manager)
    await transport.patch(kind, key_of(obj), patch, subresource="status", options=options)
    return True


def preconditions(metadata: ObjectMeta) -> Obj:
    """Return the start of a patch that conflicts unless the object is this one, unchanged."""
    return {"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}}


def encode_condition(condition: Condition) -> Obj:
    """Return the JSON form of a condition."""
    body: Obj = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
    if condition.last_transition_time is not None:
        body["lastTransitionTime"] = format_time(condition.last_transition_time)
    if condition.observed_generation:
        body["observedGeneration"] = condition.observed_generation
    return body
