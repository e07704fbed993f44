"""What the sample of a GPU shows about its health.

Values that hold now (`measured`) are faults as long as they are measured. Counters (`counted`) show
that something has happened since the last sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sully.api.sully.types import CRITICAL, INFO, WARNING
from sully.domain.health.samples import Sample

LOST = "gpu-lost"
UNRESPONSIVE = "driver-unresponsive"
REPLAYS_PER_MINUTE = 8
"""More on a PCIe link are a sign of bad signals; NVIDIA's DCGM warns at the same rate."""
_FABRIC_IN_PROGRESS, _FABRIC_COMPLETED = 2, 3


class Fault(NamedTuple):
    """Something wrong with a GPU, or worth knowing."""

    key: str
    severity: str
    message: str
    value: str = ""


_CLOCKS: Mapping[int, Fault] = {
    0x4: Fault("power-cap", INFO, "Clocks are reduced: the power limit is reached."),
    0x8: Fault("hw-slowdown", WARNING, "Clocks are reduced by the hardware: heat or power."),
    0x20: Fault("sw-thermal-slowdown", WARNING, "Clocks are reduced by the driver: heat."),
    0x40: Fault("hw-thermal-slowdown", WARNING, "Clocks are reduced by the hardware: heat."),
    0x80: Fault("power-brake", WARNING, "Clocks are reduced by an external power brake."),
}
_ACTION = "recovery-action"
_ACTIONS: Mapping[int, Fault] = {
    1: Fault(_ACTION, CRITICAL, "The driver requires a reset of the GPU.", "gpu-reset"),
    2: Fault(_ACTION, CRITICAL, "The driver requires a restart of the node.", "node-reboot"),
    3: Fault(
        _ACTION, WARNING, "The driver requires that peer-to-peer traffic is stopped.", "drain-p2p"
    ),
    4: Fault(
        _ACTION,
        CRITICAL,
        "The driver requires that the GPU is drained and reset.",
        "drain-and-reset",
    ),
}
_OTHER_ACTION = Fault(_ACTION, CRITICAL, "The driver requires a recovery action: {}.", "other")
_DEGRADED_BANDWIDTH, _ROUTE_UNHEALTHY, _TIMEOUT_RECOVERY = 0, 4, 6
_TRUE = 1


def measured(sample: Sample) -> Iterator[Fault]:
    """Yield what is wrong with a GPU now."""
    if sample.lost:
        yield Fault(LOST, CRITICAL, f"The GPU does not answer: {sample.lost}.")
        return
    yield from _memory(sample)
    yield from (fault for bit, fault in _CLOCKS.items() if (sample.clock_reasons or 0) & bit)
    if sample.pcie_width and sample.pcie_max_width and sample.pcie_width < sample.pcie_max_width:
        text = f"The PCIe link uses {sample.pcie_width} of {sample.pcie_max_width} lanes."
        yield Fault("pcie-width", WARNING, text)
    yield from _fabric(sample)
    if sample.recovery_action:
        fault = _ACTIONS.get(sample.recovery_action, _OTHER_ACTION)
        yield fault._replace(message=fault.message.format(sample.recovery_action))


def _memory(sample: Sample) -> Iterator[Fault]:
    if sample.volatile_uncorrected:
        text = f"{sample.volatile_uncorrected} memory errors since the last reset not corrected."
        yield Fault("ecc-uncorrectable", WARNING, text)
    if sample.aggregate_uncorrected:
        text = f"{sample.aggregate_uncorrected} memory errors in its lifetime were not corrected."
        yield Fault("ecc-uncorrectable-lifetime", INFO, text)
    if sample.remapping_pending:
        yield Fault("row-remapping-pending", WARNING, "A reset is needed to remap bad memory.")
    if sample.remapping_failed:
        yield Fault("row-remapping-failed", CRITICAL, "Bad memory could not be remapped. Replace.")


def _fabric(sample: Sample) -> Iterator[Fault]:
    state, status, health = sample.fabric_state, sample.fabric_status, sample.fabric_health or 0
    if state == _FABRIC_IN_PROGRESS:
        yield Fault("fabric", WARNING, "The registration with the NVLink fabric is in progress.")
    if state == _FABRIC_COMPLETED and status:
        yield Fault("fabric", CRITICAL, f"The NVLink fabric reports error {status}.")
    for shift, text in (
        (_DEGRADED_BANDWIDTH, "has less bandwidth"),
        (_ROUTE_UNHEALTHY, "has bad routes"),
        (_TIMEOUT_RECOVERY, "recovers from a timeout"),
    ):
        if state == _FABRIC_COMPLETED and health >> shift & 0x3 == _TRUE:
            yield Fault("fabric-health", WARNING, f"The NVLink fabric {text}.", str(shift))


def counted(before: Sample, sample: Sample, seconds: float) -> Iterator[Fault]:
    """Yield what happened to a GPU between two samples, by its counters."""
    if sample.lost or before.lost:
        return
    replays = _rise(before.pcie_replays, sample.pcie_replays)
    if seconds > 0 and replays * 60 / seconds > REPLAYS_PER_MINUTE:
        yield Fault(
            "pcie-replays", WARNING, f"{replays} PCIe packets sent again in {seconds:.0f}s."
        )
    if errors := _rise(before.pcie_fatal_errors, sample.pcie_fatal_errors):
        yield Fault("pcie-errors", CRITICAL, f"{errors} fatal errors on the PCIe link.")
    if recoveries := _rise(before.nvlink_recoveries, sample.nvlink_recoveries):
        yield Fault("nvlink-recoveries", WARNING, f"NVLinks were recovered {recoveries} times.")
    if errors := _rise(before.nvlink_errors, sample.nvlink_errors):
        yield Fault("nvlink-errors", INFO, f"{errors} errors on NVLinks were corrected.")
    if errors := _rise(before.volatile_corrected, sample.volatile_corrected):
        yield Fault("ecc-corrected", INFO, f"{errors} memory errors were corrected.")


def links_down(best: tuple[bool, ...], sample: Sample) -> Iterator[Fault]:
    """Yield a fault for NVLinks that are down now and were up before."""
    down = [
        number
        for number, (was_up, is_up) in enumerate(zip(best, sample.nvlinks, strict=False))
        if was_up and not is_up
    ]
    if down:
        names = ", ".join(map(str, down))
        yield Fault("nvlink-down", WARNING, f"NVLinks that were up are down: {names}.")


def _rise(before: int | None, after: int | None) -> int:
    """Return by how much a counter rose; one that starts again counts from zero."""
    if before is None or after is None:
        return 0
    return after - before if after >= before else after
