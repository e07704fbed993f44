"""What is to be written for a placement: its outcome against the decisions that exist.

Pure comparison; `binder.py` carries it out. An object that says the right thing is not in a plan,
so a placement that nothing happened to costs no write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sully.api.cluster.types import PlacementDecision
from sully.domain.placement.groups import DecisionSlice
from sully.domain.placement.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Write:
    """One PlacementDecision that is to exist, and what of it must change."""

    part: DecisionSlice
    labels: Mapping[str, str]
    old: PlacementDecision | None
    """None: it is to be created."""
    clusters: bool
    """Whether its list of clusters must be written."""
    relabel: bool = False


@dataclass(slots=True)
class Plan:
    """All that is to be done about the decisions of a placement."""

    writes: list[Write] = field(default_factory=list)
    removals: list[PlacementDecision] = field(default_factory=list)

    @property
    def changes_clusters(self) -> bool:
        """Report whether a list of clusters changes, which is what people are told of."""
        return any(write.clusters for write in self.writes)


def make_plan(placement: str, outcome: Outcome, existing: Mapping[str, PlacementDecision]) -> Plan:
    """Compare what should be with the decisions there are, by name.

    `existing` has those that carry the placement's label and those that only have a wanted name.
    """
    plan = Plan()
    wanted = {part.name for part in outcome.slices}
    for part in outcome.slices:
        write = _write(part, part.labels(placement), existing.get(part.name))
        if write is not None:
            plan.writes.append(write)
    plan.removals = [each for name, each in sorted(existing.items()) if name not in wanted]
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
    """Report whether somebody wrote more than names into a list, which is undone."""
    return any(each.reason or each.score for each in decision.status.decisions)


def named(decision: PlacementDecision) -> tuple[str, ...]:
    """Return the clusters that a decision names, in its order."""
    return tuple(each.cluster_name for each in decision.status.decisions)


def by_name(decisions: Iterable[PlacementDecision]) -> dict[str, PlacementDecision]:
    """Return decisions of one namespace by name."""
    return {each.metadata.name: each for each in decisions}
