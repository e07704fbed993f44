"""Measures what a turn costs an allocation on etcd, beside a server that does not check.

    PYTHONPATH=tests:tools python bench/turns.py

All devices are in one pool, which is the worst case: allocations at the same time wait for each
other. The two servers take turns, so that what else runs on the machine meets both.
"""

import asyncio
import statistics
import sys
import time
from contextlib import AsyncExitStack

from msgspec.structs import replace

from allocating import Plane
from etcds import Etcd
from sully.store.etcd.store import EtcdStore

EACH = 300
ROUNDS = 3


async def _plane(stack: AsyncExitStack, etcd: Etcd, name: str) -> Plane:
    address = replace(etcd.address, prefix=f"/{name}")
    store = await stack.enter_async_context(await EtcdStore.open(address))
    plane = Plane(store, strict=name == "unchecked")
    await plane.api.devices.start()
    await plane.prepare(*(f"c{n}" for n in range(EACH)))
    return plane


async def _alone(plane: Plane, n: int) -> float:
    began = time.perf_counter()
    await plane.allocate(f"c{n}", f"gpu-{n}")
    return (time.perf_counter() - began) * 1000


async def _at_once(plane: Plane) -> float:
    await asyncio.gather(*(plane.release(f"c{n}") for n in range(EACH)))
    began = time.perf_counter()
    await asyncio.gather(*(plane.allocate(f"c{n}", f"gpu-{n}") for n in range(EACH)))
    return time.perf_counter() - began


async def main() -> None:
    """Measure and print."""
    with Etcd() as etcd:
        async with AsyncExitStack() as stack:
            planes = {name: await _plane(stack, etcd, name) for name in ("unchecked", "guarded")}
            alone: dict[str, list[float]] = {name: [] for name in planes}
            for n in range(EACH):
                for name, plane in planes.items():
                    alone[name].append(await _alone(plane, n))
            together: dict[str, list[float]] = {name: [] for name in planes}
            for _ in range(ROUNDS):
                for name, plane in planes.items():
                    together[name].append(await _at_once(plane))
    for name in planes:
        least, most = min(together[name]), max(together[name])
        sys.stdout.write(
            f"{name:10} one at a time, median {statistics.median(alone[name]):.2f} ms;"
            f" {EACH} together {least:.2f} to {most:.2f} s\n"
        )


if __name__ == "__main__":
    asyncio.run(main())
