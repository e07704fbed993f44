"""Viewers: one client per credential, with what its user may do and its watches.

Sessions of the same credential share a viewer, so ten open pages are one set of watches.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from sully.client.discovery.adapting import AdaptingTransport
from sully.client.kubeconfig.access import Access
from sully.client.kubeconfig.credentials import Credential, FixedCredentials
from sully.client.reviews import may, own_user
from sully.dashboard.live import Live
from sully.dashboard.sessions import Sessions, TooManySessionsError
from sully.dashboard.work import Work
from sully.machinery.errors import Forbidden, NotFound
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

_log = get_logger("dashboard")
REFRESH_SECONDS = 10.0
"""How old the rights of a viewer may be when a page is opened."""
RIGHTS = {
    "taint": ("create", "resource.k8s.io", "devicetaintrules", ""),
    "change": ("patch", "resource.k8s.io", "devicetaintrules", ""),
    "untaint": ("delete", "resource.k8s.io", "devicetaintrules", ""),
    "evict": ("create", "", "pods", "eviction"),
    "taintCluster": ("patch", "cluster.open-cluster-management.io", "managedclusters", ""),
}
"""What buttons need, by name: verb, group, resource, subresource."""


MAX_VIEWERS_OF_USER = 3
"""Each has a client, watches and caches of its own."""
MAX_VIEWERS = 50


class Viewer(msgspec.Struct, eq=False):
    """The client of one credential."""

    access: Access
    transport: AdaptingTransport
    clock: Clock
    live: Live
    work: Work
    user: str = ""
    groups: tuple[str, ...] = ()
    rights: dict[str, bool] = msgspec.field(default_factory=dict)
    identified: float = float("-inf")
    """When user and rights were read."""
    state: dict[str, Any] = msgspec.field(default_factory=dict)
    """What routes keep for a viewer, such as drains that run."""
    streams: int = 0
    """How many pages are open."""
    tasks: set[asyncio.Task[Any]] = msgspec.field(default_factory=set)

    @property
    def owner(self) -> Hashable:
        """Return whom limits are for: the user, as far as the server reports who that is."""
        return self.user or id(self)

    async def refresh(self) -> None:
        """Find it out again, unless that was just done."""
        if self.clock.monotonic() > self.identified + REFRESH_SECONDS:
            await self.identify()

    async def identify(self) -> None:
        """Find out who the user is and what it may do; raises Unauthorized."""
        try:
            user = await own_user(self.transport)
            self.user, self.groups = user.username, user.groups
        except (NotFound, Forbidden):
            # A server before Kubernetes 1.28; the reviews below are refused without credentials.
            self.user = ""
        names = list(RIGHTS)
        self.rights = dict(zip(names, await asyncio.gather(*map(self._may, names)), strict=True))
        self.identified = self.clock.monotonic()

    async def _may(self, name: str) -> bool:
        verb, group, resource, subresource = RIGHTS[name]
        attributes = {
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
        }
        try:
            return await may(self.transport, attributes)
        except Forbidden:
            return False

    async def close(self) -> None:
        """Stop everything that runs for the viewer."""
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)
        await self.transport.close()


class Viewers:
    """All viewers of a dashboard, by credential."""

    def __init__(
        self,
        access: Access,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        work: Work,
        sessions: Sessions[Viewer],
    ) -> None:
        self._access = access
        self._clock = clock
        self._tasks = tasks
        self._work = work
        self._sessions = sessions
        self._viewers: dict[str, Viewer] = {}

    async def owner(self) -> Viewer:
        """Return the viewer with the credentials that the dashboard was started with."""
        return await self._enter("", self._access)

    async def with_token(self, token: str) -> Viewer:
        """Return the viewer with a token; raises Unauthorized."""
        credentials = FixedCredentials(Credential(token=token))
        # Not as another user, even if the dashboard itself was started so.
        key = hashlib.sha256(token.encode()).hexdigest()
        return await self._enter(key, replace(self._access, credentials=credentials, headers={}))

    async def _enter(self, key: str, access: Access) -> Viewer:
        viewer = self._viewers.get(key)
        if viewer is not None:
            # Its rights may have changed, and its credential may be rejected now.
            await viewer.identify()
            if self._viewers.get(key) is viewer:
                return viewer
        transport = AdaptingTransport(access)
        try:
            viewer = self._new(access, transport)
            await viewer.identify()
            if key not in self._viewers:
                self._make_room(viewer)
        except BaseException:
            await transport.close()
            raise
        if key in self._viewers:
            # Another request was faster.
            await transport.close()
            return self._viewers[key]
        self._viewers[key] = viewer
        self.start(viewer, partial(self._watch, viewer))
        return viewer

    def of_user(self, owner: Hashable) -> list[Viewer]:
        """Return the viewers of a user, the oldest first."""
        return [viewer for viewer in self._viewers.values() if viewer.owner == owner]

    def _make_room(self, new: Viewer) -> None:
        """Close a viewer without a session if there are too many; raise if all have one."""
        own = self.of_user(new.owner)
        if len(own) >= MAX_VIEWERS_OF_USER:
            among = own
        elif len(self._viewers) >= MAX_VIEWERS:
            among = list(self._viewers.values())
        else:
            return
        used = self._sessions.viewers()
        # The oldest is first.
        key = next((k for k, x in self._viewers.items() if x in among and x not in used), None)
        if key is None:
            raise TooManySessionsError(
                "too many tokens are in use; sign out elsewhere, or try again later"
            )
        self._tasks.create_task(_contained(self._viewers.pop(key).close))

    def _new(self, access: Access, transport: AdaptingTransport) -> Viewer:
        def rejected() -> None:
            self._sessions.close_all(viewer)

        live = Live(transport, self._clock, self._work, rejected)
        viewer = Viewer(access, transport, self._clock, live, self._work)
        return viewer

    def start(self, viewer: Viewer, work: Callable[[], Awaitable[Any]]) -> asyncio.Task[Any]:
        """Run something for a viewer, until the viewer is closed."""
        task: asyncio.Task[Any] = self._tasks.create_task(_contained(work))
        viewer.tasks.add(task)
        task.add_done_callback(viewer.tasks.discard)
        return task

    async def _watch(self, viewer: Viewer) -> None:
        while True:
            try:
                await viewer.live.run()
            except Exception as error:  # noqa: BLE001 - others are served, and it is tried again
                viewer.live.error = str(error)
                _log.warning("cannot watch", user=viewer.user, error=repr(error))
            await self._clock.sleep(5.0)

    async def keep(self, viewers: list[Viewer]) -> None:
        """Close all other viewers."""
        for key, viewer in list(self._viewers.items()):
            if viewer not in viewers:
                del self._viewers[key]
                await viewer.close()

    async def close(self) -> None:
        """Close all viewers."""
        await self.keep([])


async def _contained(work: Callable[[], Awaitable[Any]]) -> Any:
    """Await something; a failure is logged, and does not stop the others of the group."""
    try:
        return await work()
    except Exception:  # noqa: BLE001 - see above
        _log.exception("background work failed")
        return None
