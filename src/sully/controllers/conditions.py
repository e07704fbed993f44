"""Writes conditions, the whole list, and only if they changed.

A list that is written whole must not undo concurrent writes: such a write carries
uid and version, comes to nothing if the object changed, and the loop of the controller tries again
with the newer one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from sully.client.objects import key_of
from sully.client.options import WriteOptions
from sully.client.transport import Kind, Transport
from sully.domain.placement.conditions import Finding, merge_conditions
from sully.machinery.meta import Condition, ObjectMeta
from sully.machinery.timestamps import format_time

Obj = dict[str, Any]


class _Status(Protocol):
    @property
    def conditions(self) -> tuple[Condition, ...]: ...


class Conditioned(Protocol):
    """An object whose status has conditions."""

    @property
    def metadata(self) -> ObjectMeta:
        """Return which object it is."""
        ...

    @property
    def status(self) -> _Status:
        """Return what is known of it."""
        ...


T = TypeVar("T", bound=Conditioned)


async def write_conditions(  # noqa: PLR0913 - who says what about whom, and when
    transport: Transport,
    kind: Kind[T],
    obj: T,
    findings: Sequence[Finding],
    *,
    now: datetime,
    by: str,
    besides: Mapping[str, Any] | None = None,
) -> bool:
    """Write changed conditions, or other parts of the status; say whether anything changed."""
    wanted = merge_conditions(obj.status.conditions, findings, now)
    if wanted == obj.status.conditions and not besides:
        return False
    status = {**(besides or {}), "conditions": [written(condition) for condition in wanted]}
    patch, options = same(obj.metadata) | {"status": status}, WriteOptions(field_manager=by)
    await transport.patch(kind, key_of(obj), patch, subresource="status", options=options)
    return True


def same(metadata: ObjectMeta) -> Obj:
    """Begin a patch that is for one version of one object."""
    return {"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}}


def written(condition: Condition) -> Obj:
    """Return a condition as it goes over the wire."""
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
