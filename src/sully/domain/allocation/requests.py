"""What a pod requests, read once and then tried on many nodes.

A request is a list of alternatives: one for `exactly`, several for `firstAvailable`. What decides
whether a device can serve an alternative at all is its `DeviceRequirements`; equal ones, also
those of other pods, share one list of candidates per pool (`candidates.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

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
from sully.domain.allocation.failures import (
    EmptyConstraint,
    EmptySelector,
    Unresolved,
    UnsupportedMode,
)
from sully.domain.allocation.toleration_expiry import AsOf, Expiries
from sully.domain.allocation.verdicts import Failed
from sully.domain.devices.rules import Classes
from sully.domain.devices.taints import BLOCKING_EFFECTS
from sully.machinery.cel import CostBudget
from sully.machinery.memo import Memo

ALL = "All"
EXACT_COUNT = "ExactCount"
_MOST_SPECS: Final = 1024


class DeviceRequirements(msgspec.Struct, frozen=True, eq=False):
    """The part of a request that decides whether a device can serve it.

    Equal requirements are one object (`_requirements`), so they are cheap keys of caches.
    """

    class_name: str
    class_selectors: tuple[DeviceSelector, ...]
    selectors: tuple[DeviceSelector, ...]
    tolerations: tuple[DeviceToleration, ...]
    """Without `tolerationSeconds`; `expiries` has what they mean now."""
    capacity: Mapping[str, str]
    derived: tuple[DeviceDerivedAttribute, ...]
    """Derived attributes, for constraints."""
    blocking: frozenset[str]
    """Effects of taints that prevent the request from getting a device."""
    honors_preference: bool
    """Taints that only advise against a device decide which is tried first."""
    ignored_origins: frozenset[str] = frozenset()
    """The kinds of objects whose taints do not prevent it."""
    expiries: Expiries = ()
    """For which taints its tolerations expired; empty if none of them expires."""
    lasting: DeviceRequirements | None = None
    """The same with tolerations that never expire; None if it is this object."""


class Alternative(msgspec.Struct, frozen=True, eq=False):
    """One way to fulfil a request."""

    request: str
    name: str
    """The subrequest's own name, or the request's; error texts use it."""
    full_name: str
    """`request` or `request/subrequest`, as allocations name it."""
    requirements: DeviceRequirements
    tolerations: tuple[DeviceToleration, ...]
    """As in the claim; an allocation repeats them."""
    device_class: DeviceClass
    count: int | None
    """How many devices; None stands for all that match."""
    admin_access: bool
    is_choice: bool
    """It is in a prioritized list (`firstAvailable`)."""


class Request(msgspec.Struct, frozen=True, eq=False):
    """A request of a claim."""

    name: str
    alternatives: tuple[Alternative, ...]
    is_choice: bool = False
    """Its alternatives are a prioritized list (`firstAvailable`)."""


class ClaimDemand(msgspec.Struct, frozen=True, eq=False):
    """What one claim requests."""

    claim: ResourceClaim
    key: str
    requests: tuple[Request, ...]
    constraints: tuple[DeviceConstraint, ...]


class Demand(msgspec.Struct, frozen=True, eq=False):
    """What a pod requests that has not been allocated yet, in the order of the pod's claims."""

    claims: tuple[ClaimDemand, ...]
    budget: CostBudget = msgspec.field(default_factory=CostBudget)
    """What evaluating selectors may cost on all nodes together; cached results are free."""


class HonoredTaints(msgspec.Struct, frozen=True):
    """Which taints decide about devices; each follows a feature gate."""

    blocking: frozenset[str] = BLOCKING_EFFECTS
    """The effects that prevent a request from getting a device."""
    preference: bool = False
    """Devices with an untolerated PreferNoSchedule taint come last."""
    ignored_origins: frozenset[str] = frozenset()
    """The kinds of objects whose taints do not count."""


HONORED_TAINTS = HonoredTaints()


def prepare(
    claims: Iterable[ResourceClaim],
    classes: Classes,
    honored: HonoredTaints = HONORED_TAINTS,
    as_of: AsOf | None = None,
    budget: CostBudget | None = None,
) -> Demand | Unresolved | Failed:
    """Read claims that are to be allocated together.

    Without `as_of`, tolerations never expire. Without a budget the attempt gets the default.
    """
    demands = []
    for claim in claims:
        demand = _read_claim(claim, classes, honored, as_of)
        if not isinstance(demand, ClaimDemand):
            return demand
        demands.append(demand)
    return Demand(tuple(demands), CostBudget() if budget is None else budget)


class ClaimReader:
    """Reads claims; those with the same spec, as new ones from one template have, only once."""

    def __init__(self, classes: Classes, honored: HonoredTaints) -> None:
        self._classes = classes
        self._honored = honored
        self._state: Hashable = None
        self._known: Memo[int, ClaimDemand] = Memo(_MOST_SPECS)
        """By the identity of the spec, which stays in memory with its claim."""

    def invalidate_if_changed(self, state: Hashable) -> None:
        """Forget everything if classes or times of taints changed, or a toleration has expired."""
        if state != self._state:
            self._state = state
            self._known.clear()

    def prepare(
        self, claims: Iterable[ResourceClaim], as_of: AsOf | None, budget: CostBudget
    ) -> Demand | Unresolved | Failed:
        """As the function of this name."""
        demands = []
        for claim in claims:
            known = self._known.get(id(claim.spec))
            if known is not None:
                demand = ClaimDemand(claim, claim_key(claim), known.requests, known.constraints)
            else:
                read = _read_claim(claim, self._classes, self._honored, as_of)
                if not isinstance(read, ClaimDemand):
                    return read
                demand = self._known.keep(id(claim.spec), read)
            demands.append(demand)
        return Demand(tuple(demands), budget)


