"""The agent of a node, with a server and a library as C sees it: what happens is in the report."""

import dataclasses
import threading
from datetime import timedelta

import pytest

from monitor.gpus import stated
from monitor.world import FAST, NODE, Done, World
from sully.api.sully.types import DeviceHealthSpec
from sully.views.kinds import DEVICE_HEALTH


def healthy(spec: DeviceHealthSpec) -> bool:
    return spec.overall_status == "Healthy"


def unhealthy(spec: DeviceHealthSpec) -> bool:
    return spec.overall_status == "Unhealthy"


def has(key: str, value: str = "") -> Done:
    """Return whether a report has a reason."""
    return lambda spec: any(
        (reason.key, reason.value) == (key, value)
        for device in spec.devices
        for reason in device.reasons
    )


@pytest.fixture
def world() -> World:
    return World()


async def test_the_report_of_a_node(world: World) -> None:
    async with world.agent(stated(gpus=2)):
        got = await world.until(healthy)

    assert (got.node_name, got.reporter, got.boot_id) == ("n1", "nvml", "b1")
    assert [device.index for device in got.devices] == [0, 1]
    assert got.devices[0].pci_address == "0000:3b:00.0"
    assert got.devices[0].model == "NVIDIA H200"


async def test_a_report_that_does_not_change_is_renewed(world: World) -> None:
    async with world.agent(stated()):
        first = await world.until(healthy)
        later = await world.until(lambda spec: spec.renew_time > first.renew_time)

    assert later.devices == first.devices


async def test_an_event_changes_the_report(world: World) -> None:
    library = stated(gpus=2)
    async with world.agent(library):
        await world.until(healthy)
        library.deliver(xid=79, gpu=1)
        got = await world.until(unhealthy)

    assert [device.status for device in got.devices] == ["Healthy", "Unhealthy"]
    assert got.devices[1].reasons[0].message.startswith("XID 79 (fatal)")


async def test_an_event_of_an_application_does_not_make_a_gpu_unhealthy(world: World) -> None:
    library = stated()
    async with world.agent(library, hold=timedelta(minutes=3)):
        await world.until(healthy)
        library.deliver(xid=31)
        got = await world.until(has("xid", "31"))

    (reason,) = got.devices[0].reasons
    assert (got.overall_status, reason.severity) == ("Healthy", "Info")
    assert reason.expiration_time == reason.since + timedelta(minutes=3)


async def test_a_gpu_that_is_lost_and_comes_back(world: World) -> None:
    library = stated(gpus=2)
    async with world.agent(library):
        await world.until(healthy)
        library.lose(1)
        got = await world.until(has("gpu-lost"))
        assert [device.status for device in got.devices] == ["Healthy", "Unhealthy"]
        library.recover(1)
        await world.until(healthy)


async def test_without_a_driver_the_health_is_unknown(world: World) -> None:
    library = stated()
    library.answer("nvmlInitWithFlags", 9)
    async with world.agent(library):
        got = await world.until(lambda spec: spec.message != "")
        assert (got.message, got.overall_status, got.devices) == (
            "NVML: Driver Not Loaded",
            "Unknown",
            (),
        )
        library.answer("nvmlInitWithFlags", 0)
        assert (await world.until(healthy)).message == ""


async def test_a_driver_that_disconnects_and_reconnects(world: World) -> None:
    library = stated()
    async with world.agent(library):
        await world.until(healthy)
        library.answer("nvmlDeviceGetRemappedRows", 9)
        got = await world.until(lambda spec: spec.overall_status == "Unknown")
        assert got.devices[0].uuid
        library.answer("nvmlDeviceGetRemappedRows", 0, 0, 0, 0, 0)
        await world.until(healthy)


async def test_a_driver_that_hangs_is_a_fault_and_nobody_waits_for_it(world: World) -> None:
    library, hangs = stated(), threading.Event()
    async with world.agent(library, timing=dataclasses.replace(FAST, timeout=0.2)):
        await world.until(healthy)
        library.block("nvmlDeviceGetTemperature", hangs)
        got = await world.until(has("driver-unresponsive"))
        assert unhealthy(got)
        hangs.set()
        await world.until(healthy)
        hangs.clear()
        await world.until(has("driver-unresponsive"))
        # The agent stops, though its thread hangs.
    hangs.set()


async def test_a_wait_that_fails_is_repeated(world: World) -> None:
    library = stated()
    async with world.agent(library):
        await world.until(healthy)
        library.fail_events(999)
        library.deliver(xid=95)
        await world.until(has("xid", "95"))


async def test_another_process_continues_the_report(world: World) -> None:
    library = stated()
    async with world.agent(library):
        await world.until(healthy)
        library.deliver(xid=79)
        before = await world.until(unhealthy)
    async with world.agent(stated()):
        after = await world.until(lambda spec: spec.renew_time > before.renew_time)

    assert after.devices == before.devices


async def test_whoever_deletes_the_report_acknowledges_it(world: World) -> None:
    library = stated()
    async with world.agent(library):
        await world.until(healthy)
        library.deliver(xid=79)
        await world.until(unhealthy)
        await world.admin.delete(DEVICE_HEALTH, NODE)
        await world.until(healthy)


async def test_a_change_by_another_user_is_overwritten(world: World) -> None:
    async with world.agent(stated()):
        await world.until(healthy)
        change = {"spec": {"overallStatus": "Unhealthy", "devices": []}}
        await world.admin.patch(DEVICE_HEALTH, NODE, change)
        await world.until(lambda spec: healthy(spec) and len(spec.devices) == 1)
