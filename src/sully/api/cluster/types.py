"""Managed clusters, their sets, bindings, placements, decisions and scores as frozen values.

Controllers, views and domain read these. They are generated from the tables (`*.fields`), which
describe every field. Amounts stay as they were written, times are in UTC or with the offset they
were written with. Placements have one shape in both versions.
"""

from sully.api.cluster._generated.types import *  # noqa: F403 -- this module exports what is generated
from sully.machinery.meta import LabelSelector as LabelSelector
from sully.machinery.meta import LabelSelectorRequirement as LabelSelectorRequirement

GROUP = "cluster.open-cluster-management.io"
SET_LABEL = f"{GROUP}/clusterset"
"""On a cluster: the one set it belongs to exclusively."""
PLACEMENT_LABEL = f"{GROUP}/placement"
GROUP_INDEX_LABEL = f"{GROUP}/decision-group-index"
GROUP_NAME_LABEL = f"{GROUP}/decision-group-name"
CLUSTER_NAME_LABEL = "open-cluster-management.io/cluster-name"
DEFAULT_SET, GLOBAL_SET = "default", "global"
UNAVAILABLE = f"{GROUP}/unavailable"
UNREACHABLE = f"{GROUP}/unreachable"
HEALTH_KEYS = (UNAVAILABLE, UNREACHABLE)
"""The taints that only health sets and clears."""
NO_SELECT, PREFER_NO_SELECT, NO_SELECT_IF_NEW = "NoSelect", "PreferNoSelect", "NoSelectIfNew"
CLUSTER_EFFECTS = (NO_SELECT, PREFER_NO_SELECT, NO_SELECT_IF_NEW)
BUILT_INS = ("Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory")
"""The prioritizers a placement can name."""
