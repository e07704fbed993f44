"""A cluster as placements see it: labels, claims, taints, amounts, scores, and its whole self.

Everything that is derived from a cluster is derived once for each state of it and kept here. A
change of the cluster or of its scores makes another candidate, so whatever was concluded from one
stays true of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sully.api.cluster.types import AddOnPlacementScore, ManagedCluster
from sully.machinery.cel.environments.clusters import ClusterValue, cluster_input
from sully.machinery.formats.quantity import QuantityError, parse_quantity

NO_SCORES: Mapping[str, AddOnPlacementScore] = {}


class Candidate:
    """One state of a cluster and of its add-on scores."""

    __slots__ = (
        "_activation",
        "_amounts",
        "claims",
        "cluster",
        "is_terminating",
        "labels",
        "name",
        "scores",
        "taints",
    )

    def __init__(
        self, cluster: ManagedCluster, scores: Mapping[str, AddOnPlacementScore] = NO_SCORES
    ) -> None:
        self.name = cluster.metadata.name
        self.cluster = cluster
        self.is_terminating = cluster.metadata.deletion_timestamp is not None
        """It has a deletion timestamp."""
        self.scores = scores
        self.labels = cluster.metadata.labels
        self.taints = cluster.spec.taints
        self.claims = {claim.name: claim.value for claim in cluster.status.cluster_claims}
        self._amounts: dict[str, float | None] | None = None
        self._activation: dict[str, ClusterValue] | None = None

    def same_inputs(self, other: Candidate) -> bool:
        """Report whether everything except CEL gives the same result for both."""
        mine, others = self.cluster.status, other.cluster.status
        return (
            self.taints == other.taints
            and self.labels == other.labels
            and self.claims == other.claims
            and self.is_terminating == other.is_terminating
            and mine.allocatable == others.allocatable
            and mine.capacity == others.capacity
        )

    def allocatable(self, resource: str) -> float | None:
        """Return how much of a resource there is to use; None unless its capacity is known too."""
        if self._amounts is None:
            self._amounts = {}
        if resource not in self._amounts:
            self._amounts[resource] = self._allocatable(resource)
        return self._amounts[resource]

    def _allocatable(self, resource: str) -> float | None:
        status = self.cluster.status
        amount = status.allocatable.get(resource)
        if amount is None or resource not in status.capacity:
            return None
        try:
            return parse_quantity(str(amount)).as_float()
        except QuantityError:
            return None

    def activation(self) -> dict[str, ClusterValue]:
        """Return the cluster as CEL expressions see it."""
        if self._activation is None:
            # Without `apiVersion` and `kind`, which OCM does not have in its cache.
            obj = msgspec.to_builtins(self.cluster)
            # A field with the default of the schema was absent, and exists nevertheless.
            lease = {"leaseDurationSeconds": self.cluster.spec.lease_duration_seconds}
            obj["spec"] = lease | obj.get("spec", {})
            self._activation = cluster_input(obj, self._find_scores)
        return self._activation

    def _find_scores(self, name: str) -> list[dict[str, Any]] | None:
        scores = self.scores.get(name)
        if scores is None:
            return None
        return [{"name": score.name, "value": score.value} for score in scores.status.scores]
