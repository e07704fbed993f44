"""The format of a plan, which commands print as tables and as JSON.

The names of fields are promised to scripts. `sully.planning` fills a plan from a rehearsal;
grouping.py groups it by owner.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Literal

import msgspec

from sully.domain.scheduling.diagnosis import Diagnosis


class Told(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts of a plan: no field is left out."""


class Fate(Enum):
    """What happens to the replacement of an evicted pod."""

    LANDS = "Lands"
    """It is rescheduled."""
    PENDING = "Pending"
    """It is unschedulable."""
    RETURNS = "Returns"
    """It is rescheduled, and evicted again."""
    LOST = "NotReplaced"
    """There is none: no controller manages the pod."""


HOMELESS = frozenset((Fate.PENDING, Fate.RETURNS, Fate.LOST))
"""Fates that count as not rescheduled."""


class TaintTold(Told, frozen=True, kw_only=True):
    """A taint, its source, and the device."""

    device: str
    taint: str
    origin: str


class Landing(Told, frozen=True, kw_only=True):
    """Where the replacement of a pod is scheduled."""

    fate: Fate
    at: datetime | None = None
    """When it is scheduled."""
    node: str = ""
    devices: tuple[str, ...] = ()
    why: str = ""
    """Why it is unschedulable, as the scheduler reports it."""
    account: Diagnosis | None = None
    """Why devices were not available."""


class Departure(Told, frozen=True, kw_only=True):
    """A pod that is evicted."""

    namespace: str
    name: str
    owner: str
    """Kind and name of its controller, or of itself."""
    node: str
    at: datetime
    after: float
    """Seconds from the start of the plan."""
    devices: tuple[str, ...]
    because: tuple[TaintTold, ...]
    anyway: bool
    """It would be evicted as early without the change."""
    landing: Landing


class Stay(Told, frozen=True, kw_only=True):
    """A pod that is not evicted: the rules are paused, or a budget prevents it."""

    namespace: str
    name: str
    owner: str
    why: str


class Arrival(Told, frozen=True, kw_only=True):
    """A pending pod that is scheduled after the change."""

    namespace: str
    name: str
    owner: str
    node: str
    devices: tuple[str, ...]
    at: datetime
    returns: bool
    """It is evicted again."""


class DeviceTold(Told, frozen=True, kw_only=True):
    """A device that changes."""

    device: str
    node: str
    gains: tuple[str, ...] = ()
    """Taints it gets."""
    loses: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    """Attributes and capacities that change, or `appears` and `vanishes`."""
    claims: tuple[str, ...] = ()
    """Claims that are allocated it."""


class ClassTold(Told, frozen=True, kw_only=True):
    """The devices of a class, and how many a new pod could be allocated."""

    name: str
    devices: int
    devices_before: int
    tainted_before: int
    tainted_after: int
    used_before: int
    used_after: int
    free_before: int
    free_after: int


class ClusterMove(Told, frozen=True, kw_only=True):
    """Clusters that a placement loses and gets at one time."""

    at: datetime
    after: float
    placement: str
    leaves: tuple[str, ...]
    joins: tuple[str, ...]


class PlacementTold(Told, frozen=True, kw_only=True):
    """A placement that changes."""

    placement: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    unmet: int = 0
    """How many clusters are missing."""
    message: str = ""


class Plan(Told, frozen=True, kw_only=True):
    """What would happen."""

    at: datetime
    about: Literal["devices", "clusters"] = "devices"
    changes: tuple[str, ...]
    devices: tuple[DeviceTold, ...] = ()
    devices_known: int = 0
    """The number of all devices."""
    claims: tuple[str, ...] = ()
    """Claims that are allocated a device that changes."""
    departures: tuple[Departure, ...] = ()
    """In order of time."""
    stays: tuple[Stay, ...] = ()
    arrivals: tuple[Arrival, ...] = ()
    classes: tuple[ClassTold, ...] = ()
    moves: tuple[ClusterMove, ...] = ()
    placements: tuple[PlacementTold, ...] = ()
    notes: tuple[str, ...] = ()
    """What the plan could not know."""

    @property
    def caused(self) -> tuple[Departure, ...]:
        """Return the evictions caused by the change."""
        return tuple(each for each in self.departures if not each.anyway)

    @property
    def homeless(self) -> int:
        """Count pods that are not rescheduled, and placements that lack clusters."""
        pods = sum(each.landing.fate in HOMELESS for each in self.caused)
        return pods + sum(1 for each in self.placements if each.unmet)

    @property
    def ends(self) -> datetime | None:
        """Return when the last pod is evicted because of the change."""
        return max((each.at for each in self.caused), default=None)


def document(plan: Plan) -> dict[str, Any]:
    """Return a plan as a plain value, with the most important fields first."""
    told: dict[str, Any] = msgspec.to_builtins(plan)
    return {"kind": "Plan", "withoutPlace": plan.homeless, **told}
