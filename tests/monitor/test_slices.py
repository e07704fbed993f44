"""GPUs that the agent publishes itself, for tests of scheduling."""

from typing import Any

import pytest

from monitor.gpus import stated
from monitor.test_agent import healthy
from monitor.world import World
from sully.client.transport import Key
from sully.domain.devices.identity import pci_addresses, uuids
from sully.domain.devices.selectors import content_of
from sully.domain.health.samples import Gpu
from sully.domain.health.slices import slice_spec
from sully.machinery.errors import NotFound
from sully.monitor.slices import SlicePublisher
from sully.views.kinds import SLICES

NAME = Key("", "n1-gpu.nvml.sully.dev")


def publisher(world: World) -> SlicePublisher:
    return SlicePublisher(world.admin, node="n1", driver="gpu.nvml.sully.dev")


async def test_gpus_are_published_with_what_identifies_them_and_withdrawn() -> None:
    world = World()
    async with world.agent(stated(gpus=2), publisher=publisher(world)):
        report = await world.until(healthy)
        slice_ = await world.admin.get(SLICES, NAME)

    spec = slice_.spec
    assert (spec.driver, spec.node_name, spec.pool.name) == ("gpu.nvml.sully.dev", "n1", "n1")
    for device, reported in zip(spec.devices, report.devices, strict=True):
        attributes = content_of(spec.driver, device).attributes
        assert uuids(attributes) == {reported.uuid.lower()}
        assert pci_addresses(attributes) == {reported.pci_address}
        assert device.capacity["memory"].value == "150G"
    with pytest.raises(NotFound):
        await world.admin.get(SLICES, NAME)


async def test_gpus_of_another_driver_are_not_published_twice() -> None:
    world = World()
    gpu = Gpu(uuid="gpu-00000000-1111-2222-3333-444444444444", index=0, pci_address="")
    spec = slice_spec([gpu], driver="gpu.nvidia.com", node="n1", driver_version="580.159.04")
    spec["pool"]["generation"] = 1
    await world.admin.create(SLICES, {"metadata": {"name": "theirs"}, "spec": spec})
    published = publisher(world)
    async with world.agent(stated(), publisher=published):
        await world.until(healthy)

    assert published.problem == "the driver gpu.nvidia.com already publishes these GPUs"
    assert [x.metadata.name for x in (await world.admin.list(SLICES)).items] == ["theirs"]


VERSIONS: dict[str, Any] = {
    "580.159.04": {"version": "580.159.4"},
    "535.54": {"version": "535.54.0"},
    "": None,
}


@pytest.mark.parametrize(("text", "want"), VERSIONS.items())
def test_versions_are_semantic(text: str, want: Any) -> None:
    gpu = Gpu(uuid="GPU-1", index=0, pci_address="00000000:3B:00.0")
    spec = slice_spec([gpu], driver="d", node="n", driver_version=text)

    assert spec["devices"][0]["attributes"].get("driverVersion") == want
