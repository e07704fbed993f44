"""What an H200 really did, from the bytes that NVML answered to the report of its node.

tools/record_nvml.py recorded it: idle, under load at the power limit, and two kernels that failed.
"""

from monitor.gpus import opened, recorded
from monitor.test_agent import has, healthy, unhealthy
from monitor.world import World
from sully.domain.health.samples import Event


def test_what_the_gpu_is() -> None:
    with opened(recorded()) as nvml:
        (gpu,) = nvml.gpus
        assert nvml.driver_version == "580.159.04"

    assert (gpu.model, gpu.architecture) == ("NVIDIA H200", "Hopper")
    assert gpu.pci_address == "00000000:00:06.0"
    assert (gpu.compute_capability, gpu.memory_bytes) == ((9, 0), 150754820096)


def test_idle() -> None:
    with opened(recorded()) as nvml:
        (sample,) = nvml.read()

    assert (sample.clock_reasons, sample.temperature) == (0x1, 35)
    assert (sample.volatile_uncorrected, sample.aggregate_uncorrected) == (0, 0)
    assert (sample.remapping_pending, sample.remapping_failed) == (False, False)
    assert (sample.pcie_replays, sample.pcie_width, sample.pcie_max_width) == (2, 16, 16)
    # A single GPU in a virtual machine has no fabric.
    assert (sample.nvlinks, sample.fabric_state) == ((), 0)
    assert sample.recovery_action == 0


def test_under_load_the_power_limit_is_reached() -> None:
    library = recorded()
    with opened(library) as nvml:
        library.happen("load")
        samples = [nvml.read()[0] for _ in range(12)]

    assert {sample.clock_reasons for sample in samples} >= {0x4}
    assert max(sample.temperature or 0 for sample in samples) > 45


def test_kernels_that_fail_are_xids() -> None:
    library = recorded()
    with opened(library) as nvml:
        (gpu,) = nvml.gpus
        library.happen("fault-illegal-address")
        library.happen("fault-misaligned-address")
        assert [nvml.wait(0), nvml.wait(0), nvml.wait(0)] == [
            Event(gpu.uuid, "xid", 31),
            Event(gpu.uuid, "xid", 13),
            None,
        ]


async def test_the_whole_day_as_the_agent_reports_it() -> None:
    world, library = World(), recorded(gpus=8)
    async with world.agent(library):
        first = await world.until(healthy)
        assert len({device.uuid for device in first.devices}) == 8
        library.happen("load")
        hot = await world.until(has("power-cap"))
        assert healthy(hot)
        library.happen("fault-illegal-address")
        failed = await world.until(has("xid", "31"))
        # The fault of an application is not one of the GPU; only one of eight had it.
        assert healthy(failed)
        counts = [sum(reason.key == "xid" for reason in x.reasons) for x in failed.devices]
        assert sum(counts) == 1
        library.happen("after")
        library.deliver(xid=79, gpu=5)
        library.lose(5)
        got = await world.until(lambda spec: has("gpu-lost")(spec) and has("xid", "79")(spec))

    assert unhealthy(got)
    assert [x.status for x in got.devices] == ["Healthy"] * 5 + ["Unhealthy"] + ["Healthy"] * 2