def claim_key(claim: ResourceClaim) -> str:
    """Return the name of a claim in error messages."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def _read_claim(
    claim: ResourceClaim, classes: Classes, honored: HonoredTaints, as_of: AsOf | None
) -> ClaimDemand | Unresolved | Failed:
    key, devices = claim_key(claim), claim.spec.devices
    requests = []
    for request in devices.requests or ():
        alternatives = []
        for exact in alternatives_of(request):
            alternative = _read(key, request, exact, classes, (honored, as_of))
            if not isinstance(alternative, Alternative):
                return alternative
            alternatives.append(alternative)
        is_choice = any(alternative.is_choice for alternative in alternatives)
        requests.append(Request(request.name, tuple(alternatives), is_choice))
    for index, constraint in enumerate(devices.constraints):
        if constraint.match_attribute is None and constraint.distinct_attribute is None:
            return Failed(EmptyConstraint(key, index))
    return ClaimDemand(claim, key, tuple(requests), devices.constraints)


def alternatives_of(request: DeviceRequest) -> tuple[ExactDeviceRequest | DeviceSubRequest, ...]:
    """Return what a request accepts, in order of preference."""
    return (request.exactly,) if request.exactly is not None else request.first_available


def _read(
    key: str,
    request: DeviceRequest,
    exact: ExactDeviceRequest | DeviceSubRequest,
    classes: Classes,
    taints: tuple[HonoredTaints, AsOf | None],
) -> Alternative | Unresolved | Failed:
    choice = isinstance(exact, DeviceSubRequest)
    name = exact.name if isinstance(exact, DeviceSubRequest) else request.name
    full_name = f"{request.name}/{name}" if choice else name
    device_class = classes(exact.device_class_name)
    if device_class is None:
        return Unresolved(full_name, exact.device_class_name)
    if problem := _unsupported(key, name, exact):
        return Failed(problem)
    return Alternative(
        request=request.name,
        name=name,
        full_name=full_name,
        requirements=_requirements_of(exact, device_class, *taints),
        tolerations=exact.tolerations,
        device_class=device_class,
        # Objects stored before defaulting may lack the count.
        count=None if exact.allocation_mode == ALL else exact.count or 1,
        admin_access=isinstance(exact, ExactDeviceRequest) and bool(exact.admin_access),
        is_choice=choice,
    )


def _unsupported(
    claim: str, request: str, exact: ExactDeviceRequest | DeviceSubRequest
) -> UnsupportedMode | EmptySelector | None:
    if exact.allocation_mode not in (ALL, EXACT_COUNT, ""):
        return UnsupportedMode(claim, request, exact.allocation_mode)
    for index, selector in enumerate(exact.selectors):
        if selector.cel is None:
            return EmptySelector(claim, request, index)
    return None


@lru_cache(maxsize=4096)
def without_seconds(tolerations: tuple[DeviceToleration, ...]) -> tuple[DeviceToleration, ...]:
    """Return tolerations without `tolerationSeconds`, cached because most pods have the same."""
    if all(toleration.toleration_seconds is None for toleration in tolerations):
        return tolerations
    return tuple(replace(toleration, toleration_seconds=None) for toleration in tolerations)


class _Key(NamedTuple):
    """What makes two requirements equal."""

    class_name: str
    class_selectors: tuple[DeviceSelector, ...]
    selectors: tuple[DeviceSelector, ...]
    tolerations: tuple[DeviceToleration, ...]
    capacity: tuple[tuple[str, str], ...]
    derived: tuple[DeviceDerivedAttribute, ...]
    honored: HonoredTaints
    expiries: Expiries


def _requirements_of(
    exact: ExactDeviceRequest | DeviceSubRequest,
    device_class: DeviceClass,
    honored: HonoredTaints,
    as_of: AsOf | None,
) -> DeviceRequirements:
    amounts = exact.capacity.requests if exact.capacity is not None else {}
    return _requirements(
        _Key(
            device_class.metadata.name,
            device_class.spec.selectors,
            exact.selectors,
            without_seconds(exact.tolerations),
            tuple(sorted(amounts.items())),
            exact.derived_attributes,
            honored,
            as_of.expiries(exact.tolerations) if as_of is not None and exact.tolerations else (),
        )
    )


@lru_cache(maxsize=4096)
def _requirements(key: _Key) -> DeviceRequirements:
    return DeviceRequirements(
        class_name=key.class_name,
        class_selectors=key.class_selectors,
        selectors=key.selectors,
        tolerations=key.tolerations,
        capacity=dict(key.capacity),
        derived=key.derived,
        blocking=key.honored.blocking,
        honors_preference=key.honored.preference,
        ignored_origins=key.honored.ignored_origins,
        expiries=key.expiries,
        lasting=_requirements(key._replace(expiries=())) if key.expiries else None,
    )
