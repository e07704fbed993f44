"""Whether some controller holds its lease."""

from __future__ import annotations

from datetime import datetime, timedelta

from sully.domain.coordination import Lease
from sully.domain.diagnosis.findings import Finding, failure, ok, warning
from sully.machinery.formats.timestamps import human_duration


def check_lease(name: str, lease: Lease | None, now: datetime, *, needed: bool) -> Finding:
    """Check a lease of controllers; None: there is none, which is wrong only where one is needed.

    A server that is the only one on its store runs its controllers without a lease.
    """
    check = f"lease {name}"
    start = "start the controllers: 'sully up', 'sully controllers' or 'sully install'"
    if lease is None and not needed:
        return ok(check, "is not used: the server runs its controllers itself")
    if lease is None:
        return warning(check, "does not exist: no controllers have run here", start)
    holder, renewed = lease.holder, lease.spec.renew_time
    if not holder:
        return failure(check, "is held by nobody: no controller runs", start)
    if renewed is None:
        return failure(check, f"is held by {holder} and has no renewTime", start)
    age = now - renewed
    if age > timedelta(seconds=lease.spec.lease_duration_seconds or 0):
        ago = human_duration(max(0, int(age.total_seconds())))
        return failure(check, f"is stale: {holder} renewed it {ago} ago", start)
    return ok(check, f"is held by {holder}")
