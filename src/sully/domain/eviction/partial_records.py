"""EvictionRecords, reduced to what later evictions need, as PartialObjectMetadata is for any kind.

There may be very many records, so caches hold only this of each.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from sully.machinery.meta import ObjectIdentity, Wire


class PartialEvictionCause(Wire, frozen=True, kw_only=True):
    """The object whose taint evicted a pod, and the identity of the taint."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    key: str = ""
    value: str = ""
    effect: str = ""


class PartialEvictionRecordMetadata(ObjectIdentity, frozen=True, kw_only=True):
    """The metadata of a record; its name is the uid of the pod."""


class _PodName(Wire, frozen=True, kw_only=True):
    name: str = ""


class PartialEvictionRecordSpec(Wire, frozen=True, kw_only=True):
    """Which pod was evicted when, and why."""

    pod: _PodName = msgspec.field(default_factory=_PodName)
    causes: tuple[PartialEvictionCause, ...] = ()
    evicted_time: datetime


class PartialEvictionRecord(Wire, frozen=True, kw_only=True):
    """The record of an eviction."""

    metadata: PartialEvictionRecordMetadata = msgspec.field(
        default_factory=PartialEvictionRecordMetadata
    )
    spec: PartialEvictionRecordSpec

    def rules(self) -> frozenset[PartialEvictionCause]:
        """Return the rules that evicted the pod."""
        return frozenset(cause for cause in self.spec.causes if cause.kind == "DeviceTaintRule")
