"""The disk of a server that has started once, with a fleet: what every run begins with."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from simulator import fleet
from simulator.clock import SimulatedClock
from simulator.disk import SimulatedDisk
from simulator.loop import Process, SimulatedLoop
from simulator.server import start_server
from simulator.storage import Actor
from sully.app import ADMIN
from sully.client.direct import DirectTransport
from sully.server.inprocess import InProcess
from sully.store.state import State
from sully.store.transactions import Transaction


class _Nobody:
    """Observes nothing."""

    def accepted(self, transaction: Transaction, actor: Actor) -> None: ...
    def settled(self, transactions: Sequence[Transaction], *, written: bool) -> None: ...
    def recovered(self, state: State) -> None: ...


def template_image(nodes: int, devices: int) -> dict[str, Any]:
    """Return the files of such a server; the caller may change them."""
    return {name: content.copy() for name, content in _image(nodes, devices).items()}


@lru_cache(maxsize=64)
def _image(nodes: int, devices: int) -> dict[str, Any]:
    files = {name: content.copy() for name, content in _started_once().items()}
    return _run(files, partial(_create_fleet, nodes, devices))


@lru_cache(maxsize=1)
def _started_once() -> dict[str, Any]:
    """Return the files of a server without a fleet: its first start is what costs most."""
    return _run({}, _create_kinds)


def _run(
    files: dict[str, Any], fill: Callable[[DirectTransport], Awaitable[None]]
) -> dict[str, Any]:
    loop = SimulatedLoop(random.Random(0), reorder=0.0)
    disk = SimulatedDisk(random.Random(0), files)
    loop.run_until_complete(_fill(loop, disk, fill))
    loop.forget()
    image = disk.image()
    disk.close()
    return image


async def _fill(
    loop: SimulatedLoop, disk: SimulatedDisk, fill: Callable[[DirectTransport], Awaitable[None]]
) -> None:
    clock = SimulatedClock(loop)
    process = Process("template", loop, machine="server", clock=clock)
    server = await start_server(process, clock, disk, _Nobody(), random.Random(0))
    await fill(DirectTransport(InProcess(server.api, ADMIN)))
    await asyncio.sleep(1.0)


async def _create_kinds(api: DirectTransport) -> None:
    await api.create(fleet.NAMESPACES, {"metadata": {"name": fleet.NAMESPACE}})
    account = {"metadata": {"namespace": fleet.NAMESPACE, "name": "default"}}
    await api.create(fleet.ACCOUNTS, account)
    for name, driver in (("gpu", fleet.DRIVER), ("shared", fleet.SHARED), ("parts", fleet.PARTS)):
        await api.create(fleet.CLASSES, fleet.device_class(name, driver))
    for kind in fleet.CLAIM_KINDS:
        await api.create(fleet.TEMPLATES, fleet.template(kind))


async def _create_fleet(nodes: int, devices: int, api: DirectTransport) -> None:
    for number in range(nodes):
        await api.create(fleet.NODES, fleet.node(number))
        await api.create(fleet.SLICES, fleet.gpu_slice(number, devices))
    for body in (fleet.shared_slice(0), *fleet.part_slices(1)):
        await api.create(fleet.SLICES, body)
