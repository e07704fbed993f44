"""A server whose namespace `a` has quotas, for the tests of what they refuse."""

from __future__ import annotations

from typing import Any

from embedded import embedded
from manifests import body, claim_spec, pod
from sully.client.direct import DirectTransport
from sully.client.options import WriteOptions
from sully.client.transport import Key, Kind
from sully.machinery.errors import Forbidden
from sully.server.inprocess import InProcess
from sully.server.requests import User
from sully.store.base import Store
from sully.testing.clock import FakeClock
from sully.views import kinds

Obj = dict[str, Any]
NAMESPACES: Kind[Obj] = Kind("", "v1", "namespaces", "Namespace", dict, namespaced=False)
ACCOUNTS: Kind[Obj] = Kind("", "v1", "serviceaccounts", "ServiceAccount", dict)
QUOTAS: Kind[Obj] = Kind("", "v1", "resourcequotas", "ResourceQuota", dict)
CONFIG_MAPS: Kind[Obj] = Kind("", "v1", "configmaps", "ConfigMap", dict)
PODS: Kind[Obj] = Kind("", "v1", "pods", "Pod", dict)
CLAIMS: Kind[Obj] = kinds.CLAIMS.read_as(dict)
CLASSES: Kind[Obj] = kinds.CLASSES.read_as(dict)
DRY = WriteOptions(dry_run=True)


class Plane:
    """A server on a store that outlives it; no controller runs."""

    def __init__(self, store: Store, *, strict: bool = False) -> None:
        self.clock = FakeClock()
        self.api = embedded(store, self.clock, strict=strict)
        self.access = DirectTransport(InProcess(self.api, User("x", ("system:masters",))))

    async def prepare(self) -> None:
        await self.access.create(NAMESPACES, {"metadata": {"name": "a"}})
        await self.access.create(ACCOUNTS, {"metadata": {"name": "default", "namespace": "a"}})

    async def limit(self, name: str = "q", *, used: Obj | None = None, **spec: Any) -> None:
        """Create a quota, counted as the controller would; with None it is not."""
        metadata = {"name": name, "namespace": "a"}
        made = await self.access.create(QUOTAS, {"metadata": metadata, "spec": spec})
        if used is not None:
            await self.count(made, used)

    async def count(self, quota: Obj, used: Obj) -> None:
        status = {"hard": quota["spec"]["hard"], "used": used}
        await self.access.update(QUOTAS, quota | {"status": status}, "status")

    async def used(self, name: str = "q") -> Obj:
        result: Obj = (await self.access.get(QUOTAS, Key("a", name)))["status"].get("used", {})
        return result

    async def attempt(self, kind: Kind[Obj], obj: Obj, options: WriteOptions | None = None) -> str:
        """Create an object in the namespace; return the refusal."""
        obj = obj | {"metadata": {"namespace": "a", **obj["metadata"]}}
        try:
            await self.access.create(kind, obj, options=options or WriteOptions())
        except Forbidden as refused:
            return refused.message
        return ""

    async def map(self, name: str) -> str:
        """Create a ConfigMap; return the refusal."""
        return await self.attempt(CONFIG_MAPS, {"metadata": {"name": name}})

    async def pod(self, name: str, **spec: Any) -> str:
        """Create a pod; return the refusal."""
        made = pod(name)
        made["spec"] |= spec
        return await self.attempt(PODS, made)


def gpus(name: str, count: int, **metadata: Any) -> Obj:
    """Return a claim for devices of the class `gpu`."""
    return body("ResourceClaim", name, claim_spec(count=count), **metadata)
