"""Measures placement on a fleet in memory: passes, one cluster event, what-if.

python bench/placement.py            # everything, about a minute
python bench/placement.py --quick    # the small fleets only

The workload and the figures of OCM (milliseconds, in process, one thread) are those of Open
Cluster Management's own scheduler on a machine with two cores; a ratio above 1 means that Sully
is faster. "cold" is the first pass over a placement of a new shape: every cluster is looked at.
"warm" is a pass after something changed that does not matter to it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from sully.api.cluster.types import (
    SET_LABEL,
    UNREACHABLE,
    ClusterCelSelector,
    ClusterPredicate,
    ClusterSelector,
    LabelSelector,
    LabelSelectorRequirement,
    ManagedCluster,
    ManagedClusterClaim,
    ManagedClusterSet,
    ManagedClusterSetBinding,
    ManagedClusterSpec,
    ManagedClusterStatus,
    Placement,
    PlacementSpec,
    PrioritizerConfig,
    PrioritizerPolicy,
    ScoreCoordinate,
    Taint,
    Toleration,
)
from sully.domain.placement.changes import SilenceClusters
from sully.domain.placement.incremental.deciding import decide, inputs
from sully.domain.placement.incremental.decision_counts import DecidedClusters, PlacementKey
from sully.domain.placement.incremental.fleet import Fleet
from sully.domain.placement.results.outcome import Outcome
from sully.domain.placement.schedule import schedule
from sully.domain.placement.whatif import whatif
from sully.machinery.meta import Condition, ObjectMeta
from sully.machinery.selectors.labels import from_object

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADDED = NOW - timedelta(seconds=30)
TAINTS = {
    0: Taint(key="maintenance", effect="NoSelect", time_added=ADDED),
    1: Taint(key="gpu", value="true", effect="NoSelect", time_added=ADDED),
    2: Taint(key=UNREACHABLE, effect="NoSelect", time_added=ADDED),
    3: Taint(key="soft", effect="PreferNoSelect", time_added=ADDED),
    4: Taint(key="new", effect="NoSelectIfNew", time_added=ADDED),
}
TOLERATIONS = (
    Toleration(key="gpu", operator="Equal", value="true"),
    Toleration(key=UNREACHABLE, operator="Exists", toleration_seconds=600),
)
LABELS = LabelSelector(
    match_expressions=(
        LabelSelectorRequirement(key="env", operator="In", values=("env-0", "env-1")),
    )
)
BY_LABEL = (ClusterPredicate(required_cluster_selector=ClusterSelector(label_selector=LABELS)),)
BY_CEL = (
    ClusterPredicate(
        required_cluster_selector=ClusterSelector(
            cel_selector=ClusterCelSelector(
                cel_expressions=("managedCluster.metadata.labels['env'].startsWith('env')",)
            )
        )
    ),
)
RESOURCES = PrioritizerPolicy(
    mode="Additive",
    configurations=tuple(
        PrioritizerConfig(score_coordinate=ScoreCoordinate(built_in=name))
        for name in ("ResourceAllocatableCPU", "ResourceAllocatableMemory")
    ),
)

# Clusters, requested (None: all), placements -> milliseconds of one pass of OCM.
PASSES = {
    (100, 10): (0.17, 0.18, 0.22),
    (100, None): (0.21, 0.20, 0.51),
    (1000, 10): (1.6, 1.8, 2.0),
    (1000, None): (2.4, 2.4, 4.3),
    (2000, 10): (3.1, 2.9, 3.7),
    (2000, None): (3.8, 5.7, 12.5),
    (10000, 10): (32.0, 23.0, 25.0),
    (10000, None): (41.0, 33.0, 66.0),
}
EVENTS = {(1000, 10): 16.0, (1000, 100): 171.0, (2000, 10): 33.0, (2000, 100): 331.0}
EVENTS |= {(10000, 10): 196.0, (10000, 100): 2000.0}
MANY_TAINTS = tuple(Taint(key=f"key-{at}", effect="NoSelect", time_added=ADDED) for at in range(10))
MANY_TOLERATIONS = tuple(
    Toleration(key=f"key-{at}", operator="Exists", toleration_seconds=600)
    for at in reversed(range(10))
)
VARIANTS: dict[str, tuple[dict[str, object], float, float]] = {
    "label predicate": ({"predicates": BY_LABEL}, 21.0, 266.0),
    "CEL predicate": ({"predicates": BY_CEL}, 22.0, 256.0),
    "CPU and memory scores": ({"prioritizer_policy": RESOURCES}, 3.7, 53.0),
}


def cluster(
    index: int, *, label: str = "", taints: tuple[Taint, ...] | None = None
) -> ManagedCluster:
    """Make one cluster of the workload; a label makes it another state of the same cluster."""
    amounts: dict[str, str | int] = {
        "cpu": str(8 + index % 64),
        "memory": f"{1 + index % 128}Gi",
    }
    if taints is None:
        taints = (TAINTS[index % 10],) if index % 10 in TAINTS else ()
    return ManagedCluster(
        metadata=ObjectMeta(
            name=f"cluster-{index:05d}",
            labels={
                SET_LABEL: "fleet",
                "env": f"env-{index % 2}",
                "region": f"region-{index % 10}",
                "tier": f"tier-{index % 4}",
                "note": label,
            },
        ),
        spec=ManagedClusterSpec(hub_accepts_client=True, taints=taints),
        status=ManagedClusterStatus(
            conditions=(
                Condition(
                    type="ManagedClusterConditionAvailable", status="True", reason="R", message=""
                ),
            ),
            capacity=amounts,
            allocatable=amounts,
            cluster_claims=(
                ManagedClusterClaim(name="platform", value=f"p-{index % 3}"),
                ManagedClusterClaim(name="version", value=f"1.{index % 20}.0"),
            ),
        ),
    )


def placement(index: int, want: int | None, **spec: object) -> Placement:
    """Make one placement of the workload."""
    return Placement(
        metadata=ObjectMeta(namespace="apps", name=f"placement-{index:03d}"),
        spec=PlacementSpec(number_of_clusters=want, tolerations=TOLERATIONS, **spec),
    )


def fleet_of(clusters: int, placements: int, want: int | None, **spec: object) -> Fleet:
    """Make a fleet in which all placements have decided."""
    fleet = Fleet()
    fleet.put_set(ManagedClusterSet(metadata=ObjectMeta(name="fleet")))
    fleet.put_binding(ManagedClusterSetBinding(metadata=ObjectMeta(namespace="apps", name="fleet")))
    for index in range(clusters):
        fleet.put_cluster(cluster(index))
    for index in range(placements):
        one = placement(index, want, **spec)
        fleet.put_placement(one)
        write(fleet, ("apps", one.metadata.name))
    return fleet


def write(fleet: Fleet, key: PlacementKey) -> Outcome:
    """Decide, and take the decision back in as a controller's watch would."""
    outcome = decide(fleet, key, NOW)
    assert outcome is not None
    for part in outcome.slices:
        fleet.decide((key[0], part.name), DecidedClusters(key, part.clusters))
    return outcome


