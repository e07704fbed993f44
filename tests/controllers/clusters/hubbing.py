"""A world that is a hub: its controllers run, and a test plays administrators and agents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import manifests
from controllers.world import NAMESPACES, Obj, World, running
from embedded import REFERENCE
from sully.client.events import EVENTS
from sully.client.transport import Key, Kind, Transport
from sully.controllers.clusters.wiring import HubSettings, add_hub
from sully.controllers.framework.kinds import CLUSTER_LEASE, CLUSTER_LEASES
from sully.controllers.framework.manager import Manager
from sully.machinery.compat import Compat
from sully.machinery.errors import NotFound
from sully.machinery.formats.timestamps import format_micro_time, format_time
from sully.machinery.scheme import Scheme
from sully.views import fleet_kinds as fleetkinds
from sully.views.fleet_kinds import POLICIES

CLUSTERS: Kind[Obj] = fleetkinds.CLUSTERS.read_as(dict)
SETS: Kind[Obj] = fleetkinds.SETS.read_as(dict)
BINDINGS: Kind[Obj] = fleetkinds.BINDINGS.read_as(dict)
POLICY: Kind[Obj] = POLICIES.read_as(dict)
LEASES: Kind[Obj] = CLUSTER_LEASES.read_as(dict)

AVAILABLE = "ManagedClusterConditionAvailable"
ACCEPTED = "HubAcceptedManagedCluster"
CLOCK = "ManagedClusterConditionClockSynced"
UNREACHABLE = "cluster.open-cluster-management.io/unreachable"
UNAVAILABLE = "cluster.open-cluster-management.io/unavailable"


class HubWorld(World):
    """A server with the hub's controllers on it."""

    def __init__(self, *, strict: bool = False, scheme: Scheme | None = None) -> None:
        super().__init__()
        self.strict = strict
        if strict:
            self.serve(scheme=REFERENCE, strict=True)
        elif scheme is not None:
            self.serve(scheme=scheme)

    @asynccontextmanager
    async def hub(
        self,
        *,
        serving: bool = False,
        line: Transport | None = None,
        sets_taint_times: bool | None = True,
    ) -> AsyncIterator[None]:
        """Run the hub's controllers as long as the block lasts.

        `serving` is to run the server with them, `line` the way on which they see it,
        `sets_taint_times` what they know about it.
        """
        manager = Manager(line or self.transport("informers"), clock=self.clock)

        add_hub(
            manager,
            env_of=lambda name: manager.env(self.transport(name), name),
            access=self.transport,
            clock=self.clock,
            settings=HubSettings(
                policies=not self.strict,
                serving_since=self.clock.now() if serving else None,
                compat=Compat.KUBERNETES if self.strict else Compat.SULLY,
                sets_taint_times=sets_taint_times,
            ),
        )
        async with running(manager):
            await self.calm()
            yield

    async def calm(self) -> None:
        """Let everyone work; a moment passes, because who was overtaken waits that long."""
        await self.pass_time(0.5, step=0.02)

    async def until(self, moment: Any) -> None:
        """Let time pass up to a moment, exactly."""
        await self.settle()
        self.clock.advance((moment - self.clock.now()).total_seconds())
        await self.settle()

    # -- what administrators do --------------------------------------------------------------------

    async def register(self, name: str, *, accepted: bool = True, **more: Any) -> Obj:
        metadata = more.pop("metadata", {})
        body = manifests.cluster(name, accepted=accepted, spec=more, **metadata)
        made = await self.admin.create(CLUSTERS, body)
        await self.calm()
        return made

    async def change(self, name: str, **spec: Any) -> None:
        await self.admin.patch(CLUSTERS, Key("", name), {"spec": spec})
        await self.calm()

    async def annotate(self, name: str, **annotations: Any) -> None:
        patch = {"metadata": {"annotations": annotations}}
        await self.admin.patch(CLUSTERS, Key("", name), patch)
        await self.calm()

    # -- what agents do ----------------------------------------------------------------------------

    async def report(self, name: str, status: str, type_: str = AVAILABLE) -> None:
        cluster = await self.cluster(name)
        others = [c for c in cluster.get("status", {}).get("conditions", []) if c["type"] != type_]
        changed = {
            "type": type_,
            "status": status,
            "reason": "Test",
            "message": "",
            "lastTransitionTime": format_time(self.clock.now()),
        }
        patch = {"status": {"conditions": [*others, changed]}}
        await self.admin.patch(CLUSTERS, Key("", name), patch, subresource="status")
        await self.calm()

    async def renew(self, name: str, ahead: float = 0) -> Any:
        """Renew a lease, as an agent whose clock is ahead of ours; return the time in it."""
        moment = self.clock.now() + timedelta(seconds=ahead)
        patch = {"spec": {"renewTime": format_micro_time(moment)}}
        await self.admin.patch(LEASES, Key(name, CLUSTER_LEASE), patch)
        await self.settle()
        return moment

    # -- what is there -----------------------------------------------------------------------------

    async def cluster(self, name: str) -> Obj:
        return await self.admin.get(CLUSTERS, Key("", name))

    async def condition(self, name: str, type_: str) -> tuple[str, str, str] | None:
        cluster = await self.cluster(name)
        for condition in cluster.get("status", {}).get("conditions", []):
            if condition["type"] == type_:
                return condition["status"], condition["reason"], condition["message"]
        return None

    async def status(self, name: str, type_: str = AVAILABLE) -> str:
        condition = await self.condition(name, type_)
        return condition[0] if condition else ""

    async def taints(self, name: str) -> list[str]:
        cluster = await self.cluster(name)
        return [
            taint["key"]
            + (f"={taint['value']}" if taint.get("value") else "")
            + f":{taint['effect']}"
            for taint in cluster["spec"].get("taints") or ()
        ]

    async def there(self, kind: Kind[Obj], namespace: str, name: str) -> Obj | None:
        try:
            return await self.admin.get(kind, Key(namespace, name))
        except NotFound:
            return None

    async def events_of(self, namespace: str, reason: str) -> list[Obj]:
        page = await self.admin.list(EVENTS, namespace)
        return [item for item in page.items if item["reason"] == reason]


async def joined(world: HubWorld, name: str = "c1", **more: Any) -> None:
    """Register a cluster whose agent renewed its lease and reports that all is well."""
    await world.register(name, **more)
    await world.renew(name)
    await world.report(name, "True")


__all__ = ["NAMESPACES", "HubWorld", "joined"]
