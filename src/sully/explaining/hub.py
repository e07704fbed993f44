"""A snapshot of clusters and placements, as explanations read it."""

from __future__ import annotations

from functools import cached_property

from sully.api.cluster.types import ManagedCluster
from sully.controllers.clusters.kinds import POLICIES
from sully.domain.explaining.clustermarks import ClusterMarks
from sully.domain.placement.behaviour import REFERENCE, Behaviour, improved
from sully.views.fleet import Caches, FleetView
from sully.views.fleetkinds import BINDINGS, CLUSTERS, DECISIONS, PLACEMENTS, SCORES, SETS
from sully.views.snapshot import Snapshot, StoppedClock


class Hub:
    """The clusters and placements of one moment."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.now = snapshot.taken

    @cached_property
    def behaviour(self) -> Behaviour:
        """Return how this hub places: as ours does if it has our kinds, else as the reference."""
        return REFERENCE if self.snapshot.gap(POLICIES) is not None else improved()

    @cached_property
    def view(self) -> FleetView:
        """Return the clusters and placements."""
        of = self.snapshot.of
        caches = Caches(
            clusters=of(CLUSTERS),
            sets=of(SETS),
            bindings=of(BINDINGS),
            placements=of(PLACEMENTS),
            decisions=of(DECISIONS),
            scores=of(SCORES),
        )
        return FleetView(caches, clock=StoppedClock(self.now), behaviour=self.behaviour)

    @cached_property
    def marks(self) -> ClusterMarks:
        """Return who set which taint on which cluster."""
        return ClusterMarks(self.now, self.snapshot.of(POLICIES).values())

    @cached_property
    def clusters(self) -> dict[str, ManagedCluster]:
        """Return all clusters by name."""
        return {each.metadata.name: each for each in self.snapshot.of(CLUSTERS).values()}
