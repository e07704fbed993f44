"""The result of an attempt to allocate: devices, a rejection with its diagnosis, or an error.

The scheduler turns these into conditions and events, and `explain` prints the diagnosis.
An error never names taints or counts, and the diagnosis does.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import Final

import msgspec

from sully.api.resource.types import AllocationResult
from sully.domain.allocation.failures import AllocationFailure, TimedOut
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId
from sully.domain.devices.taints import SourcedTaint

MOST_CHOICES: Final = 8
"""Alternatives in a list; the first scores as much, the last one."""


class RejectionReason(Enum):
    """Why a device is rejected for a request."""

    CLASS_SELECTOR = auto()
    REQUEST_SELECTOR = auto()
    SELECTOR_ERROR = auto()
    NODE = auto()
    CAPACITY = auto()
    IN_USE = auto()
    TAINT = auto()
    COUNTERS = auto()
    CONSTRAINT = auto()


class UnallocatableReason(StrEnum):
    """Why a node cannot serve the claims of a pod."""

    CANNOT_ALLOCATE = auto()
    INVALID_POOLS = auto()
    NOT_ON_NODE = auto()
    """A claim is allocated, and the node cannot use its devices."""


class TaintCount(msgspec.Struct, frozen=True):
    """A taint of one origin, and how many devices it blocked for a request."""

    taint: SourcedTaint
    devices: int
    expired: bool = False
    """The request has a toleration for it, which expired."""


class SelectorCount(msgspec.Struct, frozen=True):
    """A selector, and how many devices it did not match."""

    device_class: str
    """The class that has it; empty for one of the request."""
    index: int
    devices: int


class HolderCount(msgspec.Struct, frozen=True):
    """A claim, and how many devices it holds that a request could use."""

    claim: str
    devices: int


class RequestDiagnosis(msgspec.Struct, frozen=True):
    """Why devices of some nodes were rejected for a request, or for one of its alternatives."""

    claim: str
    request: str
    wanted: int | None
    """How many devices; None stands for all that match."""
    available: int
    """Devices that were not rejected: too few, or not compatible with the others."""
    refused: Mapping[RejectionReason, int]
    taints: tuple[TaintCount, ...] = ()
    """The taints that blocked devices, and how many."""
    selectors: tuple[SelectorCount, ...] = ()
    holders: tuple[HolderCount, ...] = ()
    admin_access: bool = False


class Allocated(msgspec.Struct, frozen=True):
    """Devices for every claim."""

    allocations: tuple[AllocationResult, ...]
    """One for each claim, in the order in which they were given."""
    devices: tuple[tuple[EffectiveDevice, ...], ...]
    """The devices of the results, to record their attributes."""
    shares: tuple[tuple[int, int], ...] = ()
    """Claim and index of each result that is a share, and so needs a share ID."""
    preference: int = 0
    """How early in their lists the chosen alternatives are; the scheduler scores nodes by it."""


class Unallocatable(msgspec.Struct, frozen=True):
    """This node cannot serve the claims; another one may."""

    reason: UnallocatableReason = UnallocatableReason.CANNOT_ALLOCATE
    requests: tuple[RequestDiagnosis, ...] = ()
    incomplete: tuple[PoolId, ...] = ()
    """Pools that were omitted because their driver is still publishing them."""
    invalid: Mapping[PoolId, str] = msgspec.field(default_factory=dict)
    """Pools that were omitted because they are invalid, and why."""


class Failed(msgspec.Struct, frozen=True):
    """A request, a class or a pool is invalid; the attempt ends for all nodes."""

    failure: AllocationFailure

    @property
    def over_budget(self) -> bool:
        """Report whether the attempt costs too much."""
        return isinstance(self.failure, TimedOut)


Verdict = Allocated | Unallocatable | Failed
