"""What an attempt to allocate fails on: values that carry what a text needs, and no text.

A failure ends the attempt for all nodes. `domain/scheduling/messages.py` renders it as Kubernetes
words it, and `explain` selects its advice by the type.
"""

from __future__ import annotations

import msgspec

from sully.domain.devices.pools import DeviceId, PoolId
from sully.domain.devices.selectors import Phase


class Unresolved(msgspec.Struct, frozen=True):
    """A request refers to a device class that does not exist; no node is evaluated."""

    request: str
    device_class: str


class UnsupportedMode(msgspec.Struct, frozen=True):
    """A request has an allocation mode that is not known here."""

    claim: str
    request: str
    mode: str


class EmptySelector(msgspec.Struct, frozen=True):
    """A selector of a request has no expression: its type is not known here."""

    claim: str
    request: str
    index: int


class EmptyConstraint(msgspec.Struct, frozen=True):
    """A constraint of a claim names no attribute: its type is not known here."""

    claim: str
    index: int


class TooManyDevices(msgspec.Struct, frozen=True):
    """A claim requests more devices than one allocation can hold."""

    claim: str
    devices: int
    limit: int


class PoolNotUsable(msgspec.Struct, frozen=True):
    """A request asks for all devices, and a pool may have others than it publishes."""

    claim: str
    request: str
    pool: PoolId
    is_incomplete: bool
    """Its driver is still publishing it; otherwise it is invalid."""


class ConstraintUnmet(msgspec.Struct, frozen=True):
    """A request asks for all devices, and one of them does not meet a constraint."""

    claim: str
    request: str
    device: DeviceId


class SelectorFailure(msgspec.Struct, frozen=True):
    """A selector that cannot be evaluated for a device."""

    device_class: str | None
    """The class that has it; None for one of the claim."""
    index: int
    device: DeviceId
    phase: Phase
    error: str
    reads_missing_key: bool


class DerivedFailure(msgspec.Struct, frozen=True):
    """A derived attribute that cannot be evaluated for a device."""

    attribute: str
    device: DeviceId
    phase: Phase
    error: str
    reads_missing_key: bool


class ExpressionFailed(msgspec.Struct, frozen=True):
    """The search reached a device for which an expression cannot be evaluated."""

    claim: str
    failure: SelectorFailure | DerivedFailure


class TimedOut(msgspec.Struct, frozen=True):
    """Evaluating selectors or trying devices costs too much for one attempt."""

    node: str
    """Where the attempt ended."""
    selector_budget: int | None = None
    """The budget that selectors exceed, in cost units; None if that is not reported."""


AllocationFailure = (
    Unresolved
    | UnsupportedMode
    | EmptySelector
    | EmptyConstraint
    | TooManyDevices
    | PoolNotUsable
    | ConstraintUnmet
    | ExpressionFailed
    | TimedOut
)


class AllocationError(Exception):
    """Ends the attempt on all nodes."""

    def __init__(self, failure: AllocationFailure) -> None:
        super().__init__(failure)
        self.failure = failure
