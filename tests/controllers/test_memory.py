"""What a pod with its claim, and a device, occupy in a control plane, counted in bytes and objects.

The counts depend on no time and no machine, except for what a control plane loads once, a minute
after its start: with the first bookmark of each watch. The tables that bookmarks need are loaded
before, and what else is loaded then is in one round only. The counts include caches, indexes, the
scheduler and five minutes of history, but not what is bounded for all objects together: encoded
values, of which old ones are compressed (tests/store/test_packing.py), and decoded objects
(recent_forms.py).
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

import pytest

import manifests
from controllers.world import PODS, Obj
from sully.app import Config, running
from sully.client.direct import DirectTransport
from sully.client.transport import Kind
from sully.machinery.serialization.decode import empty_object
from sully.server.storage.recent_forms import MAX_BYTES
from sully.testing.patience import PATIENCE

NODES: Kind[Obj] = Kind("", "v1", "nodes", "Node", dict, namespaced=False)
EVENTS: Kind[Obj] = Kind("", "v1", "events", "Event", dict)
RESOURCE = ("resource.k8s.io", "v1")
SLICES: Kind[Obj] = Kind(*RESOURCE, "resourceslices", "ResourceSlice", dict, namespaced=False)
CLASSES: Kind[Obj] = Kind(*RESOURCE, "deviceclasses", "DeviceClass", dict, namespaced=False)
TEMPLATES: Kind[Obj] = Kind(*RESOURCE, "resourceclaimtemplates", "ResourceClaimTemplate", dict)
NODES_BEFORE, NODES_MEASURED, DEVICES = 10, 40, 16
PODS_BEFORE, PODS_MEASURED = 40, 160
ROUNDS = 2
"""More would fill what is bounded for all pods together, so that a pod adds less."""
ENCODINGS = "*/machinery/serialization/codec.py"


class Occupied(NamedTuple):
    """What was allocated and not freed."""

    bytes: float
    objects: float
    places: str
    """Where most of it was allocated."""


async def test_what_a_pod_and_a_device_occupy(tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path, port=0, store="memory", audit_log="")
    async with running(config) as plane, asyncio.timeout(PATIENCE):
        admin = DirectTransport(plane.direct())
        await admin.create(CLASSES, {"metadata": {"name": "gpu"}})
        template = {"metadata": {"name": "gpu", "namespace": "default"}}
        await admin.create(TEMPLATES, template | {"spec": {"spec": manifests.claim_spec()}})

        async def publish(start: int, end: int) -> None:
            for number in range(start, end):
                name = f"n-{number:04}"
                await admin.create(NODES, manifests.node(name))
                published = manifests.slice_(name, name, *manifests.gpus(DEVICES))
                await admin.create(SLICES, published)

        async def schedule(start: int, end: int) -> None:
            for number in range(start, end):
                spec = manifests.pod_spec(template="gpu")
                pod = manifests.pod(f"p-{number:04}", spec, namespace="default")
                await admin.create(PODS, pod)
            # The event is the last thing that is written for a pod; the watch starts with all.
            seen = 0
            async with aclosing(admin.watch(EVENTS)) as events:
                async for event in events:
                    seen += event.type == "ADDED"
                    if seen >= end:
                        return

        def occupied() -> tracemalloc.Snapshot:
            # The newest decoded objects go.
            plane.api.objects.recent.add({}, MAX_BYTES)
            gc.collect()
            return tracemalloc.take_snapshot().filter_traces(
                [
                    tracemalloc.Filter(False, ENCODINGS),
                    tracemalloc.Filter(False, tracemalloc.__file__),
                ]
            )

        scheme = plane.api.scheme
        for resource in scheme.resources():
            for version in resource.versions:
                empty_object(scheme.schema(resource, version.name))
        await publish(0, NODES_BEFORE)
        await schedule(0, PODS_BEFORE)
        tracemalloc.start()
        try:
            before = occupied()
            await publish(NODES_BEFORE, NODES_BEFORE + NODES_MEASURED)
            # When this pod is scheduled, all caches have the devices.
            await schedule(PODS_BEFORE, PODS_BEFORE + 1)
            published = last = occupied()
            pods: list[Occupied] = []
            for round_ in range(ROUNDS):
                start = PODS_BEFORE + 1 + round_ * PODS_MEASURED
                await schedule(start, start + PODS_MEASURED)
                scheduled = occupied()
                pods.append(_difference(scheduled, last, PODS_MEASURED))
                last = scheduled
                # With a tenth to spare; docs/measurements.md has the figures. 1300 bytes and 21
                # objects of a pod are what the scheduler records of specs that it read last, 1024
                # at most.
                if pods[-1].bytes < 19_000 and pods[-1].objects < 222:
                    break
            else:
                pytest.fail("\n\n".join(map(str, pods)))
        finally:
            tracemalloc.stop()
    device = _difference(published, before, NODES_MEASURED * DEVICES)
    assert device.bytes < 1050, device
    assert device.objects < 13, device


def _difference(after: tracemalloc.Snapshot, before: tracemalloc.Snapshot, count: int) -> Occupied:
    differences = after.compare_to(before, "lineno")
    most = sorted(differences, key=lambda line: -line.size_diff)[:20]
    return Occupied(
        sum(line.size_diff for line in differences) / count,
        sum(line.count_diff for line in differences) / count,
        "\n".join(f"{line.size_diff / count:7.0f} {line.traceback}" for line in most),
    )
