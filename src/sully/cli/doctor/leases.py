"""Reads a lease of controllers from a server."""

from sully.cli.client.session import Session
from sully.client.leases import LEASES
from sully.client.transport import Key
from sully.domain.coordination import Lease
from sully.domain.diagnosis.findings import Finding, warning
from sully.domain.diagnosis.leases import check_lease
from sully.machinery.errors import Forbidden, NotFound


async def lease_finding(session: Session, key: Key, *, needed: bool) -> Finding:
    """Check one lease."""
    lease: Lease | None = None
    try:
        lease = await session.transport.get(LEASES, key)
    except NotFound:
        pass
    except Forbidden as error:
        return not_readable(f"lease {key}", error)
    return check_lease(str(key), lease, session.clock.now(), needed=needed)


def not_readable(check: str, error: Forbidden) -> Finding:
    """Return that the user may not read what a check needs."""
    return warning(check, f"not checked: {error.message}", "use a user who may read this")
