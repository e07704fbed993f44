"""The result of a pass over a placement: decisions to write, status, when to requeue.

Both ways to get there, from nothing (../schedule.py) and kept up to date
(../incremental/fleet.py), end in `conclude`, so that they cannot differ in how a selection is
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from sully.api.cluster.types import DecisionGroupStatus, Placement
from sully.domain.placement.options import PlacementOptions
from sully.domain.placement.results.conditions import (
    MISCONFIGURED,
    SATISFIED,
    PlacementCondition,
    Tally,
    misconfigured,
    satisfied,
)
from sully.domain.placement.results.groups import (
    DecisionSlice,
    Group,
    Lookup,
    group_statuses,
    make_groups,
    slices,
)
from sully.domain.placement.results.status import SUCCESS, Status

DISABLED = "cluster.open-cluster-management.io/experimental-scheduling-disable"
"""With the annotation at `true` a placement and its decisions are not changed."""
_LONGEST_NAME = 63
"""Of a placement that can have decisions: they carry its name in a label."""


class Reach(msgspec.Struct, frozen=True):
    """What a placement may use: bindings that lead to a set, eligible sets, clusters in them."""

    bound: int
    eligible: tuple[str, ...]
    available: int


class Selection(msgspec.Struct, frozen=True):
    """What was chosen, in order of name, and how that went."""

    clusters: Sequence[str] = ()
    unscheduled: int = 0
    status: Status = SUCCESS
    requeue_at: datetime | None = None
    held: tuple[str, ...] = ()
    """Clusters that would be removed if there were budget."""


class Outcome(msgspec.Struct, frozen=True):
    """What to write for a placement, and when to requeue it."""

    selected: int
    unscheduled: int
    status: Status
    slices: tuple[DecisionSlice, ...]
    groups: tuple[DecisionGroupStatus, ...]
    conditions: tuple[PlacementCondition, ...]
    requeue_at: datetime | None = None
    held: tuple[str, ...] = ()
    back_off: bool = False
    """Evaluating its expressions exceeds the budget; another pass gets further, after a while."""

    @property
    def clusters(self) -> tuple[str, ...]:
        """Return all decided clusters, in order of name."""
        return tuple(sorted(name for part in self.slices for name in part.clusters))


def is_disabled(placement: Placement) -> bool:
    """Report whether a placement is not scheduled: it is deleted, or an annotation disables it."""
    metadata = placement.metadata
    return metadata.deletion_timestamp is not None or metadata.annotations.get(DISABLED) == "true"


def is_unnameable(placement: Placement) -> bool:
    """Report whether no decision can carry the name of a placement."""
    return len(placement.metadata.name) > _LONGEST_NAME


def unnameable() -> Outcome:
    """Return the outcome for a placement whose name fits into no label."""
    text = f":the name must have at most {_LONGEST_NAME} characters, for the label of decisions"
    findings = (
        PlacementCondition(MISCONFIGURED, "True", "Misconfigured", text),
        PlacementCondition(SATISFIED, "False", "NotAllDecisionsScheduled", text[1:]),
    )
    return Outcome(0, 0, Status("Misconfigured", "", text[1:]), (), (), findings)


def keep(
    placement: Placement,
    decided: Iterable[str],
    is_available: Callable[[str], bool],
    status: Status,
) -> Selection:
    """Select what was selected before, because the right selection is unknown.

    Clusters that are deleted, terminating, or no longer in a set of the placement are not kept.
    """
    names = sorted(filter(is_available, decided))
    want = placement.spec.number_of_clusters
    missing = max(want - len(names), 0) if want is not None and names else 0
    return Selection(names, missing, status)


def conclude(
    placement: Placement,
    selection: Selection,
    reach: Reach,
    find: Lookup,
    options: PlacementOptions,
) -> Outcome:
    """Turn a selection into what is written."""
    groups, grouping = _grouped(placement, selection, find, options)
    parts = slices(placement.metadata.name, groups)
    tally = Tally(
        placement.spec.cluster_sets,
        reach.bound,
        reach.eligible,
        reach.available,
        len(selection.clusters),
        selection.unscheduled,
    )
    status = selection.status if grouping is SUCCESS else grouping
    return Outcome(
        selected=len(selection.clusters),
        unscheduled=selection.unscheduled,
        status=status,
        slices=parts,
        groups=group_statuses(groups, parts),
        conditions=(misconfigured(status), satisfied(tally, selection.status)),
        requeue_at=selection.requeue_at,
        held=selection.held,
    )


def _grouped(
    placement: Placement, selection: Selection, find: Lookup, options: PlacementOptions
) -> tuple[Sequence[Group], Status]:
    strategy = placement.spec.decision_strategy.group_strategy
    quoted = options.compat.accepts_quoted_group_size
    groups, status = make_groups(strategy, selection.clusters, find, quoted=quoted)
    if status.stops and options.compat.keeps_clusters_on_error:
        return (Group("", selection.clusters),), status
    return groups, status
