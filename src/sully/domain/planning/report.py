"""The format of a plan, which commands print as tables and as JSON (docs/reference/output.md).

`sully/planning/plan_builder.py` fills it from a simulation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Any, Literal

import msgspec

from sully.domain.eviction.loops import LoopCause
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
    """There is none: no controller manages the pod, or its controller creates none."""
    UNKNOWN = "Unknown"
    """Whether its owner recreates it, or what the scheduler does with it, is not known."""


class ObjectChange(msgspec.Struct, frozen=True):
    """What a change does to an object."""

    object: str
    """Its kind and key."""
    verb: Literal["created", "changed", "unchanged", "deleted"]

    @property
    def text(self) -> str:
        """Return it as kubectl prints it after the change."""
        return f"{self.object} {self.verb}"


class PlannedTaint(msgspec.Struct, frozen=True):
    """A taint, and the object that sets it."""

    taint: str
    source: str

    @property
    def text(self) -> str:
        """Return both as JSON has them."""
        return f"{self.taint} ({self.source})"


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
    """Where it is scheduled in the simulation; with several `candidates` that is a guess."""
    candidates: tuple[str, ...] = ()
    """Nodes that fit when it is scheduled, `node` first, at most 10; the scheduler selects one."""
    candidate_count: int = 0
    """How many nodes fit; 1: `node` is certain."""
    evicting_candidates: tuple[str, ...] = ()
    """Nodes that fit, and where the taints of the devices would evict it again."""
    devices: tuple[str, ...] = ()
    message: str = ""
    """Why it is not rescheduled; if it is unschedulable, as the scheduler reports it."""
    expected: str = ""
    """What its owner is expected to do, if no controller of Kubernetes decides that."""
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

    @property
    def delay(self) -> float:
        """Return how many seconds after the eviction the replacement is scheduled; 0 if never."""
        time = self.replacement.scheduled_time
        return (time - self.eviction_time).total_seconds() if time is not None else 0.0


class BlockedEviction(_Part, frozen=True, kw_only=True):
    """A pod that is not evicted: the rules are paused, or a budget prevents it."""

    namespace: str
    name: str
    owner: str
    message: str


class BrokenBudget(_Part, frozen=True, kw_only=True):
    """A PodDisruptionBudget that evictions do not honor."""

    namespace: str
    name: str
    pods: int
    """How many of its pods are evicted."""
    allowed: int
    """How many disruptions it allows before the change."""
    missing: int
    """How many healthy pods it then lacks, at most."""


class DeletedPod(_Part, frozen=True, kw_only=True):
    """A pod that is not evicted, but deleted by its owner because others are."""

    namespace: str
    name: str
    owner: str
    node: str
    deletion_time: datetime
    after_seconds: float
    message: str


class CreatedPod(_Part, frozen=True, kw_only=True):
    """A pod that its owner creates after the change, and that replaces no evicted pod."""

    namespace: str
    name: str
    owner: str
    node: str
    """Empty: it stays Pending."""
    evicted_again: bool


class ScheduledPod(_Part, frozen=True, kw_only=True):
    """A pending pod that is scheduled after the change."""

    namespace: str
    name: str
    owner: str
    node: str
    devices: tuple[str, ...]
    scheduled_time: datetime
    evicted_again: bool


class EvictionLoop(_Part, frozen=True, kw_only=True):
    """Pods of one owner that would be evicted again and again."""

    namespace: str
    owner: str
    """Kind and name of the owner; of a ReplicaSet, its Deployment."""
    pods: int
    cause: LoopCause
    message: str
    """Why replacements are evicted again."""
    remedies: tuple[str, ...]
    evictions_per_minute: int | None
    """At most; None: nothing limits them."""
    after_seconds: float
    """Seconds from the start of the plan until the first replacement is evicted."""
    claim: str
    """Kind and name of the ResourceClaim or ResourceClaimTemplate of the tainted devices."""
    devices: tuple[str, ...]
    """Some of the devices that replacements are evicted from."""
    taints: tuple[str, ...]
    """The taints that evict them, with their sources."""


class DeviceChange(_Part, frozen=True, kw_only=True):
    """A device that changes."""

    device: str
    node: str
    added_taints: tuple[PlannedTaint, ...] = ()
    removed_taints: tuple[PlannedTaint, ...] = ()
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


class UnschedulableOwner(_Part, frozen=True, kw_only=True):
    """An owner whose next pod would be unschedulable, although no pod is evicted."""

    namespace: str
    owner: str
    """Kind and name of the owner; of a ReplicaSet, its Deployment."""
    pods: int
    """How many of its pods have such devices."""
    next_pod: Literal["Replacement", "Additional"]
    """A pod that replaces one on a device that changes, or one more than there are."""
    message: str
    """Why it would be unschedulable, as the scheduler reports it."""


class UnmatchedRequest(_Part, frozen=True, kw_only=True):
    """A request that matches devices, and would match none."""

    kind: Literal["ResourceClaimTemplate", "ResourceClaim"]
    namespace: str
    name: str
    request: str
    device_classes: tuple[str, ...]


class LatentEffects(_Part, frozen=True, kw_only=True):
    """What a change does to pods that are created later."""

    owners: tuple[UnschedulableOwner, ...] = ()
    owners_not_evaluated: int = 0
    """How many more owners have pods on devices that change."""
    requests: tuple[UnmatchedRequest, ...] = ()
    total_requests: int = 0
    """How many requests would match no device; some may not be listed."""


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
    eviction_loops: tuple[EvictionLoop, ...] = ()
    changes: tuple[ObjectChange, ...]
    devices: tuple[DeviceChange, ...] = ()
    total_devices: int = 0
    claims: tuple[str, ...] = ()
    """Claims that are allocated a device that changes."""
    evictions: tuple[PlannedEviction, ...] = ()
    """In order of time."""
    blocked_evictions: tuple[BlockedEviction, ...] = ()
    broken_budgets: tuple[BrokenBudget, ...] = ()
    scheduled_pods: tuple[ScheduledPod, ...] = ()
    latent_effects: LatentEffects = LatentEffects()
    deleted_pods: tuple[DeletedPod, ...] = ()
    created_pods: tuple[CreatedPod, ...] = ()
    classes: tuple[ClassCounts, ...] = ()
    decision_changes: tuple[DecisionChange, ...] = ()
    placements: tuple[PlacementChange, ...] = ()
    no_effects: tuple[str, ...] = ()
    """What of the change has no effect on this server, why, and what to do."""
    notes: tuple[str, ...] = ()
    """What the plan does not consider."""

    @property
    def caused(self) -> tuple[PlannedEviction, ...]:
        """Return the evictions caused by the change."""
        return tuple(eviction for eviction in self.evictions if not eviction.without_change)

    @property
    def not_rescheduled(self) -> tuple[PlannedEviction, ...]:
        """Return the evictions caused by the change whose pods are not rescheduled for good."""
        known = (ReplacementOutcome.RESCHEDULED, ReplacementOutcome.UNKNOWN)
        return tuple(
            eviction for eviction in self.caused if eviction.replacement.outcome not in known
        )

    @property
    def unknown(self) -> tuple[PlannedEviction, ...]:
        """Return the evictions caused by the change of which it is not known what follows."""
        unknown = ReplacementOutcome.UNKNOWN
        return tuple(x for x in self.caused if x.replacement.outcome is unknown)

    @property
    def at_risk(self) -> tuple[PlannedEviction, ...]:
        """Return the evictions whose pods are rescheduled, but perhaps to be evicted again.

        The scheduler selects one of several nodes, and some of them have tainted devices.
        """
        rescheduled = ReplacementOutcome.RESCHEDULED
        return tuple(
            eviction
            for eviction in self.caused
            if eviction.replacement.outcome is rescheduled
            and eviction.replacement.evicting_candidates
        )

    @property
    def unsatisfied_placements(self) -> tuple[PlacementChange, ...]:
        """Return the placements that lack clusters."""
        return tuple(placement for placement in self.placements if placement.missing_clusters)

    @property
    def has_unscheduled(self) -> bool:
        """Report whether a pod may not be rescheduled, or a placement lacks clusters."""
        pods = self.not_rescheduled or self.unknown or self.at_risk
        return bool(pods or self.unsatisfied_placements)

    @property
    def last_eviction_time(self) -> datetime | None:
        """Return when the last pod is evicted because of the change."""
        return max((eviction.eviction_time for eviction in self.caused), default=None)


def document(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON has it, with the most important fields first."""
    body: dict[str, Any] = msgspec.to_builtins(plan)
    body["changes"] = [change.text for change in plan.changes]
    for change, device in zip(plan.devices, body["devices"], strict=True):
        device["addedTaints"] = [taint.text for taint in change.added_taints]
        device["removedTaints"] = [taint.text for taint in change.removed_taints]
    loops = {"evictionLoops": body.pop("evictionLoops")}
    counts = {
        "notRescheduled": len(plan.not_rescheduled),
        "unknown": len(plan.unknown),
        "mayBeEvictedAgain": len(plan.at_risk),
        "unsatisfiedPlacements": len(plan.unsatisfied_placements),
    }
    return {"kind": "Plan", **loops, **counts, **body}


class OwnerEvictions(msgspec.Struct, frozen=True):
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

    @property
    def candidates(self) -> tuple[str, ...]:
        """Return the nodes that pods may be rescheduled to, those of the simulation first."""
        replacements = (eviction.replacement for eviction in self.evictions)
        rescheduled = ReplacementOutcome.RESCHEDULED
        names = {x for pod in replacements if pod.outcome is rescheduled for x in pod.candidates}
        return (*self.nodes, *sorted(names.difference(self.nodes)))


def group_by_owner(evictions: Iterable[PlannedEviction]) -> tuple[OwnerEvictions, ...]:
    """Group evictions by namespace and owner, in order of those."""
    groups: dict[tuple[str, str], list[PlannedEviction]] = {}
    for eviction in evictions:
        groups.setdefault((eviction.namespace, eviction.owner), []).append(eviction)
    return tuple(OwnerEvictions(*key, tuple(groups[key])) for key in sorted(groups))
