"""What a pod asks for, read once and then tried on many nodes.

A request is a list of alternatives: one for `exactly`, several for `firstAvailable`. What decides
whether a device can serve an alternative at all is its `Shape`; requests of the same shape, also
those of other pods, share one list of candidates per pool (`candidates.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from sully.api.resource.types import (
    DeviceClass,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from sully.domain.allocation.toleration_expiry import AsOf, Expiries
from sully.domain.allocation.verdicts import Failed, Unresolved
from sully.domain.devices.rules import Classes
from sully.domain.devices.taints import BLOCKING_EFFECTS
from sully.machinery.cel import CostBudget

ALL = "All"
EXACT_COUNT = "ExactCount"


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Everything about a request that one device can be judged by.

    There is one object for equal shapes (`_shape`), so that it is cheap to look things up by it.
    """

    class_name: str
    class_selectors: tuple[DeviceSelector, ...]
    selectors: tuple[DeviceSelector, ...]
    tolerations: tuple[DeviceToleration, ...]
    """For good: what became of those that end stands in `ends`."""
    capacity: Mapping[str, str]
    derived: tuple[DeviceDerivedAttribute, ...]
    """Attributes to be worked out, for constraints."""
    blocking: frozenset[str]
    """Effects of taints that keep it off a device."""
    honors_preference: bool
    """Taints that only advise against a device decide which is tried first."""
    ends: Expiries = ()
    """For which taints its tolerations are over; empty if none of them has an end."""
    lasting: Shape | None = None
    """The same with tolerations that have no end; None where that is this one."""


class Alternative(msgspec.Struct, frozen=True, eq=False):
    """One way to fulfil a request."""

    request: str
    name: str
    """The subrequest's own name, or the request's; error texts use it."""
    full_name: str
    """`request` or `request/subrequest`, as allocations name it."""
    shape: Shape
    tolerations: tuple[DeviceToleration, ...]
    """As they were written; an allocation repeats them."""
    device_class: DeviceClass
    count: int | None
    """How many devices; None stands for all that match."""
    admin_access: bool
    is_choice: bool
    """It stands in a prioritised list."""


class Request(msgspec.Struct, frozen=True, eq=False):
    """A request of a claim."""

    name: str
    alternatives: tuple[Alternative, ...]


class ClaimDemand(msgspec.Struct, frozen=True, eq=False):
    """What one claim asks for."""

    claim: ResourceClaim
    key: str
    requests: tuple[Request, ...]
    constraints: tuple[DeviceConstraint, ...]


class Demand(msgspec.Struct, frozen=True, eq=False):
    """What a pod asks for that has not been allocated yet, in the order of the pod's claims."""

    claims: tuple[ClaimDemand, ...]
    budget: CostBudget = msgspec.field(default_factory=CostBudget)
    """What it may cost to evaluate the selectors on devices they are new to, on all nodes."""


@dataclass(frozen=True, slots=True)
class HonoredTaints:
    """Which taints decide about devices; each follows a feature gate."""

    blocking: frozenset[str] = BLOCKING_EFFECTS
    """The effects that prevent a request from getting a device."""
    preference: bool = False
    """Devices with an untolerated PreferNoSchedule taint come last."""


HONORED_TAINTS = HonoredTaints()


def prepare(
    claims: Iterable[ResourceClaim],
    classes: Classes,
    honored: HonoredTaints = HONORED_TAINTS,
    as_of: AsOf | None = None,
    budget: CostBudget | None = None,
) -> Demand | Unresolved | Failed:
    """Read claims that are to be allocated together, as of now or of no time at all.

    Without a time, tolerations that end are taken for ones that do not. Without a budget the
    attempt gets the usual one.
    """
    found = []
    for claim in claims:
        read = _read_claim(claim, classes, honored, as_of)
        if not isinstance(read, ClaimDemand):
            return read
        found.append(read)
    return Demand(tuple(found), CostBudget() if budget is None else budget)


