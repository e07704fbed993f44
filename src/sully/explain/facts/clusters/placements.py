"""Placements: why they select these clusters and not others.

The verdicts are those of `domain/placement/results/verdicts.py`. What prevents the whole placement
from working comes first, then what excludes most clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from sully.api.cluster.types import PREFER_NO_SELECT, Placement
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.placement.incremental.membership import BrokenSetError
from sully.domain.placement.predicates import Mismatch
from sully.domain.placement.results.conditions import REMOVALS_DELAYED, SATISFIED
from sully.domain.placement.results.outcome import DISABLED, Outcome
from sully.domain.placement.results.verdicts import ClusterVerdict, sentence
from sully.domain.tolerations import taint_text
from sully.explain.causes import ClusterTaint, Finding, Note, PlacementFacts, note
from sully.explain.explanation import Table, tables
from sully.explain.reader import Reader
from sully.explain.trials.placements import PlacementTrials
from sully.machinery.meta import Condition, find_condition
from sully.views.fleet_kinds import PLACEMENTS

_TAINTED: Final = "TaintToleration"
_SHOWN_MISMATCHES: Final = 2
_REASONS: Final = {
    "ClustersTaint": "ClustersTainted",
    "ClustersUnmatched": "PredicatesDoNotMatch",
    "NoMoreClusters": "NotEnoughClusters",
}
"""The reason, by what is stated."""


def find_placement(reader: Reader, key: Key, cluster: str = "") -> Finding | None:
    """Find out about a placement, also what it makes of one cluster; None if there is none."""
    placement = reader.snapshot.get(PLACEMENTS, key)
    return _Placement(reader, placement, cluster).find() if placement is not None else None


def trials_of(reader: Reader, placement: Placement) -> PlacementTrials:
    namespace, fleet = placement.metadata.namespace, reader.fleet
    sets = fleet.fleet.registry.eligible(namespace, placement.spec.cluster_sets)
    return PlacementTrials(placement, fleet.explain, sets)


class _Placement:
    def __init__(self, reader: Reader, placement: Placement, cluster: str) -> None:
        self.reader = reader
        self.placement = placement
        self.cluster = cluster
        key, registry = key_of(placement), reader.fleet.fleet.registry
        self.decided = tuple(sorted(reader.fleet.fleet.counts.own(key)))
        self.bound: tuple[str, ...] = ()
        self.eligible: tuple[str, ...] = ()
        self.error = ""
        self.outcome: Outcome | None = None
        self.considered = 0
        self.verdicts: list[ClusterVerdict] = []
        try:
            self.bound = tuple(sorted(registry.bound(key.namespace)))
            self.eligible = registry.eligible(key.namespace, placement.spec.cluster_sets)
            decision = reader.fleet.explain(placement)
            self.outcome = reader.fleet.decide(key)
        except BrokenSetError as error:
            self.error = str(error)
            return
        self.considered = decision.breakdown.considered
        self.verdicts = decision.all()
        if cluster and cluster not in {verdict.cluster for verdict in self.verdicts}:
            self.verdicts.append(decision.of(cluster))

    def find(self) -> Finding:
        metadata = self.placement.metadata
        condition = self._condition(SATISFIED)
        since = metadata.deletion_timestamp
        if since is None and condition is not None:
            since = condition.last_transition_time
        details = tables(self._verdict_table(), self._score_table())
        return replace(self._cause(), since=since, also=tuple(self._also()), details=details)

    def _finding(self, cause: str, facts: PlacementFacts, **more: Any) -> Finding:
        namespace, name = key_of(self.placement)
        return Finding(
            kind="Placement", namespace=namespace, name=name, cause=cause, facts=facts, **more
        )

    def _condition(self, type_: str) -> Condition | None:
        return find_condition(self.placement.status.conditions, type_)

    def _also(self) -> Iterator[Note]:
        for verdict in self.verdicts:
            if verdict.cluster == self.cluster:
                of = f"Cluster {verdict.cluster}"
                yield note("Verdict", of=of, text=sentence(verdict))
        if self.outcome is not None and set(self.decided) != set(self.outcome.clusters):
            yield note("DecisionsDiffer", clusters=self.decided)

    def _cause(self) -> Finding:
        metadata, spec, outcome = self.placement.metadata, self.placement.spec, self.outcome
        status = outcome.status if outcome is not None else None
        facts = PlacementFacts(
            namespace=metadata.namespace,
            clusters=len(self.decided),
            annotation=DISABLED,
            message=self.error or (status.message if status is not None else ""),
            plugin=status.plugin if status is not None else "",
            cluster_sets=tuple(spec.cluster_sets),
            bound=self.bound,
            sets=self.eligible,
            number=spec.number_of_clusters,
            selected=outcome.selected if outcome is not None else 0,
            considered=self.considered,
        )
        sets = tuple(f"ManagedClusterSet/{name}" for name in self.eligible)
        if cause := self._undecided():
            empty = cause == "AllManagedClusterSetsEmpty"
            return self._finding(cause, facts, because=sets if empty else ())
        return self._decided(facts)

    def _undecided(self) -> str:
        """Return what prevents a decision; empty if nothing does."""
        metadata, number = self.placement.metadata, self.placement.spec.number_of_clusters
        outcome = self.outcome
        checks = {
            "Deleted": metadata.deletion_timestamp is not None,
            "SchedulingDisabled": metadata.annotations.get(DISABLED) == "true",
            "ClusterSetInvalid": bool(self.error),
            "NoManagedClusterSetBindings": not self.bound,
            "NoIntersection": not self.eligible,
            "AllManagedClusterSetsEmpty": not self.considered,
            "NotDecided": outcome is None,
            "Misconfigured": outcome is not None and outcome.status.code == "Misconfigured",
            "NoClustersRequested": number is not None and number <= 0,
        }
        return next((cause for cause, holds in checks.items() if holds), "")

    def _decided(self, facts: PlacementFacts) -> Finding:
        notes, outcome = list(self._excluded()), self.outcome
        delayed = self._condition(REMOVALS_DELAYED)
        if outcome is not None and outcome.status.code == "Warning":
            notes.append(note("StatusWarning", message=outcome.status.message))
        facts, origins = replace(facts, notes=tuple(notes)), tuple(self._origins())
        if delayed is not None and delayed.status == "True":
            at, message = delayed.last_transition_time, delayed.message
            facts = replace(facts, at=at, message=message)
            return self._finding("HeldByBudget", facts, because=origins)
        remedies = tuple(self._for_cluster())
        if facts.selected and outcome is not None and not outcome.unscheduled:
            facts = replace(facts, notes=(*self._toleration_ends(), *notes))
            return self._finding("AllDecisionsScheduled", facts, remedies=remedies)
        trials = trials_of(self.reader, self.placement)
        why = self._worst()
        return self._finding(
            "Unsatisfied",
            replace(facts, why=why),
            reason=_REASONS[why.name],
            state="" if facts.selected else "Empty",
            because=origins,
            remedies=remedies or tuple(trials.for_placement(self.verdicts)),
        )

    def _for_cluster(self) -> Iterator[Note]:
        for verdict in self.verdicts:
            if verdict.cluster == self.cluster:
                yield from trials_of(self.reader, self.placement).for_cluster(verdict)

    # -- clusters that are not selected -----------------------------------------------------------

    def _worst(self) -> Note:
        """Return what excludes clusters: one that only a taint excludes is closest."""
        texts = Counter(
            taint_text(verdict.blocked_by.taint)
            for verdict in self.verdicts
            if verdict.stage == _TAINTED and verdict.blocked_by is not None
        )
        if texts:
            text, count = texts.most_common(1)[0]
            added = self._first_with(text)
            by, program = (added.by, added.program) if added is not None else ("", "")
            return note("ClustersTaint", taint=text, by=by, program=program, clusters=count)
        unmatched = sum(verdict.stage == "Predicate" for verdict in self.verdicts)
        if unmatched:
            return note("ClustersUnmatched", clusters=unmatched)
        return note("NoMoreClusters")

    def _first_with(self, text: str) -> ClusterTaint | None:
        for verdict in self.verdicts:
            cluster, blocked = self.reader.clusters.get(verdict.cluster), verdict.blocked_by
            if cluster is not None and blocked is not None and taint_text(blocked.taint) == text:
                return self.reader.cluster_taints.of(cluster, blocked.taint)
        return None

    def _excluded(self) -> Iterator[Note]:
        """Yield the clusters that are not selected, by reason."""
        by_taint: dict[str, list[ClusterVerdict]] = {}
        by_predicate: dict[tuple[int, tuple[Mismatch, ...]], list[ClusterVerdict]] = {}
        by_rank: dict[bool, list[str]] = {}
        for verdict in self.verdicts:
            if verdict.stage == _TAINTED and verdict.blocked_by is not None:
                by_taint.setdefault(taint_text(verdict.blocked_by.taint), []).append(verdict)
            elif verdict.stage == "Predicate":
                shown = len(verdict.mismatches), verdict.mismatches[:_SHOWN_MISMATCHES]
                by_predicate.setdefault(shown, []).append(verdict)
            elif verdict.stage == "Rank":
                by_rank.setdefault(_is_avoided(verdict), []).append(verdict.cluster)
        for verdicts in by_taint.values():
            yield from self._tainted(verdicts)
        for verdicts in by_predicate.values():
            parts = [
                note("Mismatch", part=x.part, text=x.text, error=x.error)
                for x in verdicts[0].mismatches
            ]
            names = [verdict.cluster for verdict in verdicts]
            yield note("Out/predicate", clusters=names, mismatches=parts)
        for avoided, names in sorted(by_rank.items()):
            yield note("Out/prefer" if avoided else "Out/rank", clusters=names)

    def _tainted(self, verdicts: Sequence[ClusterVerdict]) -> Iterator[Note]:
        first, taints = verdicts[0], self.reader.cluster_taints
        cluster = self.reader.clusters.get(first.cluster)
        if first.blocked_by is None or cluster is None:
            return
        taint = first.blocked_by.taint
        names = [verdict.cluster for verdict in verdicts]
        yield note("Out/taint", clusters=names, text=sentence(first))
        yield note("TaintOnCluster", cluster=first.cluster, taint=taints.of(cluster, taint))
        if (condition := taints.condition(cluster, taint, named=True)) is not None:
            yield condition

    def _origins(self) -> Iterator[str]:
        """Yield the objects behind the taints that exclude clusters."""
        for verdict in self.verdicts:
            cluster, blocked = self.reader.clusters.get(verdict.cluster), verdict.blocked_by
            if verdict.stage == _TAINTED and blocked is not None and cluster is not None:
                yield self.reader.cluster_taints.origin(cluster, blocked.taint)

    def _toleration_ends(self) -> Iterator[Note]:
        for verdict in self.verdicts:
            ends = [x.until for x in verdict.taints if x.tolerated and x.until is not None]
            if verdict.stage == "Selected" and ends:
                yield note("ToleratedUntil", cluster=verdict.cluster, at=min(ends))

    # -- details ----------------------------------------------------------------------------------

    def _verdict_table(self) -> Table:
        rows = tuple((x.cluster, x.stage, sentence(x)) for x in self.verdicts)
        return Table("Clusters", ("cluster", "stage", "why"), rows)

    def _score_table(self) -> Table:
        rows = tuple(
            (verdict.cluster, part.prioritizer, str(part.weight), str(part.score or 0))
            for verdict in self.verdicts
            for part in verdict.scores
        )
        return Table("Scores", ("cluster", "prioritizer", "weight", "score"), rows)


def _is_avoided(verdict: ClusterVerdict) -> bool:
    return any(x.taint.effect == PREFER_NO_SELECT and not x.tolerated for x in verdict.taints)
