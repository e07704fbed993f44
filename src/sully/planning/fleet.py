"""Plans for clusters and placements: what the fleet would decide, told in the form of a plan.

The rehearsal itself is `domain/placement/whatif.py`, and what the hub makes of a cluster is hub.py.
What would happen without the change is played through as well, and left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from sully.api.cluster.types import ManagedCluster, ManagedClusterSet
from sully.client.objects import key_of
from sully.client.transport import Key, Kind
from sully.controllers.placement.settings import PlacementSettings
from sully.domain.clusters.hub import BUILT_IN_SETS, is_astray
from sully.domain.placement.changes import (
    Change,
    DropBinding,
    DropCluster,
    DropPlacement,
    DropSet,
    PutObject,
)
from sully.domain.placement.counting import PlacementKey
from sully.domain.placement.fleet import Fleet
from sully.domain.placement.outcome import Outcome
from sully.domain.placement.whatif import Forecast
from sully.domain.planning.report import ClusterMove, PlacementTold, Plan
from sully.planning.changes import Put, Remove, told
from sully.planning.hub import Hub
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, PLACEMENTS, POLICIES, SETS
from sully.views.snapshot.snapshot import Snapshot

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
        notes=(*_remarks(snapshot, changes), *map(_never_rests, found.oscillating)),
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
            toleration_seconds=flags.toleration_seconds,
            removals_per_minute=flags.removals_per_minute,
        )
    return view.whatif(_steps(snapshot, changes), snapshot.taken + HORIZON)


def _steps(snapshot: Snapshot, changes: Sequence[Put | Remove]) -> list[Change]:
    """Return what happens to the fleet: what somebody does, and what the hub makes of it."""
    now, until = snapshot.taken, snapshot.taken + HORIZON
    hub, known = _hub(snapshot, changes), snapshot.fleet.fleet.clusters
    changed = {each.key.name for each in changes if _is(each, CLUSTERS)}
    found: list[Change] = []
    for each in changes:
        if isinstance(each, Put) and _is(each, CLUSTERS):
            found += hub.puts(each.obj, now, until)
        else:
            found += _step(each)
    for name in sorted(known.keys() - changed):
        found += hub.goes_on(known[name].cluster, now, until)
    return found


def _is(change: Put | Remove, kind: Kind[Any]) -> bool:
    return change.kind.plural == kind.plural


def _step(change: Put | Remove) -> Iterator[Change]:
    """Yield what a change does to placements by itself; a policy does nothing without the hub."""
    key = change.key
    if isinstance(change, Put):
        if any(_is(change, kind) for kind in (PLACEMENTS, BINDINGS, SETS)):
            yield PutObject(_mended(change.obj) if _is(change, SETS) else change.obj)
    elif _is(change, PLACEMENTS):
        yield DropPlacement(key)
    elif _is(change, BINDINGS):
        yield DropBinding(key)
    elif _is(change, SETS) and key.name not in BUILT_IN_SETS:
        yield DropSet(key.name)
    elif _is(change, CLUSTERS):
        yield DropCluster(key.name)


def _mended(found: ManagedClusterSet) -> ManagedClusterSet:
    """Return a set as the hub leaves it: of two of them it says itself what they select."""
    name = found.metadata.name
    if name not in BUILT_IN_SETS or not is_astray(found):
        return found
    return replace(found, spec=replace(found.spec, cluster_selector=BUILT_IN_SETS[name]))


def _remarks(snapshot: Snapshot, changes: Sequence[Put | Remove]) -> Iterator[str]:
    """Say what the hub has to do with the changes."""
    hub, known = _hub(snapshot, changes), snapshot.fleet.fleet.clusters
    sets = {each.metadata.name for each in snapshot.of(SETS).values()}
    sets |= {each.key.name for each in changes if _is(each, SETS)}
    for each in changes:
        name = each.key.name
        if _is(each, SETS) and name in BUILT_IN_SETS:
            if isinstance(each, Remove) or _mended(each.obj) is not each.obj:
                yield f"the hub restores set {name}; until then placements may lose clusters"
        elif isinstance(each, Remove):
            continue
        elif _is(each, BINDINGS) and name not in sets:
            yield f"ManagedClusterSet {name} does not exist, so the binding has no effect"
        elif _is(each, CLUSTERS):
            yield from _remarks_on_cluster(hub, each.obj, new=name not in known)


def _remarks_on_cluster(hub: Hub, cluster: ManagedCluster, *, new: bool) -> Iterator[str]:
    name, tried = cluster.metadata.name, hub.tried(cluster)
    if tried:
        yield f"the plan assumes {name} is unhealthy: the hub removes {tried} if it is not"
    elif new:
        yield f"{name} is unreachable until its agent reports"


def _never_rests(key: PlacementKey) -> str:
    return (
        f"the decisions of {Key(*key)} never settle: it always prefers other clusters;"
        " check the weights of its prioritizers"
    )


def _hub(snapshot: Snapshot, changes: Sequence[Put | Remove]) -> Hub:
    known = {each.metadata.name: each for each in snapshot.of(CLUSTERS).values()}
    policies = {key_of(each): each for each in snapshot.of(POLICIES).values()}
    for change in changes:
        if _is(change, POLICIES):
            policies.pop(change.key, None)
            policies |= {change.key: change.obj} if isinstance(change, Put) else {}
    return Hub(policies.values(), known)


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
    touched = {Key(*each.key) for each in changes if _is(each, PLACEMENTS)}
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
