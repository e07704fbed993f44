"""GPUs as a ResourceSlice, where no DRA driver publishes them: for tests of scheduling only.

The attributes have the names that NVIDIA's driver uses, so that the same selectors work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from sully.api.resource.types import ResourceSlice
from sully.domain.devices.identity import normal_pci, uuids
from sully.domain.devices.selectors import content_of
from sully.domain.health.samples import Gpu

Obj = dict[str, Any]


def slice_spec(gpus: Iterable[Gpu], *, driver: str, node: str, driver_version: str) -> Obj:
    """Return the slice of a node, without the generation of its pool."""
    return {
        "driver": driver,
        "nodeName": node,
        "pool": {"name": node, "resourceSliceCount": 1},
        "devices": [_device(gpu, driver_version) for gpu in gpus],
    }


def _device(gpu: Gpu, driver_version: str) -> Obj:
    attributes: Obj = {
        "type": {"string": "gpu"},
        "uuid": {"string": gpu.uuid},
        "index": {"int": gpu.index},
        "productName": {"string": gpu.model},
        "architecture": {"string": gpu.architecture},
        "driverVersion": _version(driver_version),
        "resource.kubernetes.io/pciBusID": {"string": normal_pci(gpu.pci_address)},
    }
    if gpu.compute_capability is not None:
        attributes["cudaComputeCapability"] = _version(".".join(map(str, gpu.compute_capability)))
    device: Obj = {
        "name": f"gpu-{gpu.index}",
        "attributes": {
            name: value for name, value in attributes.items() if "" not in value.values()
        },
    }
    if gpu.memory_bytes is not None:
        device["capacity"] = {"memory": {"value": str(gpu.memory_bytes)}}
    return device


def _version(text: str) -> Obj:
    """Return a version as a semantic one: 580.159.04 is 580.159.4."""
    parts = [str(int(part)) for part in re.findall(r"\d+", text)[:3]]
    return {"version": ".".join((*parts, "0", "0")[:3])} if parts else {"string": ""}


def published_by_others(
    slices: Iterable[ResourceSlice], gpus: Iterable[Gpu], driver: str
) -> Iterator[str]:
    """Yield the drivers that already publish some of these GPUs."""
    own = {gpu.uuid.lower() for gpu in gpus}
    for one in slices:
        spec = one.spec
        if spec.driver != driver and any(
            uuids(content_of(spec.driver, device).attributes) & own for device in spec.devices
        ):
            yield spec.driver
