"""Managed clusters: their health, their taints, and which placements select them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from sully.api.cluster.types import ManagedCluster, Placement
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.clusters.health import ACCEPTED, AVAILABLE, CLOCK_SYNCED, condition, is_health
from sully.domain.clusters.hub import ACCEPTANCE_ERROR
from sully.domain.placement.incremental.membership import BrokenSetError
from sully.domain.placement.results.outcome import is_disabled
from sully.domain.placement.results.verdicts import ClusterVerdict, sentence
from sully.domain.tolerations import taint_text
from sully.explain.causes import ClusterFacts, ClusterTaint, Finding, Note, note
from sully.explain.explanation import Table, tables
from sully.explain.facts.clusters.placements import trials_of
from sully.explain.reader import Reader
from sully.machinery.formats.timestamps import format_time
from sully.machinery.meta import Condition
from sully.views.fleet_kinds import PLACEMENTS

_MAX_PLACEMENTS: Final = 3


class PlacementVerdict(NamedTuple):
    """What one placement makes of the cluster."""

    placement: Placement
    verdict: ClusterVerdict

    @property
    def name(self) -> str:
        return str(key_of(self.placement))


def find_cluster(reader: Reader, key: Key) -> Finding | None:
    cluster = reader.clusters.get(key.name)
    return _Cluster(reader, cluster).find() if cluster is not None else None


class _Cluster:
    def __init__(self, reader: Reader, cluster: ManagedCluster) -> None:
        self.reader = reader
        self.cluster = cluster
        self.name = cluster.metadata.name
        self.sets = tuple(sorted(reader.fleet.fleet.registry.sets_of(self.name)))
        self.verdicts = tuple(self._verdicts())
        self.selected = [x for x in self.verdicts if x.verdict.stage == "Selected"]
        self.tainted = [x for x in self.verdicts if x.verdict.stage == "TaintToleration"]

    def _verdicts(self) -> Iterator[PlacementVerdict]:
        placements = self.reader.snapshot.of(PLACEMENTS).values()
        for placement in sorted(placements, key=key_of):
            if is_disabled(placement):
                continue
            try:
                verdict = self.reader.fleet.explain(placement).of(self.name)
            except BrokenSetError:
                continue
            # A placement that may not use any of its sets does not concern a cluster.
            if verdict.stage != "Sets" or verdict.decided:
                yield PlacementVerdict(placement, verdict)

    def find(self) -> Finding:
        finding, taints = self._cause(), self.cluster.spec.taints
        origin = self.reader.cluster_taints.origin
        return replace(
            finding,
            since=self.cluster.metadata.deletion_timestamp,
            also=(*self._has_taints(), *self._placements(), *self._clock()),
            because=tuple(origin(self.cluster, taint) for taint in taints),
            details=tables(self._taint_table(), self._verdict_table(), self._condition_table()),
        )

    def _finding(self, cause: str, facts: ClusterFacts | None = None, **more: Any) -> Finding:
        facts = facts or ClusterFacts()
        return Finding(kind="ManagedCluster", name=self.name, cause=cause, facts=facts, **more)

    def _cause(self) -> Finding:
        if self.cluster.metadata.deletion_timestamp is not None:
            return self._finding("Deleted")
        if not self.sets:
            return self._finding("NoClusterSet")
        available = condition(self.cluster, AVAILABLE)
        if available is None or available.status != "True":
            return self._unhealthy(available)
        return self._healthy(available)

    def _unhealthy(self, available: Condition | None) -> Finding:
        accepted = condition(self.cluster, ACCEPTED)
        if accepted is None and not self.cluster.spec.hub_accepts_client:
            return self._finding("NotAccepted")
        if accepted is not None and accepted.status == "False":
            failed = accepted.reason == ACCEPTANCE_ERROR
            return self._finding("AcceptanceFailed" if failed else "Denied", _reported(accepted))
        if available is None:
            return self._finding("NeverAvailable")
        cause = "Unavailable" if available.status == "False" else "Unreachable"
        return self._finding(cause, _reported(available), reason=available.reason)

    def _healthy(self, available: Condition) -> Finding:
        tainted = bool(self.cluster.spec.taints)
        others = self.tainted or self.verdicts
        facts = ClusterFacts(
            at=available.last_transition_time,
            sets=self.sets,
            verdicts=tuple(self._excluding()),
            placements=tuple(placement.name for placement in others),
            taint=self._blocking() if self.tainted else None,
        )
        if self.tainted:
            cause = "TaintNotTolerated"
        elif not self.verdicts:
            cause = "NoPlacement"
        elif not self.selected:
            cause = "NotSelected"
        else:
            cause = "TaintsTolerated" if tainted else "NotTainted"
        excluded = cause in ("TaintNotTolerated", "NotSelected")
        remedies = tuple(self._remedies(others)) if excluded else ()
        state = "Tainted" if tainted else "Available"
        return self._finding(cause, facts, state=state, remedies=remedies)

    def _excluding(self) -> Iterator[Note]:
        for placement in self.verdicts[:_MAX_PLACEMENTS]:
            if placement.verdict.stage not in ("Selected", "TaintToleration"):
                text = sentence(placement.verdict)
                yield note("Verdict", of=placement.name, text=text)

    def _blocking(self) -> ClusterTaint:
        """Return the taint that excludes the cluster from the most placements."""
        blocked = (x.verdict.blocked_by for x in self.tainted)
        taints = {taint_text(x.taint): x.taint for x in blocked if x is not None}
        texts = Counter(
            taint_text(x.verdict.blocked_by.taint) for x in self.tainted if x.verdict.blocked_by
        )
        taint = taints[texts.most_common(1)[0][0]]
        return self.reader.cluster_taints.of(self.cluster, taint)

    def _remedies(self, placements: Sequence[PlacementVerdict]) -> Iterator[Note]:
        """Yield for each of the first placements what would make it select the cluster."""
        for placement, verdict in placements[:_MAX_PLACEMENTS]:
            for remedy in trials_of(self.reader, placement).for_cluster(verdict):
                yield note("ForPlacement", placement=str(key_of(placement)), remedy=remedy)

    # -- further statements -----------------------------------------------------------------------

    def _has_taints(self) -> Iterator[Note]:
        taints = self.reader.cluster_taints
        for taint in self.cluster.spec.taints:
            yield note("ClusterHasTaint", taint=taints.of(self.cluster, taint))
            behind = taints.condition(self.cluster, taint, named=False)
            if behind is not None and not is_health(taint):
                # The condition behind the hub's own taints is in the first sentence.
                yield behind

    def _placements(self) -> Iterator[Note]:
        if self.selected:
            yield note("SelectedBy", placements=[x.name for x in self.selected])
        if self.tainted:
            losing = sum(placement.verdict.decided for placement in self.tainted)
            placements = [placement.name for placement in self.tainted]
            yield note("RejectedBy", placements=placements, losing=losing)
        ends = [
            (taint.until, placement.name)
            for placement in self.selected
            for taint in placement.verdict.taints
            if taint.tolerated and taint.until is not None
        ]
        if ends:
            at, first = min(ends)
            yield note("TolerationEnds", placement=first, at=at)

    def _clock(self) -> Iterator[Note]:
        synced = condition(self.cluster, CLOCK_SYNCED)
        if synced is not None and synced.status == "False":
            yield note("ClockSkew", at=synced.last_transition_time)

    # -- details ----------------------------------------------------------------------------------

    def _taint_table(self) -> Table:
        taints = self.cluster.spec.taints
        facts = [self.reader.cluster_taints.of(self.cluster, taint) for taint in taints]
        rows = tuple(
            (
                x.taint,
                format_time(x.added) if x.added is not None else "",
                _added_by(x),
                x.condition,
            )
            for x in facts
        )
        return Table("Taints", ("taint", "added", "source", "condition"), rows)

    def _verdict_table(self) -> Table:
        rows = tuple((x.name, x.verdict.stage, sentence(x.verdict)) for x in self.verdicts)
        return Table("Placements", ("placement", "stage", "why"), rows)

    def _condition_table(self) -> Table:
        conditions = self.cluster.status.conditions
        rows = tuple((x.type, x.status, x.reason, x.message) for x in conditions)
        return Table("Conditions", ("type", "status", "reason", "message"), rows)


def _added_by(taint: ClusterTaint) -> str:
    return taint.by or (f"with {taint.program}" if taint.program else "")


def _reported(reported: Condition) -> ClusterFacts:
    message = reported.message or reported.reason
    return ClusterFacts(at=reported.last_transition_time, message=message)
