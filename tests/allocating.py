"""A server whose clients allocate devices by hand, for the tests of what keeps them apart."""

from __future__ import annotations

from typing import Any

from embedded import embedded
from manifests import claim_spec
from sully.client.direct import DirectTransport
from sully.client.transport import Key, Kind
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.store.base import Store
from sully.testing.clock import FakeClock
from sully.views import kinds

Obj = dict[str, Any]
NAMESPACES: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
SPEC = claim_spec("c")


class Plane:
    """A server on a store that outlives it."""

    def __init__(self, store: Store, *, strict: bool = False) -> None:
        self.api = embedded(store, FakeClock(), strict=strict)
        self.access = DirectTransport(InProcess(self.api, User("x", ("system:masters",))))

    async def prepare(self, *claims: str) -> None:
        label = {"resource.kubernetes.io/admin-access": "true"}
        await self.access.create(NAMESPACES, {"metadata": {"name": "a", "labels": label}})
        for name in claims:
            metadata = {"name": name, "namespace": "a"}
            await self.access.create(CLAIMS, {"metadata": metadata, "spec": SPEC})

    async def allocate(self, claim: str, *devices: str, **more: Any) -> None:
        results = [
            {"request": "r", "driver": "d.example.com", "pool": "p", "device": device, **more}
            for device in devices
        ]
        status = {"allocation": {"devices": {"results": results}}}
        await self.access.patch(CLAIMS, Key("a", claim), {"status": status}, subresource="status")

    async def release(self, claim: str) -> None:
        status = {"allocation": None}
        await self.access.patch(CLAIMS, Key("a", claim), {"status": status}, subresource="status")

    async def held(self) -> list[str]:
        """Return all devices that claims hold."""
        page = await self.access.list(CLAIMS, "a")
        return sorted(
            result["device"]
            for claim in page.items
            for result in ((claim.get("status") or {}).get("allocation") or {"devices": {}})[
                "devices"
            ].get("results", ())
        )
