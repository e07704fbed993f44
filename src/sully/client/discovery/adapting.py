"""The transport of client commands: to any server, in the groups and versions that it has.

It discovers the server once, with the first call about devices. A write with fields that the
server would drop is rejected by their names (`domain.capabilities.fitting`), because a rule
that lost its criteria would select every device. A dry run is not rejected: it is how a command
finds out what would be dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from sully.client.calls import READS, Call
from sully.client.discovery.capabilities import (
    Moves,
    converted_events,
    converted_object,
    converted_page,
    moved,
    probe,
)
from sully.client.discovery.control_plane import components, with_gates
from sully.client.http.transport import REQUEST_SECONDS, HttpTransport
from sully.client.kubeconfig.access import Access
from sully.client.transport import Kind, Page, WatchEvent
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.capabilities.duties import evictor, moves
from sully.domain.capabilities.fitting import refused_fields
from sully.domain.capabilities.offers import DEVICES, RULES, Answers, Offer, is_own, offer
from sully.machinery.errors import BadRequest

T = TypeVar("T")

_KINDS = {
    RULES: "DeviceTaintRule",
    "resourceslicepatches": "ResourceSlicePatch",
    "resourceslices": "ResourceSlice",
}


class AdaptingTransport(HttpTransport):
    """An HTTP transport that discovers in which group and version a server has its devices."""

    def __init__(self, access: Access, *, request_seconds: float = REQUEST_SECONDS) -> None:
        super().__init__(access, request_seconds=request_seconds)
        self._offer: Offer | None = None
        self._probing = asyncio.Lock()
        self._components: ControlPlane | None = None
        self._gated: ControlPlane | None = None

    async def _object(self, kind: Kind[T], call: Call) -> T:
        return await converted_object(super()._object, kind, await self._adapted(call))

    async def _page(self, kind: Kind[T], call: Call) -> Page[T]:
        return await converted_page(super()._page, kind, await self._adapted(call))

    async def _done(self, call: Call) -> None:
        await super()._done(await self._adapted(call))

    async def _events(self, kind: Kind[T], call: Call) -> AsyncGenerator[WatchEvent[T], None]:
        adapted = await self._adapted(call)
        async with aclosing(converted_events(super()._events, kind, adapted)) as events:
            async for event in events:
                yield event

    async def control_plane(self, *, gates: bool = True) -> ControlPlane:
        """Return which components schedule and evict, with the feature gates that can be known."""
        server = await self._discover()
        async with self._probing:
            if self._components is None:
                self._components = await components(self.named("sully"), server)
            if gates and self._gated is None:
                self._gated = await with_gates(self.named("sully"), self._components)
        return self._gated or self._components

    def as_served(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return an object in the group and version that the server has, if it was discovered."""
        plural = next((name for name, kind in _KINDS.items() if kind == body.get("kind")), "")
        if self._offer is None or not plural:
            return body
        target = moves(self._offer).get((DEVICES, plural))
        return {**body, "apiVersion": "/".join(target)} if target else body

    async def _discover(self) -> Offer:
        # Many kinds are requested concurrently, and one discovery serves them all.
        async with self._probing:
            if self._offer is None:
                self._offer = await self._probe()
        return self._offer

    async def _adapted(self, call: Call) -> Call:
        if call.ref.group != DEVICES:
            return call
        server = await self._discover()
        _refuse(server, call)
        where: Moves = moves(server)
        return moved(call, where) if where else call

    async def _probe(self) -> Offer:
        version = await self.document("/version")
        text = str(version.get("gitVersion", "")) if isinstance(version, dict) else ""
        if is_own(text):
            return offer(Answers(git_version=text, resources={}, schemas={}))
        # A transport of this class would discover the server again.
        return offer(await probe(self.named("sully")))


def _refuse(server: Offer, call: Call) -> None:
    """Raise if a write would lose something."""
    if server.own or call.verb in READS or "dryRun" in call.options:
        return
    if call.ref.plural not in _KINDS or not isinstance(call.body, dict):
        return
    body: dict[str, Any] = {"kind": _KINDS[call.ref.plural], **call.body}
    problems = [
        str(problem)
        for problem in refused_fields(server, body, sully_evicts=evictor(server).sully)
        # Annotations are kept by every server; which component honors them, the command knows.
        if not problem.field.startswith("metadata")
    ]
    if problems and call.verb not in ("delete", "deletecollection"):
        raise BadRequest(f"{server.version}: " + "; ".join(problems))
