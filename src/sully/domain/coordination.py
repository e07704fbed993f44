"""Leases, with all their fields: who reads one as this may write it back."""

from __future__ import annotations

from datetime import datetime

from sully.machinery.meta import ObjectMeta, Wire


class LeaseSpec(Wire, frozen=True, kw_only=True):
    """Who holds a lease, and since when."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Wire, frozen=True, kw_only=True):
    """A record by which processes agree who leads, or show that they are alive."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()

    @property
    def holder(self) -> str:
        """Return who holds it; empty if nobody does."""
        return self.spec.holder_identity or ""
