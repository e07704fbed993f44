"""What is to be written for a placement: its outcome against the decisions that exist.

A pure comparison; binder.py executes it. An object that is as it should be is not in a plan, so an
unchanged placement costs no write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sully.api.cluster.types import PlacementDecision
from sully.domain.placement.results.groups import DecisionSlice
from sully.domain.placement.results.outcome import Outcome


class Write(msgspec.Struct, frozen=True):
    """One PlacementDecision to create or change."""

    part: DecisionSlice
    labels: Mapping[str, str]
    old: PlacementDecision | None
    """None: create it."""
    clusters: bool
    """Whether its list of clusters must be written."""
    relabel: bool = False


class DecisionWrites(msgspec.Struct):
    """All writes to the decisions of a placement."""

    writes: list[Write] = msgspec.field(default_factory=list)
    deletions: list[PlacementDecision] = msgspec.field(default_factory=list)

    @property
    def changes_clusters(self) -> bool:
        """Report whether a list of clusters changes, which is what events are about."""
        return any(write.clusters for write in self.writes)


def make_plan(
    placement: str, outcome: Outcome, existing: Mapping[str, PlacementDecision]
) -> DecisionWrites:
    """Compare the outcome with the existing decisions, by name.

    `existing` has those with the placement's label and those that only have one of its names.
    """
    plan = DecisionWrites()
    names = {part.name for part in outcome.slices}
    for part in outcome.slices:
        write = _write(part, part.labels(placement), existing.get(part.name))
        if write is not None:
            plan.writes.append(write)
    plan.deletions = [decision for name, decision in sorted(existing.items()) if name not in names]
    return plan


def _write(
    part: DecisionSlice, labels: Mapping[str, str], old: PlacementDecision | None
) -> Write | None:
    if old is None:
        return Write(part, labels, None, clusters=bool(part.clusters))
    clusters = named(old) != part.clusters or _is_annotated(old)
    # All labels are the placement's, as in OCM: one more is one too many.
    relabel = labels != old.metadata.labels
    if clusters or relabel:
        return Write(part, labels, old, clusters=clusters, relabel=relabel)
    return None


def _is_annotated(decision: PlacementDecision) -> bool:
    """Report whether a list has more than names, which is reverted."""
    return any(cluster.reason or cluster.score for cluster in decision.status.decisions)


def named(decision: PlacementDecision) -> tuple[str, ...]:
    """Return the clusters that a decision names, in its order."""
    return tuple(cluster.cluster_name for cluster in decision.status.decisions)


def by_name(decisions: Iterable[PlacementDecision]) -> dict[str, PlacementDecision]:
    """Return decisions of one namespace by name."""
    return {decision.metadata.name: decision for decision in decisions}
