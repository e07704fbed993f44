"""Why a cluster is or is not selected by a placement: every stage, for people.

The answers are values; `sully explain` and the debug endpoint print them. They are
made from a pass with all its stages (schedule.py), one cluster at a time, on request.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Literal

import msgspec

from sully.api.cluster.types import NO_SELECT_IF_NEW, PREFER_NO_SELECT
from sully.domain.placement.candidates import Candidate
from sully.domain.placement.predicates import Mismatch, mismatches
from sully.domain.placement.results.status import Status
from sully.domain.placement.schedule import Inputs, Rules, Trace, trace
from sully.domain.placement.tolerations import TaintFinding, explain
from sully.domain.tolerations import taint_text
from sully.machinery.formats.timestamps import format_time

Stage = Literal[
    "Unknown",
    "Deleting",
    "Sets",
    "Misconfigured",
    "Predicate",
    "TaintToleration",
    "Rank",
    "Selected",
]
"""The stage that a cluster reached; the last two passed every filter."""


class ScorePart(msgspec.Struct, frozen=True):
    """What one prioritizer gave a cluster; without a score it counted nothing."""

    prioritizer: str
    weight: int
    score: int | None


class ClusterVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a pass trace out about one cluster."""

    cluster: str
    stage: Stage
    decided: bool
    """The placement has it already."""
    mismatches: tuple[Mismatch, ...] = ()
    """Why each predicate failed, when all did."""
    taints: tuple[TaintFinding, ...] = ()
    blocked_by: TaintFinding | None = None
    held: bool = False
    """It would be removed if there were budget for it."""
    scores: tuple[ScorePart, ...] = ()
    total: int | None = None
    rank: int | None = None
    """Its rank among the feasible clusters, from 1."""
    cut_off: int | None = None
    """How many clusters the placement takes at most."""


class Breakdown(msgspec.Struct, frozen=True):
    """How many clusters fell at which stage."""

    considered: int
    by_predicate: int
    by_taint: int
    feasible: int
    selected: int

    def __str__(self) -> str:
        """Write it as one sentence."""
        return (
            f"{self.considered} considered, {self.by_predicate} by predicate, "
            f"{self.by_taint} by taint, {self.feasible} feasible, {self.selected} selected"
        )


class PlacementExplanation:
    """One pass, and questions about it."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._rules = Rules(inputs.placement, inputs.options)
        self._available = {one.name for one in inputs.candidates}

    @cached_property
    def trace(self) -> Trace:
        """Return the pass with all its stages."""
        return trace(self._inputs)

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.trace.ranked, start=1)}

    @cached_property
    def breakdown(self) -> Breakdown:
        """Count the clusters by stage; one that was not reached took none away."""
        trace = self.trace
        considered = len(self._inputs.candidates)
        qualified = considered if trace.qualified is None else len(trace.qualified)
        tolerated = qualified if trace.feasible is None else len(trace.feasible)
        return Breakdown(
            considered,
            considered - qualified,
            qualified - tolerated,
            len(trace.feasible or ()),
            len(trace.selected),
        )

    def all(self) -> list[ClusterVerdict]:
        """Return the verdicts on all clusters of the eligible sets, in order of name."""
        return [self.of(name) for name in sorted(self._available)]

    def of(self, name: str) -> ClusterVerdict:
        """Return the verdict on one cluster, which need not exist."""
        candidate = self._inputs.known.get(name)
        decided = name in self._inputs.decided
        if candidate is None:
            return ClusterVerdict(cluster=name, stage="Unknown", decided=decided)
        if name not in self._available:
            stage: Stage = "Deleting" if candidate.is_terminating else "Sets"
            return ClusterVerdict(cluster=name, stage=stage, decided=decided)
        missing = self._mismatches(candidate)
        taints = self._taints(candidate)
        blocked = next((one for one in taints if self._blocks(one, decided=decided)), None)
        return ClusterVerdict(
            cluster=name,
            stage=self._stage(name, missing, blocked),
            decided=decided,
            mismatches=missing,
            taints=taints,
            blocked_by=blocked,
            held=name in self.trace.held,
            scores=self._scores(name),
            total=self.trace.totals.get(name),
            rank=self._ranks.get(name),
            cut_off=self._inputs.placement.spec.number_of_clusters,
        )

    def _stage(
        self, name: str, missing: tuple[Mismatch, ...], blocked: TaintFinding | None
    ) -> Stage:
        if self.trace.status.stops:
            return "Misconfigured"
        if missing:
            return "Predicate"
        if blocked is not None and name not in self.trace.held:
            return "TaintToleration"
        return "Selected" if name in self._chosen else "Rank"

    @cached_property
    def _chosen(self) -> frozenset[str]:
        return frozenset(self.trace.selected)

    def _mismatches(self, candidate: Candidate) -> tuple[Mismatch, ...]:
        predicates = self._rules.predicates
        if isinstance(predicates, Status):
            return ()
        return self._inputs.budget.run(partial(mismatches, predicates, candidate))

    def _taints(self, candidate: Candidate) -> tuple[TaintFinding, ...]:
        compat = self._inputs.options.compat
        now, tolerations = self._inputs.now, self._rules.tolerations
        return tuple(explain(taint, tolerations, now, compat) for taint in candidate.taints)

    @staticmethod
    def _blocks(finding: TaintFinding, *, decided: bool) -> bool:
        effect = finding.taint.effect
        if finding.tolerated or effect == PREFER_NO_SELECT:
            return False
        return not (decided and effect == NO_SELECT_IF_NEW)

    def _scores(self, name: str) -> tuple[ScorePart, ...]:
        return tuple(
            ScorePart(prioritizer.name, prioritizer.weight, scores.get(name))
            for prioritizer, scores in self.trace.scores
            if name in self.trace.totals
        )


def sentence(verdict: ClusterVerdict) -> str:
    """Return one sentence why a cluster is or is not selected."""
    match verdict.stage:
        case "Unknown":
            return "there is no such cluster"
        case "Deleting":
            return "the cluster is being deleted"
        case "Sets":
            return "the cluster is in no set that the placement may use"
        case "Misconfigured":
            return "the placement cannot be evaluated"
        case "Predicate":
            parts = (
                f"predicate {one.index}: {one.part} ({one.text})"
                + (f" fails: {one.error}" if one.error else "")
                for one in verdict.mismatches
            )
            return f"no predicate matches: {'; '.join(parts)}"
        case "TaintToleration":
            return _taint_sentence(verdict.blocked_by)
        case "Rank":
            cut_off = f"{verdict.cut_off} {'is' if verdict.cut_off == 1 else 'are'} requested"
            return f"rank {verdict.rank} with {verdict.total}, and {cut_off}"
        case "Selected":
            return _selected_sentence(verdict)


def _selected_sentence(verdict: ClusterVerdict) -> str:
    if verdict.held:
        return "selected; its removal is delayed by the removal budget"
    return f"selected, rank {verdict.rank} with {verdict.total}"


def _taint_sentence(finding: TaintFinding | None) -> str:
    if finding is None:
        return "a taint is not tolerated"
    taint = finding.taint
    mark = taint_text(taint)
    if finding.toleration is None:
        return f"taint {mark} is not tolerated"
    if finding.failure == "expired" and taint.time_added is None:
        return f"taint {mark} has no timeAdded from which a toleration for some time could count"
    if finding.failure == "expired" and finding.until is not None:
        return f"taint {mark} was tolerated until {format_time(finding.until)}"
    return f"taint {mark} is not tolerated: the nearest toleration differs in its {finding.failure}"
