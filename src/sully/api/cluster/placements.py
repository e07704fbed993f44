"""Placement and PlacementDecision: resources, and the warnings about what cannot work.

OCM accepts placements that it then cannot schedule. They are accepted here too, but the
author gets a warning immediately, with the text that the placement's status will have
(placement_problems.py).
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from sully.api.cluster.columns import AGE, CLUSTER_VERBS, condition_status, printed
from sully.api.cluster.placement_problems import placement_problems
from sully.api.cluster.schemas import package
from sully.api.cluster.strategy import MOST_WARNINGS, CustomStatusStrategy, CustomStrategy
from sully.api.cluster.types import GROUP
from sully.api.core.columns import NAME, plain
from sully.machinery.strategy import ResourceType, Version, WriteContext

Obj = dict[str, Any]


class PlacementStrategy(CustomStrategy, frozen=True):
    """Writes to placements."""

    def warnings(self, obj: Obj, old: Obj | None, ctx: WriteContext) -> Iterable[str]:
        """Warn of what will not work."""
        if not ctx.compat.warns_about_placements:
            return ()
        return islice(placement_problems(obj["spec"]), MOST_WARNINGS)


def from_first_version(obj: Obj) -> Obj:
    """Add the spec that a placement of the first version may omit."""
    return obj if "spec" in obj else {**obj, "spec": {}}


PLACEMENTS = ResourceType(
    GROUP,
    "Placement",
    "placements",
    "placement",
    namespaced=True,
    versions=(
        Version("v1beta1", package("v1beta1"), unconditional_update=False, structural=True),
        Version(
            "v1alpha1",
            package("v1alpha1"),
            to_stored=from_first_version,
            unconditional_update=False,
            structural=True,
        ),
    ),
    strategy=PlacementStrategy(version="v1beta1", kind="Placement"),
    status=CustomStatusStrategy(version="v1beta1", kind="Placement"),
    columns=(
        NAME,
        condition_status("Succeeded", "PlacementSatisfied"),
        condition_status("Reason", "PlacementSatisfied", "reason"),
        printed(
            "SelectedClusters",
            ".status.numberOfSelectedClusters",
            plain(lambda obj: (obj.get("status") or {}).get("numberOfSelectedClusters")),
            holds="integer",
        ),
    ),
    verbs=CLUSTER_VERBS,
)

DECISIONS = ResourceType(
    GROUP,
    "PlacementDecision",
    "placementdecisions",
    "placementdecision",
    namespaced=True,
    versions=(Version("v1beta1", package("v1beta1"), unconditional_update=False, structural=True),),
    strategy=CustomStrategy(version="v1beta1", kind="PlacementDecision"),
    status=CustomStatusStrategy(version="v1beta1", kind="PlacementDecision"),
    columns=(NAME, AGE),
    verbs=CLUSTER_VERBS,
)
