"""Plans for clusters and placements: what the fleet would decide, told in the form of a plan.

The rehearsal itself is `domain/placement/whatif.py`, and what the hub makes of a cluster is hub.py.
What would happen without the change is played through as well, and left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from sully.client.transport import Key
from sully.controllers.placement.settings import PlacementSettings
from sully.domain.placement.changes import (
    Change,
    DropCluster,
    DropPlacement,
    PutPlacement,
)
from sully.domain.placement.counting import PlacementKey
from sully.domain.placement.fleet import Fleet
from sully.domain.placement.outcome import Outcome
from sully.domain.placement.whatif import Forecast
from sully.domain.planning.report import ClusterMove, PlacementTold, Plan
from sully.planning.changes import Put, Remove, told
from sully.planning.hub import Hub
from sully.views.fleetkinds import CLUSTERS, POLICIES
from sully.views.snapshot import Snapshot

HORIZON = timedelta(days=7)
"""What happens later is not looked at: some score always runs out."""
_NO_FLAGS = PlacementSettings()
_SATISFIED = "PlacementSatisfied"


def plan_fleet(
    snapshot: Snapshot,
    changes: Sequence[Put | Remove],
    flags: PlacementSettings = _NO_FLAGS,
) -> Plan:
    """Say what changes would do to the decisions of a fleet."""
    fleet, now = snapshot.fleet.fleet, snapshot.taken
    found, anyway = forecast(snapshot, changes, flags), forecast(snapshot, (), flags)
    return Plan(
        at=now,
        about="clusters",
        changes=tuple(told(each, snapshot.of(each.kind).get(each.key)) for each in changes),
        moves=tuple(_moves(found, anyway, now)),
        placements=tuple(_placements(fleet, changes, found, anyway)),
        notes=(*_remarks(snapshot, changes), *map(_never_rests, found.restless)),
    )


def forecast(
    snapshot: Snapshot,
    changes: Sequence[Put | Remove] = (),
    flags: PlacementSettings = _NO_FLAGS,
) -> Forecast:
    """Return what happens to a fleet, with changes or without any."""
    view = snapshot.fleet
    if flags != _NO_FLAGS:
        view = snapshot.fleet_with(
            toleration_seconds=flags.toleration_seconds, leaves_per_minute=flags.leaves_per_minute
        )
    return view.whatif(_steps(snapshot, changes), snapshot.taken + HORIZON)


def _steps(snapshot: Snapshot, changes: Sequence[Put | Remove]) -> list[Change]:
    """Return what happens to the fleet: what somebody does, and what the hub makes of it."""
    now, until = snapshot.taken, snapshot.taken + HORIZON
    hub, known = _hub(snapshot), snapshot.fleet.fleet.clusters
    changed = {each.key.name for each in changes if _is_cluster(each)}
    found: list[Change] = []
    for each in changes:
        if isinstance(each, Put) and _is_cluster(each):
            found += hub.puts(each.obj, now, until)
        else:
            found.append(_step(each))
    for name in sorted(known.keys() - changed):
        found += hub.goes_on(known[name].cluster, now, until)
    return found


def _is_cluster(change: Put | Remove) -> bool:
    return change.kind.plural == CLUSTERS.plural


def _step(change: Put | Remove) -> Change:
    if isinstance(change, Put):
        return PutPlacement(change.obj)
    return DropCluster(change.key.name) if _is_cluster(change) else DropPlacement(change.key)


def _remarks(snapshot: Snapshot, changes: Sequence[Put | Remove]) -> Iterator[str]:
    """Say what the hub has to do with the changes."""
    hub, known = _hub(snapshot), snapshot.fleet.fleet.clusters
    for each in changes:
        if isinstance(each, Remove) or not _is_cluster(each):
            continue
        name, tried = each.key.name, hub.tried(each.obj)
        if tried:
            yield f"this is as if {name} were so: the hub takes {tried} off clusters that are well"
        elif name not in known:
            yield f"{name} counts as unreachable until its agent says otherwise"


def _never_rests(key: PlacementKey) -> str:
    return (
        f"{Key(*key)} does not come to rest: whatever it has, it would rather have other clusters;"
        " see the weights of its prioritizers"
    )


def _hub(snapshot: Snapshot) -> Hub:
    known = {each.metadata.name: each for each in snapshot.of(CLUSTERS).values()}
    return Hub(snapshot.of(POLICIES).values(), known)


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
    fleet: Fleet, changes: Sequence[Put | Remove], found: Forecast, anyway: Forecast
) -> list[PlacementTold]:
    """Tell of placements that end up otherwise than without the changes, or are changed."""
    touched = {Key(*each.key) for each in changes if not _is_cluster(each)}
    told = []
    for key in sorted(touched | {Key(*each) for each in found.outcomes}):
        before = tuple(sorted(fleet.counting.own(key)))
        outcome, other = found.outcomes.get(key), anyway.outcomes.get(key)
        expected = other.clusters if other is not None else before
        if outcome is None:
            told += [PlacementTold(placement=str(key), before=before, after=())]
        elif key in touched or outcome.clusters != expected:
            told.append(_ended(key, before, outcome))
    return told


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
