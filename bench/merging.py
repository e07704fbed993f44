"""Measures the view of all devices without a server: rules merged over many slices.

The shapes are those of the baseline: 500 slices of 64 devices. The view merges when a user asks,
so each figure is the event together with asking for the taints of every device it touches. The
medians of several rounds are shown, and a round without its events must find the world as it was.
"""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import msgspec
import shapes

from sully.api.resource.types import DeviceTaintRule, ResourceSlice
from sully.client.informers.informer import Informer
from sully.client.transport import Kind, WatchEvent
from sully.domain.devices.pools import DeviceId, PoolId
from sully.testing.clock import FakeClock
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLASSES, RULES, SLICES

Line = tuple[str, float, str, float | None, bool, str]
ROUNDS = 9
_versions = count(1)
_CEL = [{"cel": {"expression": shapes.CLASS_SELECTOR}}]


class World:
    """An inventory over collections that are filled by the benchmark."""

    def __init__(self, slices: int, devices: int, *, alike: bool = True) -> None:
        clock = FakeClock()

        def feed(kind: Kind[Any]) -> Informer[Any]:
            return Informer(None, kind, clock=clock)

        self.rules = feed(RULES)
        self.slices = feed(SLICES)
        self.inventory = Inventory(
            slices=self.slices, classes=feed(CLASSES), rules=self.rules, patches=None
        )
        self.pools = [PoolId(shapes.DRIVER, _node(number)) for number in range(slices)]
        self.devices = devices
        for number in range(slices):
            self.slices.change(_slice(number, devices, alike=alike))

    def read(self, pools: Iterable[PoolId]) -> int:
        """Ask for every device of pools; return how many have taints."""
        tainted = 0
        for pool in pools:
            for device in self.inventory.devices(pool).values():
                if device.taints:
                    tainted += 1
        return tainted

    def ask(self) -> int:
        """Ask for every device by its name; return how many have taints."""
        tainted = 0
        for pool in self.pools:
            for index in range(self.devices):
                device = self.inventory.device(DeviceId(*pool, f"gpu-{index}"))
                if device is not None and device.taints:
                    tainted += 1
        return tainted


def _node(number: int) -> str:
    return f"node-{number:04d}"


def _slice(
    number: int, devices: int, type_: str = "ADDED", *, alike: bool = True
) -> WatchEvent[Any]:
    obj = shapes.slice_of(_node(number), devices)
    if not alike:
        for device in obj["spec"]["devices"]:
            device["attributes"]["uuid"] = {"string": f"{_node(number)}-{device['name']}"}
    return _event(obj, ResourceSlice, type_)


def _rule(name: str, type_: str = "ADDED", **selector: Any) -> WatchEvent[Any]:
    return _event(shapes.rule(name, selector, "NoSchedule"), DeviceTaintRule, type_)


def _event(obj: dict[str, Any], kind: type[Any], type_: Any) -> WatchEvent[Any]:
    version = str(next(_versions))
    metadata = {**obj["metadata"], "uid": obj["metadata"]["name"], "resourceVersion": version}
    return WatchEvent(type_, msgspec.convert({**obj, "metadata": metadata}, kind), version)


def _timed(work: Callable[[], object]) -> float:
    # Nothing here waits, so this is the time on a machine that does nothing else.
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def measure() -> Iterator[Line]:
    """Yield (name, value, unit, reference, more is better, note)."""
    gc.set_threshold(50_000, 20, 100)  # as in `sully up`
    world = World(500, 64)
    yield from _one_rule(world)
    note = "32 000 devices of 64 kinds, all read"
    yield "1 rule with CEL", _with_expression(world), "ms", None, False, note
    different = _with_expression(World(500, 64, alike=False))
    yield "1 rule with CEL", different, "ms", None, False, "no two devices alike"
    yield from _small(world)
    yield from _many_rules(World(1563, 64))
    for alike in (True, False):
        yield from _memory(alike=alike)


