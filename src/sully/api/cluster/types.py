"""Managed clusters, their sets, bindings, placements, decisions and scores as frozen values.

Controllers, views and domain read these. The tables (`*.fields`) say the same about the wire and
carry the descriptions. Amounts stay texts, times are in UTC or with the offset they were written
with. Placements have one shape in both versions.
"""

from datetime import datetime

from msgspec import field

from sully.machinery.meta import Condition, ObjectMeta, Wire

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
EFFECTS = (NO_SELECT, PREFER_NO_SELECT, NO_SELECT_IF_NEW)
BUILT_INS = ("Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory")
"""The prioritizers a placement can name."""


class LabelSelectorRequirement(Wire, frozen=True, kw_only=True):
    """One test on a label or claim."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True, kw_only=True):
    """Tests that must all hold; without any: everything."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Taint(Wire, frozen=True, kw_only=True):
    """A mark that keeps a cluster out of placements which do not tolerate it."""

    key: str
    value: str = ""
    effect: str
    time_added: datetime | None = None


class ClientConfig(Wire, frozen=True, kw_only=True):
    """How to reach a cluster's API server."""

    url: str
    ca_bundle: str = ""


class ManagedClusterSpec(Wire, frozen=True, kw_only=True):
    """What the hub wants of a cluster."""

    managed_cluster_client_configs: tuple[ClientConfig, ...] = ()
    hub_accepts_client: bool = False
    lease_duration_seconds: int = 60
    taints: tuple[Taint, ...] = ()


class ClusterClaimValue(Wire, frozen=True, kw_only=True):
    """A fact that a cluster tells about itself."""

    name: str = ""
    value: str = ""


class ManagedClusterVersion(Wire, frozen=True, kw_only=True):
    """What a cluster runs."""

    kubernetes: str = ""


class ClusterNamespace(Wire, frozen=True, kw_only=True):
    """A namespace on a cluster that a set manages."""

    name: str
    cluster_set: str
    conditions: tuple[Condition, ...] = ()


class ManagedClusterStatus(Wire, frozen=True, kw_only=True):
    """What is known of a cluster. Amounts may be numbers on the wire."""

    conditions: tuple[Condition, ...] = ()
    capacity: dict[str, str | int] = field(default_factory=dict)
    allocatable: dict[str, str | int] = field(default_factory=dict)
    version: ManagedClusterVersion = ManagedClusterVersion()
    cluster_claims: tuple[ClusterClaimValue, ...] = ()
    managed_namespaces: tuple[ClusterNamespace, ...] = ()


class ManagedCluster(Wire, frozen=True, kw_only=True):
    """A cluster that a hub knows."""

    metadata: ObjectMeta
    spec: ManagedClusterSpec = ManagedClusterSpec()
    status: ManagedClusterStatus = ManagedClusterStatus()


class ClusterSelector(Wire, frozen=True, kw_only=True):
    """How a set finds its clusters; a LabelSelector without selector finds none."""

    selector_type: str = "ExclusiveClusterSetLabel"
    label_selector: LabelSelector | None = None


class ManagedNamespace(Wire, frozen=True, kw_only=True):
    """A namespace that a set manages on all of its clusters."""

    name: str


class ManagedClusterSetSpec(Wire, frozen=True, kw_only=True):
    """Which clusters belong to a set."""

    cluster_selector: ClusterSelector = ClusterSelector()
    managed_namespaces: tuple[ManagedNamespace, ...] = ()


class ConditionsStatus(Wire, frozen=True, kw_only=True):
    """A status that consists of conditions."""

    conditions: tuple[Condition, ...] = ()


class ManagedClusterSet(Wire, frozen=True, kw_only=True):
    """A group of clusters."""

    metadata: ObjectMeta
    spec: ManagedClusterSetSpec = ManagedClusterSetSpec()
    status: ConditionsStatus = ConditionsStatus()


class ManagedClusterSetBindingSpec(Wire, frozen=True, kw_only=True):
    """Which set a namespace may use."""

    cluster_set: str = ""


class ManagedClusterSetBinding(Wire, frozen=True, kw_only=True):
    """The permission to place on a set from a namespace."""

    metadata: ObjectMeta
    spec: ManagedClusterSetBindingSpec = ManagedClusterSetBindingSpec()
    status: ConditionsStatus = ConditionsStatus()


class Score(Wire, frozen=True, kw_only=True):
    """A named number for one cluster, from -100 to 100."""

    name: str
    value: int


class AddOnPlacementScoreStatus(Wire, frozen=True, kw_only=True):
    """Scores that somebody outside computes; without `valid_until` they never expire."""

    conditions: tuple[Condition, ...] = ()
    scores: tuple[Score, ...] = ()
    valid_until: datetime | None = None


class AddOnPlacementScore(Wire, frozen=True, kw_only=True):
    """Scores of the cluster whose name is the namespace."""

    metadata: ObjectMeta
    status: AddOnPlacementScoreStatus = AddOnPlacementScoreStatus()


class ClusterClaimSpec(Wire, frozen=True, kw_only=True):
    """The value of a claim."""

    value: str = ""


class ClusterClaim(Wire, frozen=True, kw_only=True):
    """A fact about the cluster it lives on."""

    metadata: ObjectMeta
    spec: ClusterClaimSpec = ClusterClaimSpec()
