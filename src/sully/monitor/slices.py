"""Publishes the GPUs of a node as a ResourceSlice; see `domain/health/slices.py`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sully.client.options import ListOptions
from sully.client.transport import Key, Kind, Transport
from sully.domain.health.samples import Gpu
from sully.domain.health.slices import published_by_others, slice_spec
from sully.machinery.errors import Forbidden, NotFound
from sully.runtime.log import get_logger
from sully.views.kinds import POLICY_NODES, SLICES

Obj = dict[str, Any]
_WRITTEN: Kind[Obj] = SLICES.read_as(dict)
_log = get_logger("monitor")


class SlicePublisher:
    """Keeps one slice as it should be."""

    def __init__(self, transport: Transport, *, node: str, driver: str) -> None:
        self._transport = transport
        self._node = node
        self._driver = driver
        self._published: Obj | None = None
        self.problem = ""
        """Why the GPUs are not published; empty if they are."""

    @property
    def name(self) -> str:
        """Return the name of the slice."""
        return f"{self._node}-{self._driver}"

    async def publish(self, gpus: Sequence[Gpu], driver_version: str) -> None:
        """Publish the GPUs, unless they are published as they are."""
        spec = slice_spec(gpus, driver=self._driver, node=self._node, driver_version=driver_version)
        if spec == self._published or not gpus:
            return
        if others := await self._others(gpus):
            problem = f"the driver {others[0]} already publishes these GPUs"
            if problem != self.problem:
                _log.error("slice not published", problem=problem)
            self.problem = problem
            return
        await self._write(spec)
        self._published, self.problem = spec, ""
        _log.info("slice published", name=self.name, devices=len(gpus))

    async def _others(self, gpus: Sequence[Gpu]) -> list[str]:
        on_node = ListOptions(field_selector=f"spec.nodeName={self._node}")
        slices = (await self._transport.list(SLICES, options=on_node)).items
        return list(published_by_others(slices, gpus, self._driver))

    async def _write(self, spec: Obj) -> None:
        try:
            old = await self._transport.get(_WRITTEN, Key("", self.name))
        except NotFound:
            new = self._slice(spec, 1)
            new["metadata"]["ownerReferences"] = await self._owners()
            await self._transport.create(_WRITTEN, new)
            return
        new = self._slice(spec, old["spec"]["pool"]["generation"] + 1)
        new["metadata"] = old["metadata"]
        await self._transport.update(_WRITTEN, new)

    def _slice(self, spec: Obj, generation: int) -> Obj:
        pool = {**spec["pool"], "generation": generation}
        return {"metadata": {"name": self.name}, "spec": {**spec, "pool": pool}}

    async def _owners(self) -> list[Obj]:
        """Return the Node, so that the slice is deleted with it."""
        try:
            node = await self._transport.get(POLICY_NODES, Key("", self._node))
        except (NotFound, Forbidden):
            return []
        uid = node.metadata.uid
        return [{"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": uid}]

    async def withdraw(self) -> None:
        """Delete the slice: these GPUs are no longer measured."""
        if self._published is None:
            return
        with suppress(NotFound):
            await self._transport.delete(_WRITTEN, Key("", self.name))
        self._published = None
