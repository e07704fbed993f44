"""Who evicts on the server at hand: commands promise pauses and counts only where Sully does."""

from sully.cli.client.calling import Session


async def sully_evicts_at(session: Session) -> bool:
    """Say whether it is Sully's controller that evicts; who may not find out is told yes."""
    from sully.client.capabilities import sully_evicts
    from sully.client.options import ListOptions
    from sully.machinery.errors import Forbidden, NotFound
    from sully.views.snapshotkinds import TAINT_RECORDS

    try:
        # A server that imitates Kubernetes has no records, nor does its evictor know of pauses.
        await session.transport.list(TAINT_RECORDS, "", ListOptions(limit=1))
        return await sully_evicts(session.transport)
    except Forbidden:
        return True
    except NotFound:
        return False
