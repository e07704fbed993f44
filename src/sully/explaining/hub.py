"""A snapshot of clusters and placements, as explanations read it."""

from __future__ import annotations

from functools import cached_property

from sully.api.cluster.types import ManagedCluster
from sully.domain.explaining.clustermarks import ClusterMarks
from sully.domain.placement.options import PlacementOptions
from sully.views.fleet import FleetView
from sully.views.fleet_kinds import CLUSTERS, POLICIES
from sully.views.snapshot.snapshot import Snapshot


class Hub:
    """The clusters and placements of one moment."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.now = snapshot.taken

    @property
    def options(self) -> PlacementOptions:
        """Return how this hub places."""
        return self.view.fleet.options

    @property
    def view(self) -> FleetView:
        """Return the clusters and placements."""
        return self.snapshot.fleet

    @cached_property
    def marks(self) -> ClusterMarks:
        """Return who set which taint on which cluster."""
        return ClusterMarks(self.now, self.snapshot.of(POLICIES).values())

    @cached_property
    def clusters(self) -> dict[str, ManagedCluster]:
        """Return all clusters by name."""
        return {each.metadata.name: each for each in self.snapshot.of(CLUSTERS).values()}
