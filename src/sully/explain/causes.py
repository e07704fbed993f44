"""What is found out about an object: the cause of its state, and the typed facts of its kind.

A cause is a row of the table in templates.py, by kind and by its reason. A note
is a further sentence, or a step of a remedy, with the facts that it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from sully.explain.explanation import Table
from sully.explain.text import object_text


class Note(msgspec.Struct, frozen=True):
    """A sentence or clause; `remedy` is for what helps against it."""

    name: str
    values: Mapping[str, Any]
    remedy: bool = False


def note(name: str, /, **values: Any) -> Note:
    return Note(name, values)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An object that taints devices, and what is known of its author."""

    origin: str
    """`Kind/name`, as accounts and records write it."""
    by: str = ""
    """The user who created it, where that is recorded."""
    program: str = ""
    """The program that wrote it, where the user is not recorded."""
    driver: str = ""
    why: str = ""
    since: datetime | None = None
    until: datetime | None = None
    paused: str | None = None
    deleted: datetime | None = None

    @property
    def label(self) -> str:
        return object_text(self.origin)


class TaintFact(msgspec.Struct, frozen=True, kw_only=True):
    """A taint of a device, with its source."""

    taint: str
    source: Source
    added: datetime | None = None
    why: str = ""
    data: str = ""


class ClusterTaint(msgspec.Struct, frozen=True, kw_only=True):
    """A taint of a cluster, who added it, and for which condition."""

    taint: str
    added: datetime | None = None
    by: str = ""
    program: str = ""
    """The program that wrote it, where who did is not recorded."""
    condition: str = ""
    status: str = ""
    """Of that condition; empty if it was never reported."""
    why: str = ""
    until: datetime | None = None


class PodFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that has, or had, a node."""

    node: str = ""
    phase: str = ""
    devices: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    taints: tuple[Note, ...] = ()
    tolerated: bool = False
    """The sources would evict it without its tolerations."""
    why: str = ""
    rule: str = ""
    removals: tuple[Note, ...] = ()
    """What would have to happen so that rules do not evict it."""
    until: datetime | None = None
    due: datetime | None = None
    rate: str = ""
    budgets: tuple[str, ...] = ()
    allowed: bool = False
    """A PodDisruptionBudget allows its eviction."""
    ends: datetime | None = None
    """When its grace period ends."""
    overdue: datetime | None = None
    message: str = ""
    owner: str = ""
    at: datetime | None = None
    count: int = 0
    """How many pods of its name were evicted."""

    @property
    def several(self) -> bool:
        return self.count > 1 or len(self.budgets) > 1


class PendingFacts(msgspec.Struct, frozen=True, kw_only=True):
    scheduler: str = ""
    gates: tuple[str, ...] = ()
    field: str = ""
    message: str = ""
    """The message of the scheduler of Kubernetes."""
    namespace: str = ""
    template: str = ""
    claim: str = ""
    pods: int = 0
    device: str = ""
    driver: str = ""
    conditions: tuple[str, ...] = ()
    until: datetime | None = None
    classes: tuple[str, ...] = ()
    failure: Note | None = None
    """What helps against a failure of the scheduler."""
    node: str = ""
    named: tuple[str, ...] = ()
    """The only nodes that its affinity allows, by name."""
    devices: tuple[str, ...] = ()
    nodes: int = 0
    users: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    taints: tuple[TaintFact, ...] = ()
    same: bool = False
    """All nodes do not fit for one reason."""
    reasons: tuple[Note, ...] = ()
    shortage: Note | None = None
    notes: tuple[Note, ...] = ()

    @property
    def single(self) -> bool:
        return self.nodes == 1


class ClaimFacts(msgspec.Struct, frozen=True, kw_only=True):
    devices: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    finalizers: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    owner: str = ""
    at: datetime | None = None
    """When pods are evicted; None is immediately."""
    sources: tuple[Source, ...] = ()
    taints: tuple[Note, ...] = ()
    gone: tuple[str, ...] = ()
    unpublished: tuple[str, ...] = ()


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    node: str = ""
    all_nodes: bool = False
    some_nodes: bool = False
    claims: tuple[str, ...] = ()
    pod: str = ""
    at: datetime | None = None
    text: str = ""
    users: tuple[Note, ...] = ()
    stays: bool = False
    """Whether no taint of it evicts pods."""
    sources: tuple[Source, ...] = ()
    taints: tuple[Note, ...] = ()


class RuleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A rule or a patch."""

    name: str = ""
    by: str = ""
    program: str = ""
    created: datetime | None = None
    why: str = ""
    taint: str = ""
    selector: str = ""
    past: bool = False
    finalizers: tuple[str, ...] = ()
    mismatch: Note | None = None
    unrecorded: bool = False
    """The attributes of the devices are no longer known."""
    devices: int = 0
    allocated: int = 0
    preview: str = ""
    effect: str = ""
    paused: str = ""
    pausable: bool = False
    stop: Note | None = None
    """What stops its evictions for good."""
    pods: int = 0
    due: int = 0
    """How many of the pods are due; 0 if all are."""
    rate: str | None = None
    budgets: bool = False
    terminating: int = 0
    first: str = ""
    at: datetime | None = None
    ends: datetime | None = None
    overdue: datetime | None = None
    evicted: int = 0
    complete: bool = True
    deleted_by: str = ""
    values: int = 0
    winners: tuple[Note, ...] = ()
    loops: tuple[Note, ...] = ()
    inactive: str = ""
    """Why it has no effect."""
    enable: str = ""
    """What to do about that."""


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime | None = None
    message: str = ""
    sets: tuple[str, ...] = ()
    placements: tuple[str, ...] = ()
    verdicts: tuple[Note, ...] = ()
    taint: ClusterTaint | None = None


