"""`sully devices --watch`: the devices, and then each one that changes.

Only pools that an event affects are evaluated again; a device is printed when something other than
an age has changed.
"""

from typing import Any

from sully.cli.client.inaction import warn_of_inactions
from sully.cli.client.options import NAMES, TABLES
from sully.cli.client.session import Session
from sully.cli.client.snapshots import is_known, take_snapshot
from sully.cli.client.watching import (
    PendingChanges,
    acting_here,
    watch_kinds,
)
from sully.cli.inspect.devices.command import needed_kinds
from sully.cli.inspect.devices.filters import Narrowed, Selection, narrowed
from sully.cli.inspect.devices.printer import columns, document, row
from sully.cli.output.printers import print_event
from sully.cli.output.tables import Table
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.devices.pools import DeviceId, PoolId
from sully.views.devices.device_views import DeviceView, DeviceViews
from sully.views.devices.pools.changes import on_pool_change
from sully.views.devices.usage import Usage
from sully.views.inactions import ON_DEVICES, inactions_in
from sully.views.kinds import CLAIMS, CONSUMER_PODS, PATCHES
from sully.views.snapshot.kinds import DEVICES, NODES
from sully.views.watching import Caches, inventory_of

_GONE = "(gone)"


async def watch(session: Session) -> int:
    kinds = (*DEVICES, NODES)
    needed = needed_kinds(session)
    async with watch_kinds(session, kinds, needed=needed, optional=(NODES,)) as caches:
        screen = _Screen(session)
        plane = await acting_here(session)
        changes, selection = views_of(session, caches, plane, await _narrowed(session))
        warn_of_inactions(session, inactions_in(caches, plane, ON_DEVICES))
        screen.begin(list(selection.all(session.clock.now())))
        while True:
            for pool in await changes.wait(session, caches):
                now = session.clock.now()
                screen.update(pool, list(selection.pool(pool.driver, pool.pool, now)))


async def _narrowed(session: Session) -> Narrowed | None:
    options = session.options
    if not (options.patterns or options.cel or options.selector or options.uuid or options.pci):
        return None
    return narrowed(session, await take_snapshot(session, (*DEVICES, NODES)))


def views_of(
    session: Session, caches: Caches, plane: ControlPlane, narrow: Narrowed | None = None
) -> tuple[PendingChanges, Selection]:
    """Return the pools to evaluate again, and the devices to print."""
    inventory = inventory_of(caches, plane)
    # Every pod with a device, also one that is not evicted from it.
    usage = Usage(pods=caches.of(CONSUMER_PODS), claims=caches.of(CLAIMS))
    known = is_known(caches.gap(CLAIMS))
    views = DeviceViews(
        inventory,
        usage,
        caches.of(PATCHES),
        plane=plane,
        nodes=caches.of(NODES),
        claims_visible=known,
    )
    selection = Selection(session, inventory, views, narrow)
    changes = PendingChanges()
    on_pool_change(
        caches,
        inventory,
        usage,
        lambda pools: changes.add(*pools),
        shows_class=lambda class_: class_.metadata.name in session.options.classes,
    )
    return changes, selection


class _Screen:
    """Prints devices that differ from what was printed last."""

    def __init__(self, session: Session) -> None:
        self._clock = session.clock
        self._output = session.options.output
        self._wide = self._output == "wide"
        titled = not session.options.no_headers
        self._table = Table(columns(wide=self._wide), grows=True, titled=titled)
        self._shown: dict[PoolId, dict[DeviceId, dict[str, Any]]] = {}

    def begin(self, views: list[DeviceView]) -> None:
        for view in views:
            self._shown.setdefault(view.id.pool_id, {})[view.id] = document(view)
        if self._output in TABLES:
            now = self._clock.now()
            self._table.show([row(view, now, wide=self._wide) for view in views])
        else:
            for view in views:
                self._print("ADDED", document(view), view)

    def update(self, pool: PoolId, views: list[DeviceView]) -> None:
        before = self._shown.pop(pool, {})
        after = {view.id: document(view) for view in views}
        if after:
            self._shown[pool] = after
        for view in views:
            was = before.get(view.id)
            if was != after[view.id]:
                self._print("ADDED" if was is None else "MODIFIED", after[view.id], view)
        for id_, was in before.items():
            if id_ not in after:
                self._print("DELETED", was, DeviceView(id_, None, ""))

    def _print(self, type_: str, shown: dict[str, Any], view: DeviceView) -> None:
        if self._output == NAMES:
            print(view.id, flush=True)
            return
        if self._output not in TABLES:
            print_event({"type": type_, "device": shown}, self._output)
            return
        cells = list(row(view, self._clock.now(), wide=self._wide))
        if type_ == "DELETED":
            # It no longer exists, or is no longer selected.
            cells[1:3] = "-", _GONE
        self._table.add([cells])
