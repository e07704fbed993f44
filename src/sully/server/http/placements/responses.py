"""The responses of `/debug/placements/`: stages, scores and verdicts, or a forecast.

The first four keys are those of Open Cluster Management's debug server; the others are ours and
are left out with `--compat reference`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from sully.api.cluster.types import Placement
from sully.domain.placement.incremental.decision_counts import PlacementKey
from sully.domain.placement.results.verdicts import ClusterVerdict, PlacementExplanation, sentence
from sully.domain.placement.schedule import Trace
from sully.domain.placement.tolerations import TaintFinding
from sully.domain.placement.whatif import Difference, Forecast, Move
from sully.machinery.compat import Compat
from sully.machinery.formats.timestamps import format_time

Obj = dict[str, Any]
_FIRST, _SECOND = "Predicate", "Predicate,TaintToleration"


def explanation_body(
    placement: Placement, explanation: PlacementExplanation, *, compat: Compat
) -> Obj:
    """Return the response about one Placement as it would be scheduled now."""
    trace = explanation.trace
    body: Obj = {
        "placement": _reduced(placement),
        "filteredPipelineResults": _stages(trace),
        "prioritizeResults": [
            {"name": prioritizer.name, "weight": prioritizer.weight, "scores": scores}
            for prioritizer, scores in sorted(trace.scores, key=lambda score: score[0].name)
        ],
        "aggregatedScores": [
            {"clusterName": name, "score": total}
            for name, total in sorted(trace.totals.items(), key=lambda score: (-score[1], score[0]))
        ],
    }
    if compat.extends_placement_debug:
        status = trace.status
        body["status"] = _non_empty(code=status.code, plugin=status.plugin, message=status.message)
        body["breakdown"] = str(explanation.breakdown)
        body["verdicts"] = [_verdict(verdict) for verdict in explanation.all()]
        body["requeueTime"] = _time(trace.requeue_at)
    return {key: value for key, value in body.items() if value not in ([], None)}


def _reduced(placement: Placement) -> Obj:
    metadata = placement.metadata
    reduced = _non_empty(
        name=metadata.name,
        namespace=metadata.namespace,
        labels=metadata.labels,
        annotations=metadata.annotations,
    )
    return {"metadata": reduced, "spec": msgspec.to_builtins(placement.spec)}


def _stages(trace: Trace) -> list[Obj]:
    stages = []
    if trace.qualified is not None:
        stages.append((_FIRST, [cluster.name for cluster in trace.qualified]))
    if trace.feasible is not None:
        # In the order of their scores, if they were scored.
        names = trace.ranked or [cluster.name for cluster in trace.feasible]
        stages.append((_SECOND, names))
    return [{"name": name, "filteredClusters": names} for name, names in stages]


def _verdict(verdict: ClusterVerdict) -> Obj:
    return _non_empty(
        cluster=verdict.cluster,
        stage=verdict.stage,
        message=sentence(verdict),
        decided=verdict.decided,
        held=verdict.held,
        mismatches=[
            {"predicate": mismatch.index, "part": mismatch.part, "text": mismatch.text}
            for mismatch in verdict.mismatches
        ],
        taints=[_taint(finding) for finding in verdict.taints],
        blockedBy=None if verdict.blocked_by is None else _taint(verdict.blocked_by),
        scores=[
            {"name": score.prioritizer, "weight": score.weight, "score": score.score}
            for score in verdict.scores
        ],
        total=verdict.total,
        rank=verdict.rank,
        cutOff=verdict.cut_off,
    )


def _taint(finding: TaintFinding) -> Obj:
    toleration = finding.toleration
    return {
        **msgspec.to_builtins(finding.taint),
        "tolerated": finding.tolerated,
        **_non_empty(
            toleration=None if toleration is None else msgspec.to_builtins(toleration),
            until=_time(finding.until),
            failure=finding.failure,
        ),
    }


def forecast_body(forecast: Forecast, visible: Callable[[PlacementKey], bool]) -> Obj:
    """Return the response about simulated changes, for Placements that the user may read."""
    moves = (move for move in forecast.moves if visible(move.placement))
    differences = (
        difference for difference in forecast.differences if visible(difference.placement)
    )
    return {
        "until": format_time(forecast.until),
        **_non_empty(requeueTime=_time(forecast.next_at)),
        "moves": [_move(move) for move in moves],
        "placements": [_difference(difference) for difference in differences],
    }


def _move(move: Move) -> Obj:
    return {"at": format_time(move.at), **_named(move.placement), **_change(move)}


def _difference(difference: Difference) -> Obj:
    return {
        **_named(difference.placement),
        "before": list(difference.before),
        "after": list(difference.after),
        **_change(difference),
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
            }
            for condition in difference.outcome.conditions
        ],
    }


def _named(key: PlacementKey) -> Obj:
    return {"namespace": key[0], "name": key[1]}


def _change(change: Move | Difference) -> dict[str, Sequence[str]]:
    return {"removed": list(change.left), "added": list(change.joined)}


def _time(at: datetime | None) -> str | None:
    return None if at is None else format_time(at)


def _non_empty(**fields: Any) -> Obj:
    empty: Iterable[Any] = (None, "", [], {}, False)
    return {name: value for name, value in fields.items() if value == 0 or value not in empty}