def best_of(times: int, work: Callable[[], object]) -> float:
    """Return the milliseconds of the fastest of several runs."""
    times = []
    for _ in range(times):
        gc.collect()
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times) * 1000


def row(name: str, took: float, reference: float | None) -> None:
    """Print a figure beside that of OCM."""
    beside = f"{reference:10.2f} {reference / took:8.1f}x" if reference else ""
    print(f"  {name:44} {took:10.3f} {beside}")


def passes(most: int) -> None:
    """Measure one pass, for each size and number of placements."""
    for (size, want), figures in PASSES.items():
        if size > most:
            continue
        requested = "all" if want is None else f"{want}"
        for count, reference in zip((1, 10, 100), figures, strict=True):
            fleet = fleet_of(size, count, want)
            first = ("apps", "placement-000")
            name = f"{size} clusters, {count} placements, {requested}"
            row(f"{name}: warm", best_of(5, partial(decide, fleet, first, NOW)), reference)
            if count == 1:
                row(f"{name}: cold", best_of(3, partial(cold, fleet)), reference)
                row(f"{name}: from nothing", best_of(3, partial(scratch, fleet)), reference)


def cold(fleet: Fleet) -> None:
    """Make the one placement forget its shape, and decide."""
    key, placement = next(iter(fleet.placements.items()))
    fleet.remove_placement(key)
    fleet.put_placement(placement)
    decide(fleet, key, NOW)


def scratch(fleet: Fleet) -> None:
    """Decide without anything kept."""
    schedule(inputs(fleet, next(iter(fleet.placements.values())), NOW))


