"""Reads from a server what the checks need; what the user may not read is a warning."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from sully import __version__
from sully.cli.client.certificates import validity
from sully.cli.client.session import Session
from sully.cli.doctor.installed import check_installed
from sully.cli.doctor.leases import lease_finding, not_readable
from sully.client.discovery.capabilities import probe
from sully.client.options import ListOptions
from sully.client.transport import Kind
from sully.controller_context import LEASE
from sully.domain.capabilities.offers import Offer, offer
from sully.domain.diagnosis.drivers import DRIVERS, check_drivers, check_pools, ready_nodes
from sully.domain.diagnosis.files import check_certificate
from sully.domain.diagnosis.findings import Finding
from sully.domain.diagnosis.servers import (
    GATES,
    HEALTH,
    check_clock,
    check_evictors,
    check_gates,
    check_health,
    check_versions,
)
from sully.machinery.errors import ApiError, Forbidden
from sully.views.kinds import POLICY_NODES, SLICES

if TYPE_CHECKING:
    from sully.client.discovery.adapting import AdaptingTransport

Check = Callable[[Session, Offer], Awaitable[Iterable[Finding]]]
_ALL = ListOptions()


async def check_server(session: Session) -> AsyncIterator[Finding]:
    """Yield the findings about a server, in the order in which they help."""
    offered = offer(await probe(session.transport.named("sully")))
    checks: tuple[Check, ...] = (_health, _clock, _versions, _certificate, _lease, _drivers)
    if not offered.own:
        checks = (*checks, _gates, check_installed)
    for check in checks:
        for finding in await check(session, offered):
            yield finding


async def _health(session: Session, _: Offer) -> Iterable[Finding]:
    try:
        return (check_health(await session.transport.text("/readyz?verbose")),)
    except Forbidden as error:
        return (not_readable(HEALTH, error),)
    except ApiError as error:
        return (check_health("", error.message),)


async def _clock(session: Session, _: Offer) -> Iterable[Finding]:
    server = await session.transport.server_time()
    return (check_clock(server, session.clock.now()),)


async def _versions(_: Session, offered: Offer) -> Iterable[Finding]:
    return check_versions(__version__, offered)


async def _certificate(session: Session, _: Offer) -> Iterable[Finding]:
    certificate = (await session.transport.credential()).certificate
    if not certificate:
        return ()
    remedy = "create a new kubeconfig: restart 'sully up', or use 'sully kubeconfig'"
    valid = validity(certificate)
    return (check_certificate("of the kubeconfig", valid, session.clock.now(), remedy),)


async def _lease(session: Session, offered: Offer) -> Iterable[Finding]:
    if not offered.own:
        return ()
    return (await lease_finding(session, LEASE, needed=False),)


async def _drivers(session: Session, offered: Offer) -> Iterable[Finding]:
    if not offered.devices:
        return ()
    try:
        slices, nodes = await asyncio.gather(
            _everything(session.transport, SLICES), _everything(session.transport, POLICY_NODES)
        )
    except Forbidden as error:
        return (not_readable(DRIVERS, error),)
    return (*check_drivers(slices, ready_nodes(nodes)), *check_pools(slices))


async def _everything(transport: "AdaptingTransport", kind: Kind[Any]) -> list[Any]:
    return list((await transport.list(kind, "", _ALL)).items)


async def _gates(session: Session, _: Offer) -> Iterable[Finding]:
    try:
        plane = await session.transport.control_plane()
    except Forbidden as error:
        return (not_readable(GATES, error),)
    return (*check_gates(plane), *check_evictors(plane))
