"""What the pages about placements answer: stages, scores and verdicts of one, or a forecast of all.

The first four keys are those of Open Cluster Management's debug server; the others are ours and
are left out where only those are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from sully.api.cluster.types import Placement
from sully.domain.placement.counting import PlacementKey
from sully.domain.placement.schedule import Trace
from sully.domain.placement.tolerations import TaintFinding
from sully.domain.placement.verdicts import ClusterVerdict, Explanation, sentence
from sully.domain.placement.whatif import Difference, Forecast, Move
from sully.machinery.compat import Compat
from sully.machinery.timestamps import format_time

Obj = dict[str, Any]
_FIRST, _SECOND = "Predicate", "Predicate,TaintToleration"


def explained(placement: Placement, explanation: Explanation, *, compat: Compat) -> Obj:
    """Return how a placement would be decided now."""
    trace = explanation.trace
    answer: Obj = {
        "placement": _reduced(placement),
        "filteredPipelineResults": _stages(trace),
        "prioritizeResults": [
            {"name": one.name, "weight": one.weight, "scores": scores}
            for one, scores in sorted(trace.scores, key=lambda each: each[0].name)
        ],
        "aggregatedScores": [
            {"clusterName": name, "score": total}
            for name, total in sorted(trace.totals.items(), key=lambda each: (-each[1], each[0]))
        ],
    }
    if compat.extends_placement_debug:
        status = trace.status
        answer["status"] = _filled(code=status.code, plugin=status.plugin, message=status.message)
        answer["breakdown"] = str(explanation.breakdown)
        answer["verdicts"] = [_verdict(verdict) for verdict in explanation.all()]
        answer["nextLook"] = _time(trace.requeue_at)
    return {key: value for key, value in answer.items() if value not in ([], None)}


def _reduced(placement: Placement) -> Obj:
    metadata = placement.metadata
    kept = _filled(
        name=metadata.name,
        namespace=metadata.namespace,
        labels=metadata.labels,
        annotations=metadata.annotations,
    )
    return {"metadata": kept, "spec": msgspec.to_builtins(placement.spec)}


def _stages(found: Trace) -> list[Obj]:
    stages = []
    if found.qualified is not None:
        stages.append((_FIRST, [one.name for one in found.qualified]))
    if found.feasible is not None:
        # In the order of their scores, where it came to that.
        names = found.ranked or [one.name for one in found.feasible]
        stages.append((_SECOND, names))
    return [{"name": name, "filteredClusters": names} for name, names in stages]


def _verdict(verdict: ClusterVerdict) -> Obj:
    return _filled(
        cluster=verdict.cluster,
        stage=verdict.stage,
        says=sentence(verdict),
        decided=verdict.decided,
        held=verdict.held,
        mismatches=[
            {"predicate": one.index, "part": one.part, "text": one.text}
            for one in verdict.mismatches
        ],
        taints=[_taint(one) for one in verdict.taints],
        blockedBy=None if verdict.blocked_by is None else _taint(verdict.blocked_by),
        scores=[
            {"name": one.prioritizer, "weight": one.weight, "score": one.score}
            for one in verdict.scores
        ],
        total=verdict.total,
        rank=verdict.rank,
        cutOff=verdict.cut_off,
    )


def _taint(finding: TaintFinding) -> Obj:
    nearest = finding.toleration
    return {
        **msgspec.to_builtins(finding.taint),
        "tolerated": finding.tolerated,
        **_filled(
            toleration=None if nearest is None else msgspec.to_builtins(nearest),
            until=_time(finding.until),
            failure=finding.failure,
        ),
    }


def foretold(forecast: Forecast, visible: Callable[[PlacementKey], bool]) -> Obj:
    """Return what would happen to the placements that the user may read."""
    moves = (move for move in forecast.moves if visible(move.placement))
    differences = (
        difference for difference in forecast.differences if visible(difference.placement)
    )
    return {
        "until": format_time(forecast.until),
        **_filled(nextLook=_time(forecast.next_at)),
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
            {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
            for one in difference.outcome.conditions
        ],
    }


def _named(key: PlacementKey) -> Obj:
    return {"namespace": key[0], "name": key[1]}


def _change(change: Move | Difference) -> dict[str, Sequence[str]]:
    return {"left": list(change.left), "joined": list(change.joined)}


def _time(at: datetime | None) -> str | None:
    return None if at is None else format_time(at)


def _filled(**fields: Any) -> Obj:
    empty: Iterable[Any] = (None, "", [], {}, False)
    return {name: value for name, value in fields.items() if value == 0 or value not in empty}
