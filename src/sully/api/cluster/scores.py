"""AddOnPlacementScore and ClusterClaim: facts and scores that clusters are chosen by."""

from sully.api.cluster.columns import AGE, CLUSTER_VERBS
from sully.api.cluster.schemas import package
from sully.api.cluster.strategy import CustomStatusStrategy, CustomStrategy
from sully.api.cluster.types import GROUP
from sully.api.core.columns import NAME
from sully.machinery.strategy import ResourceType, Version

_VERSIONS = (Version("v1alpha1", package("v1alpha1"), unconditional_update=False, structural=True),)

SCORES = ResourceType(
    GROUP,
    "AddOnPlacementScore",
    "addonplacementscores",
    "addonplacementscore",
    namespaced=True,
    versions=_VERSIONS,
    strategy=CustomStrategy(version="v1alpha1", kind="AddOnPlacementScore"),
    status=CustomStatusStrategy(version="v1alpha1", kind="AddOnPlacementScore"),
    columns=(NAME, AGE),
    verbs=CLUSTER_VERBS,
)

CLAIMS = ResourceType(
    GROUP,
    "ClusterClaim",
    "clusterclaims",
    "clusterclaim",
    namespaced=False,
    versions=_VERSIONS,
    strategy=CustomStrategy(version="v1alpha1", kind="ClusterClaim", reset=()),
    columns=(NAME, AGE),
    verbs=CLUSTER_VERBS,
)
