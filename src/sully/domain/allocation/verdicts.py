"""What became of an attempt to allocate: devices, a refusal with its diagnosis, or an error.

The scheduler turns these into conditions and events, and `explain` prints the diagnosis.
The texts in `Unallocatable.reason`, `Unresolved.message` and `Failed.error` are Kubernetes';
they never name taints or counts, and the diagnosis does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sully.api.resource.types import AllocationResult, DeviceTaint
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import PoolId
from sully.domain.devices.taints import SourcedTaint

CANNOT_ALLOCATE: Final = "cannot allocate all claims"
INVALID_POOLS: Final = "invalid resource pools were encountered"
MOST_CHOICES: Final = 8
"""Alternatives in a list; the first scores as much, the last one."""
NOT_ON_NODE: Final = "resourceclaim not available on the node"


class Reason(Enum):
    """Why a request cannot have a device; the values are words for people and for metrics."""

    CLASS_SELECTOR = "class selector"
    REQUEST_SELECTOR = "request selector"
    SELECTOR_ERROR = "selector error"
    NODE = "other node"
    CAPACITY = "capacity"
    IN_USE = "in use"
    TAINT = "taint"
    COUNTERS = "counters"
    CONSTRAINT = "constraint"


class FailureCause(Enum):
    """What an attempt to allocate fails on, where it is known."""

    POOL_INCOMPLETE = "pool incomplete"
    POOL_INVALID = "pool invalid"
    TOO_MANY_DEVICES = "too many devices"
    CONSTRAINT = "constraint"
    CEL_COMPILE = "CEL compile error"
    CEL_RUNTIME = "CEL runtime error"


@dataclass(frozen=True, slots=True)
class TaintCount:
    """A taint of one origin, and how many devices it kept from a request."""

    taint: SourcedTaint
    devices: int
    expired: bool = False
    """The request has a toleration for it, whose time is over."""


@dataclass(frozen=True, slots=True)
class SelectorCount:
    """A selector, and how many devices it did not choose."""

    device_class: str
    """The class it stands in; empty for the request's own."""
    index: int
    devices: int


@dataclass(frozen=True, slots=True)
class HolderCount:
    """A claim, and how many devices that a request could use are in its hands."""

    claim: str
    devices: int


@dataclass(frozen=True, slots=True)
class RequestDiagnosis:
    """How the devices of some nodes looked to one request, or to one of its alternatives."""

    claim: str
    request: str
    wanted: int | None
    """How many devices; None stands for all that match."""
    available: int
    """Devices that nothing spoke against; they were too few, or did not go with the others."""
    refused: Mapping[Reason, int]
    taints: tuple[TaintCount, ...] = ()
    """Which taints kept the request off how many devices."""
    selectors: tuple[SelectorCount, ...] = ()
    holders: tuple[HolderCount, ...] = ()
    admin_access: bool = False

    def __str__(self) -> str:
        """Say it in one line."""
        parts = [f"{self.available} available"]
        parts += [
            f"{self.refused[each]} {each.value}"
            for each in Reason
            if each in self.refused and each is not Reason.TAINT
        ]
        parts += [
            f"{each.devices} device(s) tainted {{{written(each.taint.taint)}}} by"
            f" {each.taint.origin}"
            for each in self.taints
        ]
        wanted = "all" if self.wanted is None else self.wanted
        return f"claim {self.claim}, request {self.request}: {wanted} wanted, {', '.join(parts)}"


def written(taint: DeviceTaint) -> str:
    """Write a taint as people do."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


@dataclass(frozen=True, slots=True)
class Allocated:
    """Devices for every claim."""

    allocations: tuple[AllocationResult, ...]
    """One for each claim, in the order in which they were given."""
    devices: tuple[tuple[EffectiveDevice, ...], ...]
    """The devices behind the results, to record what they were."""
    shares: tuple[tuple[int, int], ...] = ()
    """Claim and place of each result that is a share, and so still needs an id of its own."""
    preference: int = 0
    """How early in their lists the chosen alternatives stand; the scheduler scores nodes by it."""


@dataclass(frozen=True, slots=True)
class Unallocatable:
    """This node cannot serve the claims; another one may."""

    reason: str = CANNOT_ALLOCATE
    requests: tuple[RequestDiagnosis, ...] = ()
    incomplete: tuple[PoolId, ...] = ()
    """Pools that were left out because their driver is still writing them."""
    invalid: Mapping[PoolId, str] = field(default_factory=dict)
    """Pools that were left out because they contradict themselves, and how."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Something is wrong with a request, a class or a pool; the attempt ends, on all nodes."""

    error: str
    over_budget: bool = False
    """Evaluating its selectors or trying devices costs too much for one attempt."""
    cause: FailureCause | None = None


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A request names something that does not exist; no node needs to be looked at."""

    message: str


Verdict = Allocated | Unallocatable | Failed
