"""EvictionRecords, reduced to what later evictions need.

There may be very many records, so caches hold only this of each.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from sully.machinery.meta import ObjectIdentity, Wire


class Cause(Wire, frozen=True, kw_only=True):
    """The object whose taint evicted a pod, and the identity of the taint."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    key: str = ""
    value: str = ""
    effect: str = ""


class PastEvictionMetadata(ObjectIdentity, frozen=True, kw_only=True):
    """The metadata of a record; its name is the uid of the pod."""


class _PodName(Wire, frozen=True, kw_only=True):
    name: str = ""


class PastEvictionSpec(Wire, frozen=True, kw_only=True):
    """Which pod was evicted when, and why."""

    pod: _PodName = msgspec.field(default_factory=_PodName)
    causes: tuple[Cause, ...] = ()
    evicted_time: datetime


class PastEviction(Wire, frozen=True, kw_only=True):
    """The record of an eviction."""

    metadata: PastEvictionMetadata = msgspec.field(default_factory=PastEvictionMetadata)
    spec: PastEvictionSpec

    def rules(self) -> frozenset[Cause]:
        """Return the rules that evicted the pod."""
        return frozenset(cause for cause in self.spec.causes if cause.kind == "DeviceTaintRule")
