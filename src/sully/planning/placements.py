"""Plans for clusters and placements: which clusters Placements would select after a change.

The decisions are simulated by `domain/placement/whatif.py`, the taints that the hub would set by
cluster_taints.py. What would also happen without the change is simulated, too, and left out.
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
from sully.domain.clusters.hub import BUILT_IN_SETS, is_modified
from sully.domain.placement.changes import (
    Change,
    DropBinding,
    DropCluster,
    DropPlacement,
    DropSet,
    PutObject,
)
from sully.domain.placement.incremental.decision_counts import PlacementKey
from sully.domain.placement.incremental.fleet import Fleet
from sully.domain.placement.results.outcome import Outcome
from sully.domain.placement.whatif import Forecast
from sully.domain.planning.report import DecisionChange, PlacementChange, Plan
from sully.planning.cluster_taints import ClusterTaintSimulator
from sully.planning.dryrun.changes import Put, Remove, describe
from sully.views.fleet_kinds import BINDINGS, CLUSTERS, PLACEMENTS, POLICIES, SETS
from sully.views.snapshot.snapshot import Snapshot

HORIZON = timedelta(days=7)
"""Later events are not simulated: some score always expires."""
_DEFAULT_FLAGS = PlacementSettings()
_SATISFIED = "PlacementSatisfied"


def plan_placements(
    snapshot: Snapshot,
    changes: Sequence[Put | Remove],
    flags: PlacementSettings = _DEFAULT_FLAGS,
) -> Plan:
    """Return what changes would do to the decisions of placements."""
    fleet, now = snapshot.fleet.fleet, snapshot.taken
    changed, unchanged = forecast(snapshot, changes, flags), forecast(snapshot, (), flags)
    return Plan(
        start_time=now,
        subject="clusters",
        changes=tuple(
            describe(change, snapshot.of(change.kind).get(change.key)) for change in changes
        ),
        decision_changes=tuple(_decision_changes(changed, unchanged, now)),
        placements=tuple(_placements(fleet, changes, changed, unchanged)),
        notes=(*_notes(snapshot, changes), *map(_never_settles, changed.oscillating)),
    )


def forecast(
    snapshot: Snapshot,
    changes: Sequence[Put | Remove] = (),
    flags: PlacementSettings = _DEFAULT_FLAGS,
) -> Forecast:
    """Return the future decisions of placements, with changes or without any."""
    view = snapshot.fleet
    if flags != _DEFAULT_FLAGS:
        view = snapshot.fleet_with(
            toleration_seconds=flags.toleration_seconds,
            removals_per_minute=flags.removals_per_minute,
        )
    return view.whatif(_steps(snapshot, changes), snapshot.taken + HORIZON)


def _steps(snapshot: Snapshot, changes: Sequence[Put | Remove]) -> list[Change]:
    """Return the writes of users, and those of the hub that follow."""
    now, until = snapshot.taken, snapshot.taken + HORIZON
    simulator, clusters = _simulator(snapshot, changes), snapshot.fleet.fleet.clusters
    changed = {change.key.name for change in changes if _is(change, CLUSTERS)}
    steps: list[Change] = []
    for change in changes:
        if isinstance(change, Put) and _is(change, CLUSTERS):
            steps += simulator.after_change(change.obj, now, until)
        else:
            steps += _step(change)
    for name in sorted(clusters.keys() - changed):
        steps += simulator.without_change(clusters[name].cluster, now, until)
    return steps


def _is(change: Put | Remove, kind: Kind[Any]) -> bool:
    return change.kind.plural == kind.plural


def _step(change: Put | Remove) -> Iterator[Change]:
    """Yield what a change does to placements directly; a policy only has an effect on the hub."""
    key = change.key
    if isinstance(change, Put):
        if any(_is(change, kind) for kind in (PLACEMENTS, BINDINGS, SETS)):
            yield PutObject(_restored(change.obj) if _is(change, SETS) else change.obj)
    elif _is(change, PLACEMENTS):
        yield DropPlacement(key)
    elif _is(change, BINDINGS):
        yield DropBinding(key)
    elif _is(change, SETS) and key.name not in BUILT_IN_SETS:
        yield DropSet(key.name)
    elif _is(change, CLUSTERS):
        yield DropCluster(key.name)


def _restored(cluster_set: ManagedClusterSet) -> ManagedClusterSet:
    """Return a set as the hub stores it: it restores the selectors of built-in sets."""
    name = cluster_set.metadata.name
    if name not in BUILT_IN_SETS or not is_modified(cluster_set):
        return cluster_set
    spec = replace(cluster_set.spec, cluster_selector=BUILT_IN_SETS[name])
    return replace(cluster_set, spec=spec)


def _notes(snapshot: Snapshot, changes: Sequence[Put | Remove]) -> Iterator[str]:
    """Yield what the hub does because of the changes."""
    simulator, clusters = _simulator(snapshot, changes), snapshot.fleet.fleet.clusters
    sets = {cluster_set.metadata.name for cluster_set in snapshot.of(SETS).values()}
    sets |= {change.key.name for change in changes if _is(change, SETS)}
    for change in changes:
        name = change.key.name
        if _is(change, SETS) and name in BUILT_IN_SETS:
            if isinstance(change, Remove) or _restored(change.obj) is not change.obj:
                yield f"the hub restores set {name}; until then placements may lose clusters"
        elif isinstance(change, Remove):
            continue
        elif _is(change, BINDINGS) and name not in sets:
            yield f"ManagedClusterSet {name} does not exist, so the binding has no effect"
        elif _is(change, CLUSTERS):
            yield from _cluster_notes(simulator, change.obj, new=name not in clusters)


def _cluster_notes(
    simulator: ClusterTaintSimulator, cluster: ManagedCluster, *, new: bool
) -> Iterator[str]:
    name, taint = cluster.metadata.name, simulator.added_health_taint(cluster)
    if taint:
        yield f"the plan assumes {name} is unhealthy: the hub removes {taint} if it is not"
    elif new:
        yield f"{name} is unreachable until its agent reports"


def _never_settles(key: PlacementKey) -> str:
    return (
        f"the decisions of {Key(*key)} never settle: it always prefers other clusters;"
        " check the weights of its prioritizers"
    )


def _simulator(snapshot: Snapshot, changes: Sequence[Put | Remove]) -> ClusterTaintSimulator:
    clusters = {cluster.metadata.name: cluster for cluster in snapshot.of(CLUSTERS).values()}
    policies = {key_of(policy): policy for policy in snapshot.of(POLICIES).values()}
    for change in changes:
        if _is(change, POLICIES):
            policies.pop(change.key, None)
            policies |= {change.key: change.obj} if isinstance(change, Put) else {}
    return ClusterTaintSimulator(policies.values(), clusters)


def _decision_changes(
    changed: Forecast, unchanged: Forecast, now: datetime
) -> Iterator[DecisionChange]:
    expected = set(unchanged.moves)
    for move in changed.moves:
        if move not in expected:
            yield DecisionChange(
                time=move.at,
                after_seconds=(move.at - now).total_seconds(),
                placement=str(Key(*move.placement)),
                removed_clusters=move.left,
                added_clusters=move.joined,
            )


def _placements(
    fleet: Fleet, changes: Sequence[Put | Remove], changed: Forecast, unchanged: Forecast
) -> Iterator[PlacementChange]:
    """Yield placements that are changed, or end with other clusters than without the changes."""
    written = {Key(*change.key) for change in changes if _is(change, PLACEMENTS)}
    for key in sorted(written | {Key(*key) for key in changed.outcomes}):
        before = tuple(sorted(fleet.counts.own(key)))
        outcome, expected = changed.outcomes.get(key), unchanged.outcomes.get(key)
        clusters = expected.clusters if expected is not None else before
        if outcome is None:
            yield PlacementChange(placement=str(key), before=before, after=())
        elif key in written or outcome.clusters != clusters:
            yield _placement_change(key, before, outcome)


def _placement_change(key: Key, before: tuple[str, ...], outcome: Outcome) -> PlacementChange:
    after = outcome.clusters
    satisfied = (item for item in outcome.conditions if item.type == _SATISFIED)
    return PlacementChange(
        placement=str(key),
        before=before,
        after=after,
        # A placement without numberOfClusters only lacks one if it has none.
        missing_clusters=outcome.unscheduled or int(not after),
        message=next((condition.message for condition in satisfied), ""),
    )
