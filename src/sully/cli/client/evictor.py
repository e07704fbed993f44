"""Which controllers work on a server: only Sully's support pauses and expiry."""

from sully.cli.client.session import Session


async def sully_evicts_at(session: Session) -> bool:
    """Report whether only Sully's controller evicts pods; without access to find out, yes."""
    from sully.client.discovery.capabilities import sully_evicts
    from sully.machinery.errors import Forbidden, NotFound

    try:
        # With --compat reference there are no records, and pauses are not supported.
        await _check_records(session)
        if (await session.transport.control_plane(gates=False)).second_evictor:
            return False
        return await sully_evicts(session.transport)
    except Forbidden:
        return True
    except NotFound:
        return False


async def sully_ends_rules_at(session: Session) -> bool:
    """Report whether a controller may delete expired rules; without access to find out, yes."""
    from sully.machinery.errors import Forbidden, NotFound

    try:
        await _check_records(session)
    except Forbidden:
        return True
    except NotFound:
        return False
    return True


async def _check_records(session: Session) -> None:
    from sully.client.options import ListOptions
    from sully.views.kinds import TAINT_RECORDS

    await session.transport.list(TAINT_RECORDS, "", ListOptions(limit=1))
