"""The format of a plan, which commands print as tables and as JSON (docs/reference/output.md).

`sully/planning/plan_builder.py` fills it from a simulation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Literal

import msgspec

from sully.domain.scheduling.diagnosis import Diagnosis


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts of a plan: JSON has every field, also empty ones."""


class ReplacementOutcome(Enum):
    """What happens to the replacement of an evicted pod."""

    RESCHEDULED = "Rescheduled"
    PENDING = "Pending"
    """It is unschedulable."""
    EVICTED_AGAIN = "EvictedAgain"
    """It is rescheduled, and evicted again."""
    NOT_REPLACED = "NotReplaced"
    """There is none: no controller manages the pod."""


class EvictionReason(_Part, frozen=True, kw_only=True):
    """A taint that a pod does not tolerate, its source, and the device."""

    device: str
    taint: str
    origin: str


class Replacement(_Part, frozen=True, kw_only=True):
    """The pod that replaces an evicted one."""

    outcome: ReplacementOutcome
    scheduled_time: datetime | None = None
    node: str = ""
    devices: tuple[str, ...] = ()
    message: str = ""
    """Why it is not rescheduled; if it is unschedulable, as the scheduler reports it."""
    diagnosis: Diagnosis | None = None
    """Why devices were not available."""


class PlannedEviction(_Part, frozen=True, kw_only=True):
    """A pod that is evicted."""

    namespace: str
    name: str
    owner: str
    """Kind and name of its controller, or of itself."""
    node: str
    eviction_time: datetime
    after_seconds: float
    """Seconds from the start of the plan."""
    devices: tuple[str, ...]
    reasons: tuple[EvictionReason, ...]
    without_change: bool
    """It would be evicted as early without the change."""
    replacement: Replacement


class BlockedEviction(_Part, frozen=True, kw_only=True):
    """A pod that is not evicted: the rules are paused, or a budget prevents it."""

    namespace: str
    name: str
    owner: str
    message: str


class ScheduledPod(_Part, frozen=True, kw_only=True):
    """A pending pod that is scheduled after the change."""

    namespace: str
    name: str
    owner: str
    node: str
    devices: tuple[str, ...]
    scheduled_time: datetime
    evicted_again: bool


class DeviceChange(_Part, frozen=True, kw_only=True):
    """A device that changes."""

    device: str
    node: str
    added_taints: tuple[str, ...] = ()
    removed_taints: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    """Attributes and capacities that change, or `published` and `unpublished`."""
    claims: tuple[str, ...] = ()
    """Claims that are allocated it."""


class ClassCounts(_Part, frozen=True, kw_only=True):
    """The devices of a class, and how many a new pod could be allocated."""

    name: str
    devices_before: int
    devices_after: int
    tainted_before: int
    tainted_after: int
    used_before: int
    used_after: int
    free_before: int
    free_after: int


class DecisionChange(_Part, frozen=True, kw_only=True):
    """Clusters that a placement loses and gets at one time."""

    time: datetime
    after_seconds: float
    placement: str
    removed_clusters: tuple[str, ...]
    added_clusters: tuple[str, ...]


class PlacementChange(_Part, frozen=True, kw_only=True):
    """The clusters of a placement before and after the change."""

    placement: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    missing_clusters: int = 0
    message: str = ""


class Plan(_Part, frozen=True, kw_only=True):
    """The effects of changes."""

    start_time: datetime
    subject: Literal["devices", "clusters"] = "devices"
    changes: tuple[str, ...]
    devices: tuple[DeviceChange, ...] = ()
    total_devices: int = 0
    claims: tuple[str, ...] = ()
    """Claims that are allocated a device that changes."""
    evictions: tuple[PlannedEviction, ...] = ()
    """In order of time."""
    blocked_evictions: tuple[BlockedEviction, ...] = ()
    scheduled_pods: tuple[ScheduledPod, ...] = ()
    classes: tuple[ClassCounts, ...] = ()
    decision_changes: tuple[DecisionChange, ...] = ()
    placements: tuple[PlacementChange, ...] = ()
    notes: tuple[str, ...] = ()
    """What the plan does not consider."""

    @property
    def caused(self) -> tuple[PlannedEviction, ...]:
        """Return the evictions caused by the change."""
        return tuple(eviction for eviction in self.evictions if not eviction.without_change)

    @property
    def not_rescheduled(self) -> tuple[PlannedEviction, ...]:
        """Return the evictions caused by the change whose pods are not rescheduled for good."""
        rescheduled = ReplacementOutcome.RESCHEDULED
        return tuple(
            eviction for eviction in self.caused if eviction.replacement.outcome is not rescheduled
        )

    @property
    def unsatisfied_placements(self) -> tuple[PlacementChange, ...]:
        """Return the placements that lack clusters."""
        return tuple(placement for placement in self.placements if placement.missing_clusters)

    @property
    def has_unscheduled(self) -> bool:
        """Report whether a pod is not rescheduled, or a placement lacks clusters."""
        return bool(self.not_rescheduled or self.unsatisfied_placements)

    @property
    def last_eviction_time(self) -> datetime | None:
        """Return when the last pod is evicted because of the change."""
        return max((eviction.eviction_time for eviction in self.caused), default=None)


def document(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON has it, with the most important fields first."""
    body: dict[str, Any] = msgspec.to_builtins(plan)
    counts = {
        "notRescheduled": len(plan.not_rescheduled),
        "unsatisfiedPlacements": len(plan.unsatisfied_placements),
    }
    return {"kind": "Plan", **counts, **body}


@dataclass(frozen=True, slots=True)
class OwnerEvictions:
    """The evictions of the pods of one owner."""

    namespace: str
    owner: str
    evictions: tuple[PlannedEviction, ...]

    @property
    def first(self) -> float:
        """Return after how many seconds the first pod is evicted."""
        return min(eviction.after_seconds for eviction in self.evictions)

    @property
    def last(self) -> float:
        """Return after how many seconds the last pod is evicted."""
        return max(eviction.after_seconds for eviction in self.evictions)

    @property
    def outcomes(self) -> dict[ReplacementOutcome, int]:
        """Count the outcomes that occur."""
        counts = Counter(eviction.replacement.outcome for eviction in self.evictions)
        return {outcome: counts[outcome] for outcome in ReplacementOutcome if counts[outcome]}

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the nodes that pods are rescheduled to, by name."""
        replacements = (eviction.replacement for eviction in self.evictions)
        rescheduled = ReplacementOutcome.RESCHEDULED
        return tuple(sorted({pod.node for pod in replacements if pod.outcome is rescheduled}))


def group_by_owner(evictions: Iterable[PlannedEviction]) -> tuple[OwnerEvictions, ...]:
    """Group evictions by namespace and owner, in order of those."""
    groups: dict[tuple[str, str], list[PlannedEviction]] = {}
    for eviction in evictions:
        groups.setdefault((eviction.namespace, eviction.owner), []).append(eviction)
    return tuple(OwnerEvictions(*key, tuple(groups[key])) for key in sorted(groups))
