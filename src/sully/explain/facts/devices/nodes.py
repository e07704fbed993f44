"""Nodes: why new pods do not get the devices of a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sully.client.transport import Key
from sully.domain.devices.taints import SourcedTaint
from sully.domain.drain.rules import KEY as DRAIN_TAINT
from sully.domain.scheduling.filters import lifecycle_taint
from sully.domain.tolerations import taint_text
from sully.explain.causes import Finding, NodeFacts
from sully.explain.explanation import Table, tables
from sully.explain.facts.devices.inactive import inactive_notes
from sully.explain.reader import Reader
from sully.explain.sources import origins_of
from sully.views.devices.device_views import DeviceView, DeviceViews
from sully.views.kinds import PATCHES
from sully.views.snapshot.kinds import NODES

_COLUMNS: Final = ("device", "state", "taints", "used by")


def find_node(reader: Reader, key: Key) -> Finding | None:
    """Find out about a node and its devices; None if it is unknown."""
    node = _Node(reader, key.name)
    known = reader.snapshot.get(NODES, Key("", key.name)) is not None
    return node.find() if known or node.devices else None


class _Node:
    def __init__(self, reader: Reader, name: str) -> None:
        snapshot = reader.snapshot
        self.reader = reader
        self.name = name
        self.node = snapshot.get(NODES, Key("", name))
        views = DeviceViews(
            snapshot.inventory,
            snapshot.usage,
            snapshot.of(PATCHES),
            plane=snapshot.control_plane,
            nodes=snapshot.of(NODES),
        )
        pools = snapshot.inventory.pools_for(name)
        every = (view for pool in pools for view in views.pool(pool, reader.now))
        self.devices = [view for view in every if view.node == name]
        self.blocking = [
            taint.sourced
            for view in self.devices
            for taint in view.taints
            if reader.prevents_scheduling(taint.sourced)
        ]
        self.facts = NodeFacts(
            node=name,
            devices=len(self.devices),
            used=sum(view.in_use for view in self.devices),
            free=sum(view.free for view in self.devices),
            tainted=sum(any(map(self._blocks, view.taints)) for view in self.devices),
        )

    def _blocks(self, taint: Any) -> bool:
        return self.reader.prevents_scheduling(taint.sourced)

    def find(self) -> Finding:
        if self.node is None:
            return self._finding("NodeNotFound")
        if self.node.spec.unschedulable:
            return self._finding("Cordoned")
        taint = lifecycle_taint(self.node)
        if taint is not None:
            return self._finding("NotReady", taint=taint.key)
        if not self.devices:
            return self._finding("NoDevices")
        if self.facts.free:
            return self._finding("DevicesFree", taints=self.blocking)
        obstacle = next((x.obstacle for x in self.devices if x.obstacle and not x.in_use), None)
        if obstacle is not None:
            return self._finding("DevicesUnusable", text=obstacle.text)
        if any(any(map(self._blocks, view.taints)) for view in self.devices if not view.in_use):
            cordons = [taint.taint.key == DRAIN_TAINT for taint in self.blocking]
            return self._finding(
                "DevicesTainted",
                taints=self.blocking,
                cordoned=any(cordons),
                removable=not all(cordons),
            )
        return self._finding("DevicesInUse")

    def _finding(
        self, cause: str, taints: list[SourcedTaint] | None = None, **more: Any
    ) -> Finding:
        origins = origins_of(taints or ())
        facts = {**{x: getattr(self.facts, x) for x in self.facts.__struct_fields__}, **more}
        facts["sources"] = self.reader.sources.of_all(origins)
        return Finding(
            kind="Node",
            name=self.name,
            cause=cause,
            facts=NodeFacts(**facts),
            because=origins,
            also=tuple(inactive_notes(self.reader, (view.id for view in self.devices))),
            details=tables(Table("Devices", _COLUMNS, tuple(map(tuple, self._rows())))),
        )

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for view in self.devices:
            taints = ", ".join(taint_text(x.sourced.taint) for x in view.taints)
            pods = ", ".join(str(pod) for claim in view.claims for pod in claim.pods)
            yield str(view.id), _state(view), taints, pods


def _state(view: DeviceView) -> str:
    if view.in_use:
        return "InUse"
    if view.free:
        return "Free"
    return view.obstacle.cause if view.obstacle is not None else "Tainted"
