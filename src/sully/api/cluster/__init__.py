"""cluster.open-cluster-management.io: managed clusters, their sets, and placements on them.

Owns: the kinds of the group, which are custom resources in OCM, and their admission.
Never: decides which cluster a placement gets (domain), or whether a cluster is healthy.
Start at: types.py, then strategy.py, then clusters.py.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.machinery.schema import Tables
    from sully.machinery.strategy import ResourceType

# The first version of placements is only in the design they come from.
SUPERSET_VERSIONS: Mapping[str, tuple[str, ...]] = {"Placement": ("v1alpha1",)}


def load_tables(tables: "Tables") -> None:
    """Load the types of the group."""
    # Late imports, also below: importing a type need not load all the rules about it.
    from sully.api.cluster.schemas import load_tables

    load_tables(tables)


def resources() -> Iterable["ResourceType"]:
    """Return the resources of the group."""
    from sully.api.cluster.clusters import CLUSTERS
    from sully.api.cluster.placements import DECISIONS, PLACEMENTS
    from sully.api.cluster.scores import CLAIMS, SCORES
    from sully.api.cluster.sets import BINDINGS, SETS

    return (CLUSTERS, SETS, BINDINGS, PLACEMENTS, DECISIONS, SCORES, CLAIMS)
