"""The faults that a server lives through, and those that end it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from crashes.server import Server
from etcds import Etcd, Member
from faults.layer import Fault, Layer
from faults.proxy import Proxy

INJECTED_WITHIN = 20.0
"""After so many seconds without the call that should fail a fault is given up."""
STEPS = (-3600.0, -61.0, -5.0, -0.5, 0.5, 5.0, 61.0, 3600.0, 86400.0)
"""Of clocks, in seconds."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault that a server lives through."""

    name: str
    inject: Callable[[random.Random], Awaitable[bool]]
    """Begins it and ends it; reports whether it happened."""


def disk_faults(layer: Layer) -> list[Kind]:
    """Return the faults of a disk."""

    def failing(name: str, fault: Fault, most: int) -> Kind:
        async def inject(rng: random.Random) -> bool:
            count = rng.randint(1, most)
            layer.request(fault, skip=rng.randrange(4), count=count)
            happened = await _until(lambda: layer.injected >= count)
            happened = happened or layer.injected > 0
            layer.request(Fault.NONE)
            return happened

        return Kind(name, inject)

    return [
        failing("write: I/O error", Fault.WRITE_EIO, 4),
        failing("write: no space", Fault.WRITE_ENOSPC, 4),
        failing("write: short", Fault.WRITE_SHORT, 4),
        failing("write: short, then no space", Fault.WRITE_TORN, 3),
        failing("flush: I/O error", Fault.SYNC_EIO, 3),
    ]


def process_faults(server: Callable[[], Server], layer: Layer | None) -> list[Kind]:
    """Return the faults of a process and of its clock."""

    async def suspend(rng: random.Random) -> bool:
        await server().suspend(rng.uniform(0.05, 0.6))
        return True

    kinds = [Kind("server: SIGSTOP, SIGCONT", suspend)]
    if layer is not None:

        async def step(rng: random.Random) -> bool:
            layer.step_clock(rng.choice(STEPS))
            await asyncio.sleep(rng.uniform(0.05, 0.3))
            if rng.random() < 0.5:
                layer.step_clock(0.0)
            return True

        kinds.append(Kind("server: clock step", step))
    return kinds


def etcd_faults(etcd: Etcd, proxies: list[Proxy]) -> list[Kind]:
    """Return the faults of members of etcd, and of the network to them."""

    def of_member(
        name: str, begin: Callable[[Member], None], end: Callable[[Member], None], number: int = 1
    ) -> Kind:
        async def inject(rng: random.Random) -> bool:
            members = rng.sample(etcd.members, number)
            for member in members:
                begin(member)
            await asyncio.sleep(rng.uniform(0.2, 1.2))
            for member in members:
                end(member)
            for member in members:
                await asyncio.to_thread(etcd.await_healthy, member)
            return True

        return Kind(name, inject)

    def of_network(name: str, change: Callable[[Proxy], None], number: int = 1) -> Kind:
        async def inject(rng: random.Random) -> bool:
            chosen = rng.sample(proxies, number)
            for proxy in chosen:
                change(proxy)
            await asyncio.sleep(rng.uniform(0.2, 1.2))
            for proxy in chosen:
                proxy.heal()
            return True

        return Kind(name, inject)

    everywhere = len(proxies)
    return [
        of_member("etcd member: SIGSTOP, SIGCONT", etcd.freeze, etcd.thaw),
        of_member("etcd majority: SIGSTOP, SIGCONT", etcd.freeze, etcd.thaw, 2),
        of_member("etcd member: SIGKILL, restart", etcd.kill, etcd.start),
        of_member("etcd member: no space", etcd.fill, etcd.free),
        of_network("network to a member: cut", lambda proxy: proxy.cut()),
        of_network("network to a member: silent", lambda proxy: proxy.hold()),
        of_network("network to a member: delay", lambda proxy: proxy.slow(0.05)),
        of_network("network to all members: cut", lambda proxy: proxy.cut(), everywhere),
        of_network("network to all members: delay", lambda proxy: proxy.slow(0.03), everywhere),
    ]


async def _until(reached: Callable[[], bool]) -> bool:
    end = time.monotonic() + INJECTED_WITHIN
    while not reached():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.005)
    return True
