"""What is known of a placement, and the frame of what is told about it.

placements.py tells what keeps it from working, placementreasons.py what keeps clusters out,
placementhelp.py what would help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sully.api.cluster.types import ManagedCluster, Placement, Taint
from sully.domain.explaining.clustermarks import ClusterMarks
from sully.domain.explaining.story import Explanation, Table, tables
from sully.domain.explaining.wording import listed, since
from sully.domain.placement.conditions import SATISFIED
from sully.domain.placement.outcome import Outcome
from sully.domain.placement.verdicts import Breakdown, ClusterVerdict, sentence
from sully.domain.placement.verdicts import Explanation as Pass
from sully.machinery.meta import Condition, find_condition


@dataclass(frozen=True, slots=True)
class Altered:
    """A placement with something changed, to try."""

    tolerate: tuple[Taint, ...] = ()
    widen: bool = False
    """It has no predicates."""
    match: str = ""
    """One cluster passes its predicates in any case."""
    number: int | None = None
    """How many clusters it wants; as many as it does, if nothing is said."""


Retry = Callable[[Altered], Pass]
"""Decides once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementFacts:
    """What is known of a placement."""

    placement: Placement
    now: datetime
    marks: ClusterMarks
    broken: str = ""
    """A set that it may use and that nobody can read."""
    bound: tuple[str, ...] = ()
    """Sets that are bound to its namespace."""
    eligible: tuple[str, ...] = ()
    """Of those, the ones that it may use."""
    outcome: Outcome | None = None
    breakdown: Breakdown | None = None
    verdicts: Sequence[ClusterVerdict] = ()
    decided: tuple[str, ...] = ()
    """Clusters that its decisions name now."""
    clusters: Mapping[str, ManagedCluster] = field(default_factory=dict)
    about: str = ""
    """The one cluster that somebody asks about."""
    retry: Retry | None = None
    """None where nothing can be tried."""


def story(facts: PlacementFacts, state: str, cause: str, *summary: str, **more: Any) -> Explanation:
    """Put together what is told of a placement."""
    metadata = facts.placement.metadata
    return Explanation(
        kind="Placement",
        namespace=metadata.namespace,
        name=metadata.name,
        state=state,
        cause=cause,
        summary=(*summary, *_asked_about(facts), *_stale(facts)),
        details=tables(_verdicts(facts), _scores(facts)),
        **more,
    )


def name_of(facts: PlacementFacts) -> str:
    """Name the placement in a sentence."""
    metadata = facts.placement.metadata
    return f"Placement {metadata.namespace}/{metadata.name}"


def when(facts: PlacementFacts) -> str:
    """Say since when it has what it has."""
    told = condition_of(facts, SATISFIED)
    return since(told.last_transition_time, facts.now) if told is not None else ""


def condition_of(facts: PlacementFacts, kind: str) -> Condition | None:
    """Return one of its conditions, or None."""
    return find_condition(facts.placement.status.conditions, kind)


def _asked_about(facts: PlacementFacts) -> Iterator[str]:
    for each in facts.verdicts:
        if each.cluster == facts.about:
            yield f"Cluster {each.cluster}: {sentence(each)}."


def _stale(facts: PlacementFacts) -> Iterator[str]:
    if facts.outcome is not None and set(facts.decided) != set(facts.outcome.clusters):
        has = listed(facts.decided) or "none"
        yield f"Its decisions do not say so yet; they name {has}."


def _verdicts(facts: PlacementFacts) -> Table:
    rows = tuple((each.cluster, each.stage, sentence(each)) for each in facts.verdicts)
    return Table("Clusters", ("cluster", "stage", "why"), rows)


def _scores(facts: PlacementFacts) -> Table:
    rows = tuple(
        (each.cluster, one.prioritizer, str(one.weight), str(one.score or 0))
        for each in facts.verdicts
        for one in each.scores
    )
    return Table("Scores", ("cluster", "prioritizer", "weight", "score"), rows)
