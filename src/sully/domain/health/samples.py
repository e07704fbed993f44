"""What a library for GPUs measured: values without judgement.

None is a value that a GPU, or its driver, does not have.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What does not change about a GPU while its driver is loaded."""

    uuid: str
    index: int
    pci_address: str
    model: str = ""
    serial: str = ""
    architecture: str = ""
    compute_capability: tuple[int, int] | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What was measured about a GPU."""

    gpu: Gpu
    lost: str = ""
    """Why nothing else could be measured: the library's error."""
    volatile_uncorrected: int | None = None
    """Memory errors since the driver was loaded or the GPU was reset."""
    volatile_corrected: int | None = None
    aggregate_uncorrected: int | None = None
    aggregate_corrected: int | None = None
    remapping_pending: bool | None = None
    remapping_failed: bool | None = None
    clock_reasons: int | None = None
    """Bits of what currently limits the clocks."""
    temperature: int | None = None
    pcie_replays: int | None = None
    pcie_fatal_errors: int | None = None
    pcie_width: int | None = None
    pcie_max_width: int | None = None
    nvlinks: tuple[bool, ...] = ()
    """Whether each link is up; empty without NVLink."""
    nvlink_errors: int | None = None
    """CRC errors and replays, which the links have corrected."""
    nvlink_recoveries: int | None = None
    fabric_state: int | None = None
    fabric_status: int | None = None
    fabric_health: int | None = None
    recovery_action: int | None = None
    """What the driver wants to be done with the GPU."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event that the driver reported."""

    uuid: str
    """Empty if it is about no GPU in particular."""
    kind: str
    """`xid`, or `ecc` for an uncorrectable memory error."""
    data: int = 0
    """Number of the XID."""


XID, DOUBLE_BIT = "xid", "ecc"
