"""A hub without controllers: writes go the whole way, answers come back as values."""

from dataclasses import dataclass, field
from typing import Any

import manifests
from embedded import REFERENCE, SCHEME, embedded
from sully.api.cluster.types import GROUP
from sully.machinery.errors import ApiError
from sully.server.registry.bodies.body import Body
from sully.server.requests import Request, Target, User
from sully.store.memory import MemoryStore
from sully.testing.clock import FakeClock

Obj = dict[str, Any]

MASTER = User("root", ("system:masters",))
NOW = "2030-01-01T12:00:00Z"  # where the clock of tests begins
PLURALS = {
    resource.kind: resource.plural
    for resource in SCHEME.resources()
    if resource.group in (GROUP, "sully.dev", "") and not resource.virtual
}


@dataclass(frozen=True)
class WriteResult:
    """The response to a write."""

    code: int
    message: str = ""
    obj: Obj = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    reason: str = ""

    @property
    def problems(self) -> str:
        """Return the part of a 422 that names fields."""
        return self.message.partition(" is invalid: ")[2]


class Hub:
    """An API server; `strict` is compatibility mode."""

    def __init__(self, *, strict: bool = False) -> None:
        self.clock = FakeClock()
        scheme = REFERENCE if strict else SCHEME
        self.api = embedded(MemoryStore(), self.clock, scheme=scheme, strict=strict)

    async def create(self, obj: Obj, user: User = MASTER, **options: str) -> WriteResult:
        """Create an object; a namespace it lies in is made first."""
        target = self._target(obj)
        await self._settle(target.namespace)
        asked = Request(user, target, options, "tests")
        return await self._response(self.api.create(asked, Body(obj)))

    async def update(self, obj: Obj, user: User = MASTER, subresource: str = "") -> WriteResult:
        """Replace an object."""
        target = self._target(obj, named=True, subresource=subresource)
        return await self._response(self.api.update(Request(user, target, {}, "tests"), Body(obj)))

    async def patch(
        self,
        obj: Obj,
        change: Any,
        user: User = MASTER,
        *,
        subresource: str = "",
        media: str = "application/merge-patch+json",
        **options: str,
    ) -> WriteResult:
        """Patch the object that `obj` names."""
        target = self._target(obj, named=True, subresource=subresource)
        asked = Request(user, target, options, "tests")
        return await self._response(self.api.patch(asked, media, Body(change)))

    async def delete(self, obj: Obj) -> WriteResult:
        """Delete the object that `obj` names."""
        asked = Request(MASTER, self._target(obj, named=True), {}, "tests")
        return await self._response(self.api.delete(asked, None))

    async def apply(self, obj: Obj, manager: str) -> WriteResult:
        """Apply a configuration on the server's side."""
        await self._settle(self._target(obj).namespace)
        media = "application/apply-patch+yaml"
        return await self.patch(obj, obj, media=media, fieldManager=manager, force="true")

    async def _settle(self, namespace: str) -> None:
        """Make a namespace, if it is one and not there yet."""
        if namespace:
            await self.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            )

    def _target(self, obj: Obj, *, named: bool = False, subresource: str = "") -> Target:
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = self.api.scheme.find(group, version, PLURALS[obj["kind"]])
        assert resource is not None, "not served"
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "default") if resource.namespaced else ""
        return Target(resource, version, namespace, metadata["name"] if named else "", subresource)

    async def _response(self, written: Any) -> WriteResult:
        try:
            result = await written
        except ApiError as error:
            warnings = tuple(error.warnings)
            return WriteResult(error.code, error.message, warnings=warnings, reason=error.reason)
        return WriteResult(201 if result.created else 200, "", result.obj, tuple(result.warnings))


def cluster(name: str = "c1", *taints: Obj, **spec: Any) -> Obj:
    return manifests.cluster(name, *taints, spec=spec)


def taint(key: str = "k", effect: str = "NoSelect", **more: Any) -> Obj:
    """Write a taint."""
    return {"key": key, "effect": effect, **more}


def placement(spec: Any, name: str = "p", version: str = "v1beta1") -> Obj:
    return manifests.placement(name, spec) | {"apiVersion": f"{GROUP}/{version}"}


def of_kind(kind: str, version: str, name: str = "x", **parts: Any) -> Obj:
    """Write an object of another kind."""
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": name}, **parts}