def claim_key(claim: ResourceClaim) -> str:
    """Name a claim as error texts do."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def _read_claim(
    claim: ResourceClaim, classes: Classes, honored: HonoredTaints, as_of: AsOf | None
) -> ClaimDemand | Unresolved | Failed:
    key, devices = claim_key(claim), claim.spec.devices
    requests = []
    for request in devices.requests or ():
        alternatives = []
        for given in _alternatives(request):
            read = _read(key, request, given, classes, (honored, as_of))
            if not isinstance(read, Alternative):
                return read
            alternatives.append(read)
        requests.append(Request(request.name, tuple(alternatives)))
    for index, each in enumerate(devices.constraints):
        if each.match_attribute is None and each.distinct_attribute is None:
            text = f"constraint #{index}: empty constraint (unsupported constraint type?)"
            return Failed(f"claim {key}, {text}")
    return ClaimDemand(claim, key, tuple(requests), devices.constraints)


def _alternatives(request: DeviceRequest) -> tuple[ExactDeviceRequest | DeviceSubRequest, ...]:
    return (request.exactly,) if request.exactly is not None else request.first_available


def _read(
    key: str,
    request: DeviceRequest,
    given: ExactDeviceRequest | DeviceSubRequest,
    classes: Classes,
    how: tuple[HonoredTaints, AsOf | None],
) -> Alternative | Unresolved | Failed:
    choice = isinstance(given, DeviceSubRequest)
    name = given.name if isinstance(given, DeviceSubRequest) else request.name
    full_name = f"{request.name}/{name}" if choice else name
    device_class = classes(given.device_class_name)
    if device_class is None:
        missing = f"device class {given.device_class_name} does not exist"
        return Unresolved(f"request {full_name}: {missing}")
    if problem := _unsupported(given):
        return Failed(f"claim {key}, request {name}: {problem}")
    return Alternative(
        request=request.name,
        name=name,
        full_name=full_name,
        shape=_shape_of(given, device_class, *how),
        tolerations=given.tolerations,
        device_class=device_class,
        # Objects stored before defaulting may lack the count.
        count=None if given.allocation_mode == ALL else given.count or 1,
        admin_access=isinstance(given, ExactDeviceRequest) and bool(given.admin_access),
        is_choice=choice,
    )


def _unsupported(given: ExactDeviceRequest | DeviceSubRequest) -> str:
    if given.allocation_mode not in (ALL, EXACT_COUNT, ""):
        return f"unsupported count mode {given.allocation_mode}"
    for index, selector in enumerate(given.selectors):
        if selector.cel is None:
            return f"selector #{index}: CEL expression empty (unsupported selector type?)"
    return ""


@lru_cache(maxsize=4096)
def for_good(tolerations: tuple[DeviceToleration, ...]) -> tuple[DeviceToleration, ...]:
    """Return tolerations without their ends; asked for every pod, and pods are alike in this."""
    if all(each.toleration_seconds is None for each in tolerations):
        return tolerations
    return tuple(replace(each, toleration_seconds=None) for each in tolerations)


class _Key(NamedTuple):
    """What makes two shapes equal."""

    class_name: str
    class_selectors: tuple[DeviceSelector, ...]
    selectors: tuple[DeviceSelector, ...]
    tolerations: tuple[DeviceToleration, ...]
    capacity: tuple[tuple[str, str], ...]
    derived: tuple[DeviceDerivedAttribute, ...]
    honored: HonoredTaints
    ends: Expiries


def _shape_of(
    given: ExactDeviceRequest | DeviceSubRequest,
    device_class: DeviceClass,
    honored: HonoredTaints,
    as_of: AsOf | None,
) -> Shape:
    amounts = given.capacity.requests if given.capacity is not None else {}
    return _shape(
        _Key(
            device_class.metadata.name,
            device_class.spec.selectors,
            given.selectors,
            for_good(given.tolerations),
            tuple(sorted(amounts.items())),
            given.derived_attributes,
            honored,
            as_of.ends(given.tolerations) if as_of is not None and given.tolerations else (),
        )
    )


@lru_cache(maxsize=4096)
def _shape(key: _Key) -> Shape:
    return Shape(
        class_name=key.class_name,
        class_selectors=key.class_selectors,
        selectors=key.selectors,
        tolerations=key.tolerations,
        capacity=dict(key.capacity),
        derived=key.derived,
        blocking=key.honored.blocking,
        honors_preference=key.honored.preference,
        ends=key.ends,
        lasting=_shape(key._replace(ends=())) if key.ends else None,
    )