def events(most: int) -> None:
    """Measure one changed cluster until every placement has decided again."""
    for (size, count), reference in EVENTS.items():
        if size > most:
            continue
        fleet = fleet_of(size, count, 10)
        row(f"{size} clusters, {count} placements", best_of(5, Event(fleet)), reference)


class Event:
    """One cluster changes a label, and every placement decides again."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._turns = itertools.count()

    def __call__(self) -> None:
        """Let it happen once more."""
        affected = self._fleet.put_cluster(cluster(7, label=str(next(self._turns))))
        assert len(affected) == len(self._fleet.placements)
        for key in affected:
            decide(self._fleet, key, NOW)


def shapes(most: int) -> None:
    """Measure the same event when no two placements ask the same."""
    for size, count in ((1000, 100), (10000, 100)):
        if size > most:
            continue
        fleet = fleet_of(size, 0, 10)
        for index in range(count):
            extra = Toleration(key=f"key-{index}", operator="Exists")
            one = placement(index, 10)
            spec = PlacementSpec(number_of_clusters=10, tolerations=(*TOLERATIONS, extra))
            fleet.put_placement(Placement(metadata=one.metadata, spec=spec))
            write(fleet, ("apps", one.metadata.name))
        took = best_of(5, Event(fleet))
        row(f"{size} clusters, {count} shapes", took, EVENTS[size, count])


def variants(most: int) -> None:
    """Measure a pass with predicates, with scores of clusters, and with many taints."""
    for name, (spec, small, large) in VARIANTS.items():
        for size, reference in ((1000, small), (10000, large)):
            if size > most:
                continue
            fleet = fleet_of(size, 1, None, **spec)
            row(f"{name}, {size}: cold", best_of(3, partial(cold, fleet)), reference)
    for size, reference in ((1000, 22.0), (10000, 256.0)):
        if size <= most:
            took = best_of(3, partial(renewed, size))
            row(f"CEL predicate, {size}: cold, clusters new", took, reference)
    for size, reference in ((1000, 31.0), (10000, 331.0)):
        if size <= most:
            row(f"10 taints x 10 tolerations, {size}: cold", best_of(3, tainted(size)), reference)


def renewed(size: int) -> None:
    """Decide by an expression over clusters that no expression has seen; making them counts."""
    fleet_of(size, 1, None, predicates=BY_CEL)


def tainted(size: int) -> Callable[[], None]:
    """Give every cluster ten taints of its own age, each tolerated for a while."""
    fleet = fleet_of(0, 0, None)
    for index in range(size):
        marks = tuple(
            Taint(key=one.key, effect=one.effect, time_added=ADDED + timedelta(milliseconds=index))
            for one in MANY_TAINTS
        )
        fleet.put_cluster(cluster(index, taints=marks))
    spec = PlacementSpec(tolerations=MANY_TOLERATIONS)
    fleet.put_placement(Placement(metadata=ObjectMeta(namespace="apps", name="p"), spec=spec))
    return partial(cold, fleet)


def lose(fleet: Fleet, lost: SilenceClusters) -> None:
    """Let clusters stop renewing their leases in a copy, and all placements decide and write."""
    copy = fleet.copy()
    for key in lost.apply(copy, NOW):
        write(copy, key)


def outages(most: int) -> None:
    """Measure a tenth of the fleet lost together: all placements decide, and a forecast of it."""
    for size, count in ((1000, 100), (10000, 100)):
        if size > most:
            continue
        fleet = fleet_of(size, count, 10)
        lost = SilenceClusters(from_object({"matchLabels": {"region": "region-7"}}))
        row(
            f"{size} clusters, {count} placements, copied first",
            best_of(3, partial(lose, fleet, lost)),
            None,
        )
        forecast = partial(whatif, fleet, [lost], NOW, NOW + timedelta(hours=1))
        row(f"{size} clusters, {count} placements: what-if, an hour", best_of(3, forecast), None)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fleets of up to 1000 clusters")
    most = 1000 if parser.parse_args().quick else 10_000
    print(f"  {'':44} {'sully ms':>10} {'reference':>10} {'faster':>9}")
    for title, measure in (
        ("one pass", passes),
        ("variants of a pass, all feasible", variants),
        ("one cluster event, all placements decide again", events),
        ("the same, no two placements alike", shapes),
        ("a tenth of the clusters unreachable together", outages),
    ):
        print(title)
        measure(most)


if __name__ == "__main__":
    main()
