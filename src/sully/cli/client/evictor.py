"""Who works on the server at hand: what only Sully does is promised only where it is."""

from sully.cli.client.calling import Session


async def sully_evicts_at(session: Session) -> bool:
    """Say whether it is Sully's controller that evicts; who may not find out is told yes."""
    from sully.client.discovery.capabilities import sully_evicts
    from sully.machinery.errors import Forbidden, NotFound

    try:
        # A server that imitates Kubernetes has no records, nor does its evictor know of pauses.
        await _look_at_records(session)
        return await sully_evicts(session.transport)
    except Forbidden:
        return True
    except NotFound:
        return False


async def sully_ends_rules_at(session: Session) -> bool:
    """Say whether somebody may be there who ends rules; who may not find out is told yes."""
    from sully.machinery.errors import Forbidden, NotFound

    try:
        await _look_at_records(session)
    except Forbidden:
        return True
    except NotFound:
        return False
    return True


async def _look_at_records(session: Session) -> None:
    from sully.client.options import ListOptions
    from sully.views.kinds import TAINT_RECORDS

    await session.transport.list(TAINT_RECORDS, "", ListOptions(limit=1))