def _one_rule(world: World) -> Iterator[Line]:
    applied: list[float] = []
    read: list[float] = []
    for _ in range(ROUNDS):
        expect(world.read(world.pools), 0)
        event = _rule("all", driver=shapes.DRIVER)
        applied.append(_timed(lambda event=event: world.rules.change(event)))
        read.append(_timed(lambda: expect(world.read(world.pools), 32_000)))
        world.rules.change(_rule("all", "DELETED"))
    both = statistics.median(map(sum, zip(applied, read, strict=True)))
    note = f"the event itself {statistics.median(applied):.2f} ms; 32 000 devices, all read"
    yield "1 rule", both, "ms", 17.5, False, note

    world.rules.change(_rule("all", driver=shapes.DRIVER))
    first = _timed(lambda: expect(world.ask(), 32_000))
    again = _timed(lambda: expect(world.ask(), 32_000))
    note = f"each device read by its name; again {again:.1f} ms"
    yield "1 rule, by name", first, "ms", None, False, note
    world.rules.change(_rule("all", "DELETED"))


def _with_expression(world: World) -> float:
    event = _rule("cel", selectors=_CEL)
    both = _timed(lambda: world.rules.change(event))
    both += _timed(lambda: expect(world.read(world.pools), 32_000))
    world.rules.change(_rule("cel", "DELETED"))
    return both


def _small(world: World) -> Iterator[Line]:
    """Yield what one event costs beside a rule for everything, and beside a rule per slice."""
    world.rules.change(_rule("all", driver=shapes.DRIVER))
    world.read(world.pools)
    fresh = PoolId(shapes.DRIVER, _node(9999))

    def add() -> float:
        event = _slice(9999, 64)
        took = _timed(lambda: (world.slices.change(event), expect(world.read([fresh]), 64)))
        world.slices.change(_slice(9999, 64, "DELETED"))
        return took

    note = "64 devices under a rule for the whole driver, all read"
    yield "1 slice", _median(add), "us", 31, False, note

    def mark_one() -> float:
        event = _rule("one", driver=shapes.DRIVER, pool=_node(7), device="gpu-3")
        device = DeviceId(shapes.DRIVER, _node(7), "gpu-3")
        took = _timed(lambda: (world.rules.change(event), world.inventory.device(device)))
        world.rules.change(_rule("one", "DELETED"))
        return took

    yield "1 device", _median(mark_one), "us", 32, False, "a rule for one of 32 000, read"
    for number in range(500):
        world.rules.change(_rule(f"per-{number}", driver=shapes.DRIVER, pool=_node(number)))
    world.read(world.pools)

    def mark_pool() -> float:
        event = _rule("more", driver=shapes.DRIVER, pool=_node(7))
        took = _timed(lambda: (world.rules.change(event), world.read([world.pools[7]])))
        world.rules.change(_rule("more", "DELETED"))
        return took

    note = "a rule for one of 500 slices that have a rule each, its devices read"
    yield "1 rule per slice", _median(mark_pool), "us", 250, False, note


def _many_rules(world: World) -> Iterator[Line]:
    expect(world.read(world.pools), 0)
    events = [
        _rule(f"rule-{number}", driver=shapes.DRIVER, pool=_node(number)) for number in range(1000)
    ]
    applied = _timed(lambda: [world.rules.change(event) for event in events])
    read = _timed(lambda: expect(world.read(world.pools), 64_000))
    note = f"the events {applied:.0f} ms; 100 032 devices, all read"
    yield "1000 rules", applied + read, "ms", None, False, note


def _memory(*, alike: bool) -> Iterator[Line]:
    """Yield what 100 000 devices weigh: the slices in the cache, and the view of them."""
    world = World(0, 64)
    gc.collect()
    tracemalloc.start()
    slices = [_slice(number, 64, alike=alike) for number in range(1563)]
    cached = tracemalloc.get_traced_memory()[0] / 2**20
    for event in slices:
        world.slices.change(event)
    pools = list(world.inventory.pools())
    world.read(pools)
    merged = tracemalloc.get_traced_memory()[0] / 2**20
    world.rules.change(_rule("cel", selectors=_CEL))
    world.read(pools)
    judged = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    kinds = "64 kinds" if alike else "no two alike"
    note = f"100 032 devices, {kinds}; the cached slices, then {merged - cached:.0f} for the view"
    note += f", {judged - merged:.0f} once an expression saw all"
    yield "memory", cached, "MiB", None, False, note


def _median(round_: Callable[[], float]) -> float:
    """Return microseconds."""
    return statistics.median(round_() for _ in range(50)) * 1000


def expect(tainted: int, want: int) -> None:
    """End the benchmark if it measured something else."""
    if tainted != want:
        raise RuntimeError(f"{tainted} devices have taints, expected {want}")
