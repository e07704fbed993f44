"""What a viewer sees, kept up to date: watches of all kinds that the page shows.

`Live` watches with the viewer's client and publishes changes to the open pages: rows of devices
that differ, kinds that changed, pending pods, and whether the server is unreachable. One change
often causes several events, so they are collected for a moment.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from sully.client.discovery.adapting import AdaptingTransport
from sully.client.informers.outages import Outages, is_outage
from sully.client.kubeconfig.credentials import AccessError
from sully.client.transport import Kind, UnreachableError
from sully.dashboard.events import Subscription, encode
from sully.dashboard.rows import Row, row_of
from sully.dashboard.slicing import in_slices
from sully.dashboard.work import Work
from sully.domain.capabilities.control_plane import ControlPlane
from sully.domain.devices.pools import DeviceId, PoolId
from sully.domain.planning.device_counts import DeviceCounter
from sully.machinery.errors import ApiError, Forbidden, Unauthorized
from sully.runtime.clock import Clock
from sully.runtime.tasks import wait_first
from sully.views.devices.device_views import DeviceView, DeviceViews
from sully.views.devices.pools.changes import on_pool_change
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, CLASSES, DEVICE_POLICIES, MAINTENANCES, PATCHES, TAINT_RECORDS
from sully.views.snapshot.kinds import FLEET, NODES, PODS, SCHEDULING, TEMPLATES
from sully.views.snapshot.snapshot import Snapshot
from sully.views.status import pending_pods
from sully.views.watching import Caches, inventory_of, watching

KINDS = (*SCHEDULING, TAINT_RECORDS, DEVICE_POLICIES, MAINTENANCES, *FLEET)
_PENDING_KINDS = (CLASSES, CLAIMS, TEMPLATES, PODS)
REST_SECONDS = 0.1
"""How long changes are collected."""
SLOW_SECONDS = 1.0
"""How often what is counted from all objects is counted again."""
PROBE_SECONDS = 10.0
"""How often the server is asked whether it answers, and how long it may take."""
SAMPLE_SECONDS = 5.0
SAMPLES = 2160
"""Three hours of samples, for the charts."""


class ViewerOutages(Outages):
    """Passes outages on to the pages, and reports what the viewer may not do any more."""

    def __init__(
        self,
        clock: Clock,
        changed: Callable[[], None],
        rejected: Callable[[], None],
        forbidden: Callable[[], None],
    ) -> None:
        super().__init__(clock)
        self._changed = changed
        self._rejected = rejected
        self._forbidden = forbidden

    def failed(self, reporter: Hashable, error: Exception) -> bool:
        """Record a failure."""
        if isinstance(error, Unauthorized):
            self._rejected()
        if isinstance(error, Forbidden):
            self._forbidden()
        begins = super().failed(reporter, error)
        self._changed()
        return begins

    def recovered(self, reporter: Hashable, name: str) -> None:
        """Record a success."""
        super().recovered(reporter, name)
        self._changed()


class Live:
    """The current state of a cluster, as one viewer may see it."""

    def __init__(
        self, transport: AdaptingTransport, clock: Clock, work: Work, rejected: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._work = work
        self._rejected = rejected
        self._subscriptions: set[Subscription] = set()
        self._ready = asyncio.Event()
        self._wake = asyncio.Event()
        self._pools: set[PoolId] = set()
        self._changed: set[str] = set()
        self._rows: dict[PoolId, dict[str, Row]] = {}
        self.pending: list[dict[str, Any]] = []
        self._stale_since = ""
        self.samples: deque[dict[str, Any]] = deque(maxlen=SAMPLES)
        self.caches = Caches()
        self.plane = ControlPlane.KUBERNETES
        self.error = ""

    async def run(self) -> None:
        """Watch until cancelled; begin again without what the viewer may not see any more."""
        hidden: set[Kind[Any]] = set()
        while True:
            forbidden = asyncio.Event()
            outages = ViewerOutages(self._clock, self._wake.set, self._rejected, forbidden.set)
            async with (
                watching(
                    self._transport, KINDS, clock=self._clock, outages=outages, hidden=hidden
                ) as self.caches,
                asyncio.TaskGroup() as tasks,
            ):
                serving = tasks.create_task(self._serve(outages))
                await forbidden.wait()
                serving.cancel()
            hidden.update(self.caches.refused)
            self._forget()

    async def _serve(self, outages: Outages) -> None:
        self.plane = await self._transport.control_plane()
        await self.caches.wait_synced()
        self._build()
        self._rows = {}
        async for pool in in_slices(self._views.pools(), self._clock):
            self._rows[pool] = self._evaluate(pool)
        self.pending = await self._pending_pods()
        self._ready.set()
        for subscription in self._subscriptions:
            self._put_all(subscription)
        self._publish("changed", sorted({kind.plural for kind in KINDS}))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._flush())
            tasks.create_task(self._count())
            tasks.create_task(self._probe(outages))

    def _forget(self) -> None:
        """Show nothing until it was listed again."""
        self._ready.clear()
        self._rows, self.pending = {}, []
        self._pools, self._changed = set(), set()
        self.samples.clear()
        self._publish("fleet", {"devices": [], "now": self._clock.now()})
        self._publish("pending", [])

    async def wait_ready(self) -> None:
        """Wait until everything was listed once."""
        await self._ready.wait()

    async def is_ready_within(self, seconds: float) -> bool:
        """Wait for that for some seconds; report whether it is so."""
        try:
            async with asyncio.timeout(seconds):
                await self._ready.wait()
        except TimeoutError:
            return False
        return True

    def device(self, id_: DeviceId) -> DeviceView | None:
        """Return one device."""
        views = self._views.pool(id_.pool_id, self._clock.now())
        return next((view for view in views if view.id == id_), None)

    def names_in(self, pool: PoolId) -> frozenset[str]:
        """Return the names of the devices of a pool that are published."""
        return frozenset(self._inventory.devices(pool))

    def classes_of(self, view: DeviceView) -> tuple[str, ...]:
        """Return the classes that select a device."""
        return self._counter.classes_of(view.device) if view.device is not None else ()

    def snapshot(self, kinds: Iterable[Any] = KINDS) -> Snapshot:
        """Return the current objects as a snapshot."""
        return self.caches.snapshot(kinds, self._clock.now(), self.plane)

    # -- pages ------------------------------------------------------------------------------------

    def subscribe(self) -> Subscription:
        """Return the events from now on; the first is everything."""
        subscription = Subscription()
        self._put_all(subscription)
        self._subscriptions.add(subscription)
        return subscription

    def _put_all(self, subscription: Subscription) -> None:
        subscription.put(encode("pending", self.pending))
        subscription.put(encode("stale", {"since": self._stale_since}))
        hidden = [gap.kind.plural for gap in self.caches.gaps if gap.reason == "not allowed"]
        subscription.put(encode("hidden", sorted(hidden)))
        # The last: then the page has everything.
        rows = [row for pool in self._rows.values() for row in pool.values()]
        subscription.put(encode("fleet", {"devices": rows, "now": self._clock.now()}))

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop passing events on."""
        self._subscriptions.discard(subscription)

    def _publish(self, event: str, value: Any) -> None:
        if self._subscriptions:
            data = encode(event, value)
            for subscription in self._subscriptions:
                subscription.put(data)

    # -- devices ----------------------------------------------------------------------------------

    def _build(self) -> None:
        caches = self.caches
        inventory = self._inventory = inventory_of(caches, self.plane)
        usage = Usage(pods=caches.of(PODS), claims=caches.of(CLAIMS))
        gap = caches.gap(CLAIMS)
        self._views = DeviceViews(
            inventory,
            usage,
            caches.of(PATCHES),
            plane=self.plane,
            nodes=caches.of(NODES),
            claims_visible=gap is None or gap.reason != "not allowed",
        )
        self._new_counter()
        on_pool_change(caches, inventory, usage, self._pools_changed, pods=PODS)
        begun = False
        for kind in KINDS:

            def handle(_old: Any, _new: Any, name: str = kind.plural) -> None:
                if begun:
                    self._changed.add(name)

            caches.of(kind).on_change(handle)
        caches.of(CLASSES).on_change(lambda *_: self._new_counter() if begun else None)
        begun = True

    def _new_counter(self) -> None:
        classes = self.caches.of(CLASSES).values()
        self._counter = DeviceCounter({class_.metadata.name: class_ for class_ in classes})

    def _pools_changed(self, pools: Iterable[PoolId]) -> None:
        self._pools.update(pools)
        self._wake.set()

    def _evaluate(self, pool: PoolId) -> dict[str, Row]:
        rows = {}
        for view in self._views.pool(pool, self._clock.now()):
            rows[str(view.id)] = row_of(view, self.classes_of(view))
        return rows

    async def _flush(self) -> None:
        """Publish devices that changed, and outages."""
        while True:
            await self._wake.wait()
            await self._clock.sleep(REST_SECONDS)
            self._wake.clear()
            self._publish_stale()
            pools, self._pools = self._pools, set()
            changed: list[Row] = []
            removed: list[str] = []
            async for pool in in_slices(sorted(pools), self._clock):
                before, after = self._rows.pop(pool, {}), self._evaluate(pool)
                if after:
                    self._rows[pool] = after
                changed += [row for name, row in after.items() if before.get(name) != row]
                removed += [name for name in before if name not in after]
            if changed or removed:
                self._publish("devices", {"changed": changed, "removed": removed})

    def _publish_stale(self) -> None:
        stale = self.caches.server_unavailable
        if stale == bool(self._stale_since):
            return
        self._stale_since = self._clock.now().isoformat() if stale else ""
        self._publish("stale", {"since": self._stale_since})

    async def _probe(self, outages: Outages) -> None:
        """Notice a server that no longer answers although its connections stay open.

        Watches of such a server send no events, as if nothing changed.
        """
        while True:
            await self._clock.sleep(PROBE_SECONDS)
            try:
                await wait_first(self._transport.text("/version"), self._no_answer())
            except (ApiError, UnreachableError, AccessError) as error:
                if is_outage(error):
                    outages.failed(self, error)
                    continue
            outages.recovered(self, "API server")

    async def _no_answer(self) -> None:
        await self._clock.sleep(PROBE_SECONDS)
        raise UnreachableError("no answer")

    # -- what is counted --------------------------------------------------------------------------

    async def _count(self) -> None:
        """Publish which kinds changed and which pods are pending, and take samples."""
        next_sample = 0.0
        while True:
            changed, self._changed = self._changed, set()
            begun = self._clock.monotonic()
            if changed & {kind.plural for kind in _PENDING_KINDS}:
                pending = await self._pending_pods()
                if pending != self.pending:
                    self.pending = pending
                    self._publish("pending", pending)
            if changed:
                self._publish("changed", sorted(changed))
            if begun >= next_sample and not self._stale_since:
                next_sample = begun + SAMPLE_SECONDS
                self._sample()
            spent = self._clock.monotonic() - begun
            await self._clock.sleep(max(SLOW_SECONDS, 4 * spent))

    async def _pending_pods(self) -> list[dict[str, Any]]:
        pending = await self._work.run(pending_pods, self.snapshot(_PENDING_KINDS))
        return [
            {"namespace": key.namespace, "name": key.name, "classes": sorted(classes)}
            for key, classes in pending.items()
        ]

    def _sample(self) -> None:
        tainted: dict[str, int] = {}
        for pool in self._rows.values():
            for row in pool.values():
                for name in row.get("c", ()) if "t" in row else ():
                    tainted[name] = tainted.get(name, 0) + 1
        self.samples.append(
            {"time": self._clock.now(), "tainted": tainted, "pending": len(self.pending)}
        )
