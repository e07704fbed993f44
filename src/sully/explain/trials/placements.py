"""What would make a placement select more clusters, or one cluster: found by trying.

A trial decides once more with the placement changed. A cluster that a taint excludes is the same
to it whether the taint is tolerated or removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from sully.api.cluster.types import (
    NO_SELECT_IF_NEW,
    PREFER_NO_SELECT,
    ClusterCelSelector,
    ClusterPredicate,
    ClusterSelector,
    Placement,
    Taint,
    Toleration,
)
from sully.domain.clusters.health import is_health
from sully.domain.placement.predicates import Part
from sully.domain.placement.results.verdicts import ClusterVerdict, PlacementExplanation
from sully.domain.tolerations import taint_text
from sully.explain.causes import Note, note
from sully.explain.trials.search import fewest

_PARTS: tuple[Part, ...] = ("labels", "claims", "expression")
"""Of a predicate, what is easiest to change first."""


class PlacementTrials(msgspec.Struct, frozen=True):
    """A placement, how to decide on it once more, and the sets that it may use."""

    placement: Placement
    decide: Callable[[Placement], PlacementExplanation]
    sets: Sequence[str]

    def for_placement(self, verdicts: Sequence[ClusterVerdict]) -> Iterator[Note]:
        """Yield what would give it as many clusters as it wants, or else more than it has."""
        plain, want = self.placement, self.placement.spec.number_of_clusters or 1
        parts = {mismatch.part for verdict in verdicts for mismatch in verdict.mismatches}
        taints = _excluding_taints(verdicts)
        attempts = [(plain, taints[:0]), (plain, taints)]
        if parts:
            wide = _changed(plain, widen=True)
            attempts += [(wide, taints[:0]), (wide, _excluding_taints(self.decide(wide).all()))]
        counts = [self._selected(*trial) for trial in attempts]
        goal = min(want, max(counts))
        first = next(index for index, count in enumerate(counts) if count >= goal)
        if first:
            placement, some = attempts[first]
            needed = fewest(some, lambda subset: self._selected(placement, subset) >= goal)
            steps = list(_tolerate(needed))
            if placement is not plain:
                steps.append(_match(parts))
            clusters = self._selected(placement, needed)
            yield note("SelectedAfter", steps=steps, cluster="", clusters=clusters)
        if max(counts) < want:
            yield note("LowerNumber", clusters=max(counts))

    def _selected(self, placement: Placement, taints: Sequence[Taint]) -> int:
        return len(self.decide(_changed(placement, tolerate=taints)).trace.selected)

    def for_cluster(self, verdict: ClusterVerdict) -> Iterator[Note]:
        """Yield what would make it select one cluster."""
        if verdict.stage == "Sets" and self.sets:
            yield note("AddToSet", cluster=verdict.cluster, sets=self.sets)
        elif verdict.stage in ("Predicate", "TaintToleration", "Rank"):
            yield from self._select(verdict)

    def _select(self, verdict: ClusterVerdict) -> Iterator[Note]:
        name, parts = verdict.cluster, {mismatch.part for mismatch in verdict.mismatches}
        placement = _changed(self.placement, match=name if parts else "")
        steps = list[Note]()
        if taints := tuple(_untolerated(self.decide(placement).of(name))):
            placement = _changed(placement, tolerate=taints)
            steps += _tolerate(taints)
        if parts:
            steps.append(_match(parts, name))
        then = self.decide(placement).of(name)
        if then.stage == "Rank" and then.rank is not None:
            steps.append(note("RaiseNumber", clusters=then.rank))
            then = self.decide(_changed(placement, number=then.rank)).of(name)
        if then.stage == "Selected":
            yield note("SelectedAfter", steps=steps, cluster=name, clusters=0)


def _changed(
    placement: Placement,
    *,
    tolerate: Sequence[Taint] = (),
    widen: bool = False,
    match: str = "",
    number: int | None = None,
) -> Placement:
    """Return a placement that tolerates more, has no predicates, or one that a cluster matches."""
    spec = placement.spec
    more = tuple(
        Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
        for taint in tolerate
    )
    predicates = () if widen else spec.predicates
    if match and predicates:
        cel = ClusterCelSelector(cel_expressions=(f"managedCluster.metadata.name == {match!r}",))
        selector = ClusterSelector(cel_selector=cel)
        predicates = (*predicates, ClusterPredicate(required_cluster_selector=selector))
    spec = replace(
        spec,
        tolerations=(*spec.tolerations, *more),
        predicates=predicates,
        number_of_clusters=spec.number_of_clusters if number is None else number,
    )
    return replace(placement, spec=spec)


def _excluding_taints(verdicts: Sequence[ClusterVerdict]) -> list[Taint]:
    """Return the taints that exclude clusters, the one on the most clusters first."""
    taints: dict[str, Taint] = {}
    count: Counter[str] = Counter()
    for verdict in verdicts:
        for taint in _untolerated(verdict) if verdict.stage == "TaintToleration" else ():
            taints.setdefault(taint_text(taint), taint)
            count[taint_text(taint)] += 1
    return [taints[text] for text in sorted(taints, key=lambda text: (-count[text], text))]


def _untolerated(verdict: ClusterVerdict) -> Iterator[Taint]:
    """Yield the taints for which a placement does not select a cluster, or no longer."""
    harmless = (PREFER_NO_SELECT, NO_SELECT_IF_NEW) if verdict.decided else (PREFER_NO_SELECT,)
    for finding in verdict.taints:
        if not finding.tolerated and finding.taint.effect not in harmless:
            yield finding.taint


def _tolerate(taints: Sequence[Taint]) -> Iterator[Note]:
    if taints:
        texts, health = list(map(taint_text, taints)), all(map(is_health, taints))
        yield note("TolerateCluster", taints=texts, health=health)


def _match(parts: set[Part], cluster: str = "") -> Note:
    return note(f"Match/{min(parts, key=_PARTS.index)}", cluster=cluster)
