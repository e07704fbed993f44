"""Plans for clusters and placements: what the fleet would decide, told in the form of a plan.

The rehearsal itself is `domain/placement/whatif.py`. What would happen without the change is played
through as well, and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sully.api.cluster.placement_types import Placement
from sully.client.transport import Key
from sully.domain.placement.behaviour import Behaviour, improved
from sully.domain.placement.changes import (
    Change,
    DropCluster,
    DropPlacement,
    PutCluster,
    PutPlacement,
)
from sully.domain.placement.deciding import decide
from sully.domain.placement.fleet import Fleet
from sully.domain.placement.outcome import Outcome
from sully.domain.placement.whatif import Forecast, whatif
from sully.domain.planning.report import ClusterMove, PlacementTold, Plan
from sully.planning.changes import Put, Remove
from sully.views.fleet import Caches, FleetView
from sully.views.fleetkinds import BINDINGS, CLUSTERS, DECISIONS, PLACEMENTS, SCORES, SETS
from sully.views.snapshot import Snapshot, StoppedClock

HORIZON = timedelta(days=7)
"""What happens later is not looked at: some score always runs out."""
_SATISFIED = "PlacementSatisfied"


def plan_fleet(
    snapshot: Snapshot,
    changes: Sequence[Put | Remove],
    *,
    behaviour: Behaviour | None = None,
    notes: Sequence[str] = (),
) -> Plan:
    """Say what changes would do to the decisions of a fleet."""
    fleet, now = _fleet(snapshot, behaviour or improved()), snapshot.taken
    steps = [_step(each) for each in changes]
    found = whatif(fleet, steps, now, now + HORIZON)
    anyway = whatif(fleet, (), now, now + HORIZON)
    return Plan(
        at=now,
        about="clusters",
        changes=tuple(_told(fleet, each) for each in changes),
        moves=tuple(_moves(found, anyway, now)),
        placements=tuple(_placements(fleet, steps, found, anyway, now)),
        notes=tuple(notes),
    )


def _fleet(snapshot: Snapshot, behaviour: Behaviour) -> Fleet:
    caches = Caches(
        clusters=snapshot.of(CLUSTERS),
        sets=snapshot.of(SETS),
        bindings=snapshot.of(BINDINGS),
        placements=snapshot.of(PLACEMENTS),
        decisions=snapshot.of(DECISIONS),
        scores=snapshot.of(SCORES),
    )
    return FleetView(caches, clock=StoppedClock(snapshot.taken), behaviour=behaviour).fleet


def _step(change: Put | Remove) -> Change:
    is_cluster = change.kind.plural == CLUSTERS.plural
    if isinstance(change, Remove):
        return DropCluster(change.key.name) if is_cluster else DropPlacement(change.key)
    obj: Any = change.obj
    return PutCluster(obj) if is_cluster else PutPlacement(obj)


def _told(fleet: Fleet, change: Put | Remove) -> str:
    key = change.key
    known = key.name in fleet.clusters if not key.namespace else key in fleet.placements
    done = "deleted" if isinstance(change, Remove) else "changed" if known else "created"
    return f"{change.kind.kind}/{key} {done}"


def _moves(found: Forecast, anyway: Forecast, now: datetime) -> list[ClusterMove]:
    expected = set(anyway.moves)
    return [
        ClusterMove(
            at=each.at,
            after=(each.at - now).total_seconds(),
            placement=str(Key(*each.placement)),
            leaves=each.left,
            joins=each.joined,
        )
        for each in found.moves
        if each not in expected
    ]


def _placements(
    fleet: Fleet, steps: Sequence[Change], found: Forecast, anyway: Forecast, now: datetime
) -> list[PlacementTold]:
    expected = {each.placement: each.after for each in anyway.differences}
    told = {
        each.placement: _ended(each.placement, each.before, each.outcome)
        for each in found.differences
        if expected.get(each.placement) != each.after
    }
    for step in steps:
        if isinstance(step, PutPlacement):
            key = Key(step.placement.metadata.namespace, step.placement.metadata.name)
            if key not in told and (outcome := _tried(fleet, steps, step.placement, now)):
                told[key] = _ended(key, tuple(sorted(fleet.counting.own(key))), outcome)
    return [told[key] for key in sorted(told)]


def _tried(
    fleet: Fleet, steps: Sequence[Change], placement: Placement, now: datetime
) -> Outcome | None:
    copy = fleet.copy()
    for each in steps:
        each.apply(copy, now)
    return decide(copy, Key(placement.metadata.namespace, placement.metadata.name), now)


def _ended(key: tuple[str, str], before: tuple[str, ...], outcome: Outcome) -> PlacementTold:
    after = outcome.clusters
    message = next((each.message for each in outcome.conditions if each.type == _SATISFIED), "")
    return PlacementTold(
        placement=str(Key(*key)),
        before=before,
        after=after,
        # A placement that takes whatever there is lacks something only when nothing is left.
        unmet=outcome.unscheduled or int(not after),
        message=message,
    )