class PlacementFacts(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str = ""
    clusters: int = 0
    """Those that its decisions name."""
    annotation: str = ""
    message: str = ""
    plugin: str = ""
    cluster_sets: tuple[str, ...] = ()
    bound: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    number: int | None = None
    selected: int = 0
    considered: int = 0
    at: datetime | None = None
    why: Note | None = None
    notes: tuple[Note, ...] = ()


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A node, and how many of its devices are in which state."""

    node: str = ""
    taint: str = ""
    text: str = ""
    devices: int = 0
    used: int = 0
    free: int = 0
    tainted: int = 0
    """With a taint that prevents scheduling."""
    cordoned: bool = False
    """Whether `sully cordon` has tainted devices."""
    removable: bool = False
    """Whether there are other taints."""
    sources: tuple[Source, ...] = ()


class WorkloadFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A controller of pods, such as a Deployment or a Job."""

    pods: int = 0
    pending: int = 0
    evicting: int = 0
    phase: str = ""
    message: str = ""
    loops: tuple[Note, ...] = ()


class DevicePolicyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A DeviceTaintPolicy, as its controller reports on it."""

    name: str
    mode: str
    taint: str
    devices: int = 0
    faulty: int = 0
    unavailable: int = 0
    waiting: int = 0
    """Devices that wait for approval."""
    held: int = 0
    """Devices that a limit holds back."""
    proving: int = 0
    """Recovered devices that wait for their proof."""
    flapping: int = 0
    """Recovered devices that failed too often."""
    proof: str = ""
    """What the proof of one of them waits for, or why it failed."""
    manual: bool = False
    """Whether people prove devices."""
    at: datetime | None = None
    """When it changes a taint next."""


class MaintenanceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A DeviceMaintenance, as its controller reports on it."""

    name: str
    devices: int = 0
    units: int = 0
    """Devices or nodes that are worked on together."""
    done: int = 0
    closed: int = 0
    failed: int = 0
    waiting: int = 0
    """Units that wait for approval."""
    starts: datetime | None = None
    ends: datetime | None = None
    at: datetime | None = None
    """When it does something next."""


class LimitedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An object that the caller is not allowed to see."""

    object: str = ""
    resources: str
    """What one would have to be allowed to read."""
    namespace: str = ""
    notes: tuple[Note, ...] = ()
    clusters: tuple[str, ...] = ()
    at: datetime | None = None
    message: str = ""


Facts = (
    PodFacts
    | PendingFacts
    | ClaimFacts
    | DeviceFacts
    | RuleFacts
    | ClusterFacts
    | PlacementFacts
    | NodeFacts
    | WorkloadFacts
    | DevicePolicyFacts
    | MaintenanceFacts
    | LimitedFacts
)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known about one question."""

    kind: str
    name: str
    namespace: str = ""
    cause: str
    """The row of the table for this kind."""
    reason: str = ""
    """The reason, where it is not that of the row: one that is passed on."""
    state: str = ""
    """Where it is not that of the row."""
    facts: Facts
    since: datetime | None = None
    also: tuple[Note, ...] = ()
    because: tuple[str, ...] = ()
    remedies: tuple[Note, ...] = ()
    details: tuple[Table, ...] = ()
    nested: Finding | None = None
    """The finding that this one is due to."""

    @property
    def code(self) -> str:
        return self.reason or self.cause
