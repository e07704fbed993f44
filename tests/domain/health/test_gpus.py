"""From samples and events of GPUs to the report of their node."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sully.api.sully.types import DeviceHealth, DeviceHealthSpec, HealthReason, ReportedDevice
from sully.domain.health.gpus import GpuMonitor, Settings, same_content
from sully.domain.health.samples import Event, Gpu, Sample
from sully.domain.health.xids import XID_CLASSES, XIDS, classify
from sully.machinery.meta import ObjectMeta

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
GPU = Gpu(uuid="GPU-1", index=0, pci_address="00000000:3B:00.0", model="NVIDIA H200")
OTHER = Gpu(uuid="GPU-2", index=1, pci_address="00000000:5E:00.0")
FINE = Sample(
    gpu=GPU,
    volatile_uncorrected=0,
    aggregate_uncorrected=0,
    remapping_pending=False,
    remapping_failed=False,
    clock_reasons=1,
    pcie_replays=0,
    pcie_fatal_errors=0,
    pcie_width=16,
    pcie_max_width=16,
    nvlinks=(True, True),
    nvlink_errors=0,
    nvlink_recoveries=0,
    fabric_state=3,
    fabric_status=0,
    recovery_action=0,
)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def monitor(**settings: Any) -> GpuMonitor:
    return GpuMonitor(Settings(node="n1", boot_id="b1", **settings))


def shown(device: ReportedDevice) -> tuple[str, list[str]]:
    """Return status and reasons, as a table of cases writes them."""
    return device.status, [" ".join(filter(None, (x.key, x.value))) for x in device.reasons]


def only(spec: DeviceHealthSpec) -> tuple[str, list[str]]:
    (device,) = spec.devices
    return shown(device)


def changed(**values: Any) -> Sample:
    return replace(FINE, **values)


MEASURED: dict[str, tuple[Sample, str, list[str]]] = {
    "nothing": (FINE, "Healthy", []),
    "a GPU that knows little": (Sample(gpu=GPU), "Healthy", []),
    "lost": (Sample(gpu=GPU, lost="GPU is lost"), "Unhealthy", ["gpu-lost"]),
    "uncorrected errors": (changed(volatile_uncorrected=2), "Degraded", ["ecc-uncorrectable"]),
    "errors long ago": (
        changed(aggregate_uncorrected=1),
        "Healthy",
        ["ecc-uncorrectable-lifetime"],
    ),
    "a row to remap": (changed(remapping_pending=True), "Degraded", ["row-remapping-pending"]),
    "a row that was not remapped": (
        changed(remapping_pending=True, remapping_failed=True),
        "Unhealthy",
        ["row-remapping-failed", "row-remapping-pending"],
    ),
    "idle, by a setting, for a display": (changed(clock_reasons=0x1 | 0x2 | 0x100), "Healthy", []),
    "at the power limit": (changed(clock_reasons=0x4), "Healthy", ["power-cap"]),
    "hot": (
        changed(clock_reasons=0x8 | 0x40),
        "Degraded",
        ["hw-slowdown", "hw-thermal-slowdown"],
    ),
    "hot, as the driver reports": (
        changed(clock_reasons=0x20),
        "Degraded",
        ["sw-thermal-slowdown"],
    ),
    "power brake": (changed(clock_reasons=0x80), "Degraded", ["power-brake"]),
    "half of the lanes": (changed(pcie_width=8), "Degraded", ["pcie-width"]),
    "no fabric": (changed(fabric_state=0, fabric_status=3), "Healthy", []),
    "a fabric that begins": (changed(fabric_state=2), "Degraded", ["fabric"]),
    "a fabric that failed": (changed(fabric_status=999), "Unhealthy", ["fabric"]),
    "a fabric with less bandwidth": (changed(fabric_health=0x1), "Degraded", ["fabric-health 0"]),
    "a fabric without a fault": (changed(fabric_health=0x2 | 0x20), "Healthy", []),
    "a reset is required": (
        changed(recovery_action=1),
        "Unhealthy",
        ["recovery-action gpu-reset"],
    ),
    "an action that is new": (changed(recovery_action=42), "Unhealthy", ["recovery-action other"]),
}


@pytest.mark.parametrize(("sample", "status", "reasons"), MEASURED.values(), ids=MEASURED.keys())
def test_what_is_measured(sample: Sample, status: str, reasons: list[str]) -> None:
    one = monitor()
    one.sampled([sample], now=NOON)
    assert only(one.report(now=NOON)) == (status, reasons)

    # It ends when it is no longer measured.
    one.sampled([FINE], now=at(5))
    assert only(one.report(now=at(5))) == ("Healthy", [])


COUNTED: dict[str, tuple[Sample, float, str, list[str]]] = {
    "some replays": (changed(pcie_replays=8), 60, "Healthy", []),
    "many replays": (changed(pcie_replays=9), 60, "Degraded", ["pcie-replays"]),
    "many replays in no time": (changed(pcie_replays=9), 0, "Healthy", []),
    "fatal errors": (changed(pcie_fatal_errors=1), 5, "Unhealthy", ["pcie-errors"]),
    "recoveries": (changed(nvlink_recoveries=1), 5, "Degraded", ["nvlink-recoveries"]),
    "corrected errors": (changed(nvlink_errors=7), 5, "Healthy", ["nvlink-errors"]),
    "a link that is down": (changed(nvlinks=(True, False)), 5, "Degraded", ["nvlink-down"]),
}


@pytest.mark.parametrize(
    ("sample", "after", "status", "reasons"), COUNTED.values(), ids=COUNTED.keys()
)
def test_what_is_counted(sample: Sample, after: float, status: str, reasons: list[str]) -> None:
    one = monitor()
    one.sampled([FINE], now=NOON)
    one.sampled([sample], now=at(after))

    assert only(one.report(now=at(after))) == (status, reasons)


def test_counters_of_a_gpu_that_was_reset_start_again() -> None:
    one = monitor()
    one.sampled([changed(pcie_fatal_errors=5, nvlink_recoveries=5)], now=NOON)
    one.sampled([changed(pcie_fatal_errors=0, nvlink_recoveries=0)], now=at(5))

    assert only(one.report(now=at(5))) == ("Healthy", [])


XID_CASES = {13: "Healthy", 31: "Healthy", 45: "Healthy", 79: "Unhealthy", 9999: "Degraded"}


@pytest.mark.parametrize(("number", "status"), XID_CASES.items())
def test_an_xid(number: int, status: str) -> None:
    one = monitor()
    one.sampled([FINE], now=NOON)
    one.event(Event("GPU-1", "xid", number), now=at(1))

    assert only(one.report(now=at(1))) == (status, [f"xid {number}"])


def test_the_class_of_an_xid_can_be_changed() -> None:
    one = monitor(xids={31: "fatal", 79: "informational"})
    one.sampled([FINE], now=NOON)
    one.event(Event("GPU-1", "xid", 79), now=at(1))
    assert only(one.report(now=at(1))) == ("Healthy", ["xid 79"])

    one.event(Event("GPU-1", "xid", 31), now=at(1))
    assert only(one.report(now=at(1))) == ("Unhealthy", ["xid 31", "xid 79"])


def test_every_xid_has_a_class_and_a_sentence() -> None:
    for number, xid in XIDS.items():
        assert xid.type in XID_CLASSES
        assert xid.text.endswith(".")
        assert classify(number) == xid


# The immediate actions of NVIDIA's catalog for Ampere and newer GPUs, as facts of their own.
ACTIONS: dict[str, tuple[int, ...]] = {
    "fatal": (
        *(46, 48, 54, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143),
        *(149, 150, 151, 155, 156, 158),
    ),
    "application": (
        *(8, 13, 25, 31, 32, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80),
        *(82, 83, 84, 85, 86, 88, 89, 94, *range(96, 106), *range(126, 136), 139),
    ),
    "informational": (
        *(37, 38, 43, 44, 45, 63, 66, 67, 92, 93, 106, 107, 108, 121, 137, 141, 147, 148),
        *(152, 153, 154, 157, 160, 161),
    ),
    "unclassified": (1, 12, 42, 47, 61, 65, 73, 78, 81, 87, 90, 91, 111, 125, 138, 142, 159),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_classes_follow_the_catalog(action: str) -> None:
    assert {number: classify(number).type for number in ACTIONS[action]} == dict.fromkeys(
        ACTIONS[action], action
    )


def test_an_event_of_an_application_expires() -> None:
    one = monitor(hold=timedelta(minutes=5))
    one.sampled([FINE], now=NOON)
    one.event(Event("GPU-1", "xid", 31), now=NOON)
    one.event(Event("GPU-1", "xid", 31), now=at(60))

    (reason,) = one.report(now=at(359)).devices[0].reasons
    assert (reason.count, reason.since, reason.last_time) == (2, NOON, at(60))
    assert reason.expiration_time == at(360)
    assert one.report(now=at(360)).devices[0].reasons == ()


ENDS = {
    "the driver does not report it": (None, "Unhealthy"),
    "the driver wants a reset": (1, "Unhealthy"),
    "the driver wants nothing": (0, "Healthy"),
}


@pytest.mark.parametrize(("action", "want"), ENDS.values(), ids=ENDS.keys())
def test_a_fatal_xid_ends_when_the_driver_wants_no_recovery(action: int | None, want: str) -> None:
    one = monitor(hold=timedelta(minutes=5))
    sample = changed(recovery_action=action)
    one.sampled([sample], now=NOON)
    one.event(Event("GPU-1", "xid", 95), now=NOON)
    one.sampled([sample], now=at(299))
    assert one.report(now=at(299)).overall_status == "Unhealthy"

    one.sampled([sample], now=at(300))
    assert one.report(now=at(300)).overall_status == want


def test_a_gpu_that_disappears_is_lost_and_others_are_not() -> None:
    one = monitor()
    one.sampled([FINE, replace(FINE, gpu=OTHER)], now=NOON)
    one.sampled([replace(FINE, gpu=OTHER)], now=at(5))

    first, second = one.report(now=at(5)).devices
    assert (shown(first), shown(second)) == (("Unhealthy", ["gpu-lost"]), ("Healthy", []))
    one.sampled([FINE, replace(FINE, gpu=OTHER)], now=at(10))
    assert one.report(now=at(10)).overall_status == "Healthy"


def test_a_gpu_that_was_replaced_is_forgotten() -> None:
    one = monitor()
    one.sampled([FINE], now=NOON)
    one.event(Event("GPU-1", "xid", 79), now=NOON)
    one.sampled([replace(FINE, gpu=replace(GPU, uuid="GPU-9"))], now=at(5))

    (device,) = one.report(now=at(5)).devices
    assert (device.uuid, device.status) == ("GPU-9", "Healthy")


def test_an_event_of_no_gpu_is_about_all_and_one_of_an_unknown_gpu_about_none() -> None:
    one = monitor()
    one.sampled([FINE, replace(FINE, gpu=OTHER)], now=NOON)
    one.event(Event("GPU-7", "xid", 79), now=NOON)
    assert one.report(now=NOON).overall_status == "Healthy"

    one.event(Event("", "xid", 79), now=NOON)
    assert {device.status for device in one.report(now=NOON).devices} == {"Unhealthy"}


def test_what_cannot_be_measured_is_unknown_and_keeps_its_reasons() -> None:
    one = monitor()
    one.sampled([FINE], now=NOON)
    one.event(Event("GPU-1", "xid", 79), now=NOON)
    one.unavailable("Driver Not Loaded", now=at(5))

    got = one.report(now=at(5))
    assert (got.message, only(got)) == ("Driver Not Loaded", ("Unknown", ["xid 79"]))
    assert got.devices[0].since == at(5)
    one.sampled([FINE], now=at(10))
    assert only(one.report(now=at(10))) == ("Unhealthy", ["xid 79"])


def test_a_driver_that_does_not_answer_is_a_fault_of_all() -> None:
    one = monitor()
    one.sampled([FINE], now=NOON)
    one.unresponsive(now=at(30))
    got = one.report(now=at(30))

    assert only(got) == ("Unhealthy", ["driver-unresponsive"])
    assert got.message
    one.sampled([FINE], now=at(40))
    assert only(one.report(now=at(40))) == ("Healthy", [])


# -- restarts -------------------------------------------------------------------------------------


def restarted(spec: DeviceHealthSpec, *, boot: str = "b1") -> GpuMonitor:
    one = GpuMonitor(Settings(node="n1", boot_id=boot))
    one.restore(DeviceHealth(metadata=ObjectMeta(name="n1"), spec=spec))
    return one


def faulty() -> DeviceHealthSpec:
    one = monitor()
    one.sampled([changed(remapping_pending=True), replace(FINE, gpu=OTHER)], now=NOON)
    one.event(Event("GPU-1", "xid", 79), now=NOON)
    return one.report(now=NOON)


def test_a_restart_of_the_agent_forgets_nothing() -> None:
    one = restarted(faulty())
    samples = [changed(remapping_pending=True), replace(FINE, gpu=OTHER)]
    one.sampled(samples, now=at(60))

    assert same_content(one.report(now=at(60)), faulty())


def test_a_restart_of_the_node_forgets_events_but_not_gpus() -> None:
    one = restarted(faulty(), boot="b2")
    one.sampled([FINE], now=at(600))

    first, second = one.report(now=at(600)).devices
    assert (shown(first), shown(second)) == (("Healthy", []), ("Unhealthy", ["gpu-lost"]))


def test_whoever_deletes_the_report_acknowledges_it() -> None:
    one = restarted(faulty(), boot="b1")
    one.sampled([FINE], now=at(60))
    one.acknowledge()
    one.sampled([FINE], now=at(65))

    assert only(one.report(now=at(65))) == ("Healthy", [])


def test_the_worst_reasons_find_room() -> None:
    one = monitor()
    one.sampled([FINE], now=NOON)
    for number in range(200, 260):
        one.event(Event("GPU-1", "xid", number), now=NOON)
    one.event(Event("GPU-1", "xid", 79), now=NOON)

    reasons = one.report(now=NOON).devices[0].reasons
    assert len(reasons) == 32
    assert reasons[0].value == "79"


# -- every history --------------------------------------------------------------------------------

STEPS = st.sampled_from(
    (
        "fine",
        "hot",
        "lost",
        "gone",
        "xid 79",
        "xid 31",
        "xid 63",
        "unavailable",
        "unresponsive",
        "restart",
    )
)


def _step(one: GpuMonitor, step: str, now: datetime) -> GpuMonitor:
    match step.split():
        case ["fine"]:
            one.sampled([FINE], now=now)
        case ["hot"]:
            one.sampled([changed(clock_reasons=0x40)], now=now)
        case ["lost"]:
            one.sampled([Sample(gpu=GPU, lost="GPU is lost")], now=now)
        case ["gone"]:
            one.sampled([], now=now)
        case ["xid", number]:
            one.event(Event("GPU-1", "xid", int(number)), now=now)
        case ["unavailable"]:
            one.unavailable("Driver Not Loaded", now=now)
        case ["unresponsive"]:
            one.unresponsive(now=now)
        case _:
            return restarted(one.report(now=now))
    return one


@given(st.lists(st.tuples(STEPS, st.integers(1, 200)), max_size=12))
def test_in_every_history(history: list[tuple[str, int]]) -> None:
    one, now = monitor(), NOON
    one.sampled([FINE], now=now)
    last_fatal: datetime | None = None
    for step, seconds in history:
        now += timedelta(seconds=seconds)
        one = _step(one, step, now)
        last_fatal = now if step == "xid 79" else last_fatal
        (device,) = one.report(now=now).devices
        assert device.since <= now
        assert all(reason.since <= now for reason in device.reasons)
        # A fatal event is not forgotten within the time that it is held.
        if last_fatal is not None and now - last_fatal < timedelta(minutes=5):
            assert device.status in ("Unhealthy", "Unknown")
            assert _has(device.reasons, "79")
    # When all is quiet again, it is healthy.
    one.sampled([FINE], now=now)
    now += timedelta(minutes=6)
    one.sampled([FINE], now=now)
    assert only(one.report(now=now)) == ("Healthy", [])


def _has(reasons: tuple[HealthReason, ...], value: str) -> bool:
    return any(reason.value == value for reason in reasons)
