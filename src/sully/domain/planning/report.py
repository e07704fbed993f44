"""The form of a plan: what commands print, as tables for people and as JSON for programs.

Names and places of fields are a promise to scripts. `sully.planning` fills a plan from a rehearsal;
grouping.py sums it up by owner.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Literal

import msgspec

from sully.domain.scheduling.diagnosis import Diagnosis


class Told(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what is told: every field is always there."""


class Fate(Enum):
    """What becomes of the work of a pod that leaves."""

    LANDS = "Lands"
    """Another pod for it gets a node."""
    PENDING = "Pending"
    """Another pod for it finds no place."""
    RETURNS = "Returns"
    """Another pod for it gets a node, and has to leave again."""
    LOST = "NotReplaced"
    """Nobody makes another."""


HOMELESS = frozenset((Fate.PENDING, Fate.RETURNS, Fate.LOST))
"""What leaves work without a place."""


class TaintTold(Told, frozen=True, kw_only=True):
    """A taint, who set it, and on which device."""

    device: str
    taint: str
    origin: str


class Landing(Told, frozen=True, kw_only=True):
    """Where the work of a pod goes."""

    fate: Fate
    at: datetime | None = None
    """When the new pod gets its node."""
    node: str = ""
    devices: tuple[str, ...] = ()
    why: str = ""
    """Why nowhere, in the words of the scheduler."""
    account: Diagnosis | None = None
    """What spoke against which devices."""


class Departure(Told, frozen=True, kw_only=True):
    """A pod that leaves."""

    namespace: str
    name: str
    owner: str
    """Kind and name of who manages it, or of itself."""
    node: str
    at: datetime
    after: float
    """Seconds from the beginning of the plan."""
    devices: tuple[str, ...]
    because: tuple[TaintTold, ...]
    anyway: bool
    """It would leave as early without the change."""
    landing: Landing


class Stay(Told, frozen=True, kw_only=True):
    """A pod that must leave, and does not: everything that wants it to is paused, or a budget."""

    namespace: str
    name: str
    owner: str
    why: str


class Arrival(Told, frozen=True, kw_only=True):
    """A pod that waited before, and gets a node after the change."""

    namespace: str
    name: str
    owner: str
    node: str
    devices: tuple[str, ...]
    at: datetime
    returns: bool
    """It has to leave there again."""


class DeviceTold(Told, frozen=True, kw_only=True):
    """A device that is different after the change."""

    device: str
    node: str
    gains: tuple[str, ...] = ()
    """Taints it gets."""
    loses: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    """Attributes and capacities that are different, and `published` if it appears or vanishes."""
    claims: tuple[str, ...] = ()
    """Who holds it."""


class ClassTold(Told, frozen=True, kw_only=True):
    """How many devices of a class there are, and how many a new pod could get."""

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
    """What one placement loses and gets at one time."""

    at: datetime
    after: float
    placement: str
    leaves: tuple[str, ...]
    joins: tuple[str, ...]


class PlacementTold(Told, frozen=True, kw_only=True):
    """How a placement ends up."""

    placement: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    unmet: int = 0
    """How many clusters it wants and does not get."""
    message: str = ""


class Plan(Told, frozen=True, kw_only=True):
    """What would happen."""

    at: datetime
    about: Literal["devices", "clusters"] = "devices"
    changes: tuple[str, ...]
    devices: tuple[DeviceTold, ...] = ()
    devices_known: int = 0
    """All devices there are."""
    claims: tuple[str, ...] = ()
    """Claims that hold a device which is different."""
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
        """Return the departures that are the change's doing."""
        return tuple(each for each in self.departures if not each.anyway)

    @property
    def homeless(self) -> int:
        """Count the work that would be left without a place because of the change."""
        pods = sum(each.landing.fate in HOMELESS for each in self.caused)
        return pods + sum(1 for each in self.placements if each.unmet)

    @property
    def ends(self) -> datetime | None:
        """Return when the last pod leaves that leaves because of the change."""
        return max((each.at for each in self.caused), default=None)


def document(plan: Plan) -> dict[str, Any]:
    """Return a plan as a plain value, with what programs ask first in front."""
    told: dict[str, Any] = msgspec.to_builtins(plan)
    return {"kind": "Plan", "withoutPlace": plan.homeless, **told}
