"""Placements and their decisions as frozen values; the rest of the group is in types.py."""

from datetime import datetime

from msgspec import field

from sully.api.cluster.types import LabelSelector, LabelSelectorRequirement
from sully.machinery.meta import Condition, ObjectMeta, Wire


class ClaimSelector(Wire, frozen=True, kw_only=True):
    """Tests on the claims of a cluster that must all hold."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class CelSelector(Wire, frozen=True, kw_only=True):
    """Expressions over the whole cluster that must all be true."""

    cel_expressions: tuple[str, ...] = ()


class RequiredClusterSelector(Wire, frozen=True, kw_only=True):
    """Parts that must all match."""

    label_selector: LabelSelector = LabelSelector()
    claim_selector: ClaimSelector = ClaimSelector()
    cel_selector: CelSelector = CelSelector()


class ClusterPredicate(Wire, frozen=True, kw_only=True):
    """One way for a cluster to qualify."""

    required_cluster_selector: RequiredClusterSelector = RequiredClusterSelector()


class AddOnScore(Wire, frozen=True, kw_only=True):
    """A score in an AddOnPlacementScore."""

    resource_name: str
    score_name: str


class ScoreCoordinate(Wire, frozen=True, kw_only=True):
    """Where a score comes from."""

    type: str = "BuiltIn"
    built_in: str = ""
    add_on: AddOnScore | None = None


class PrioritizerConfig(Wire, frozen=True, kw_only=True):
    """One score and how much it counts; 0 switches it off."""

    score_coordinate: ScoreCoordinate | None = None
    weight: int = 1


class PrioritizerPolicy(Wire, frozen=True, kw_only=True):
    """Which scores count; an empty mode is Additive."""

    mode: str = ""
    configurations: tuple[PrioritizerConfig, ...] = ()


class SpreadConstraint(Wire, frozen=True, kw_only=True):
    """How evenly clusters spread over a label or claim."""

    topology_key: str
    topology_key_type: str
    max_skew: int = 1
    when_unsatisfiable: str = "ScheduleAnyway"


class SpreadPolicy(Wire, frozen=True, kw_only=True):
    """Constraints on how clusters spread."""

    spread_constraints: tuple[SpreadConstraint, ...] = ()


class Toleration(Wire, frozen=True, kw_only=True):
    """Which taints a placement puts up with, and for how long."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class GroupClusterSelector(Wire, frozen=True, kw_only=True):
    """Which selected clusters belong to a decision group."""

    label_selector: LabelSelector = LabelSelector()
    claim_selector: ClaimSelector = ClaimSelector()


class DecisionGroup(Wire, frozen=True, kw_only=True):
    """A named part of the decisions."""

    group_name: str
    group_cluster_selector: GroupClusterSelector = GroupClusterSelector()


class GroupStrategy(Wire, frozen=True, kw_only=True):
    """How decisions are cut into groups."""

    decision_groups: tuple[DecisionGroup, ...] = ()
    clusters_per_decision_group: int | str = "100%"


class DecisionStrategy(Wire, frozen=True, kw_only=True):
    """How decisions are presented."""

    group_strategy: GroupStrategy = GroupStrategy()


class PlacementSpec(Wire, frozen=True, kw_only=True):
    """How many clusters of which kind a placement selects."""

    cluster_sets: tuple[str, ...] = ()
    number_of_clusters: int | None = None
    predicates: tuple[ClusterPredicate, ...] = ()
    prioritizer_policy: PrioritizerPolicy = PrioritizerPolicy()
    spread_policy: SpreadPolicy = SpreadPolicy()
    tolerations: tuple[Toleration, ...] = ()
    decision_strategy: DecisionStrategy = DecisionStrategy()
    sort_by: str = "ClusterName"
    score_rate_limit: str = "1m"


class DecisionGroupStatus(Wire, frozen=True, kw_only=True):
    """Which decisions make a group."""

    decision_group_index: int = 0
    decision_group_name: str = ""
    decisions: tuple[str, ...] = ()
    cluster_count: int = 0


class PlacementStatus(Wire, frozen=True, kw_only=True):
    """What was selected, and what is in the way."""

    number_of_selected_clusters: int = 0
    decision_groups: tuple[DecisionGroupStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()
    last_score_update_time: datetime | None = None


class Placement(Wire, frozen=True, kw_only=True):
    """A wish for clusters."""

    metadata: ObjectMeta
    spec: PlacementSpec = PlacementSpec()
    status: PlacementStatus = PlacementStatus()


class ClusterDecision(Wire, frozen=True, kw_only=True):
    """One selected cluster."""

    cluster_name: str
    reason: str
    score: int | None = None


class PlacementDecisionStatus(Wire, frozen=True, kw_only=True):
    """Selected clusters, at most a hundred."""

    decisions: tuple[ClusterDecision, ...] = field(default_factory=tuple)


class PlacementDecision(Wire, frozen=True, kw_only=True):
    """A part of what a placement selected."""

    metadata: ObjectMeta
    status: PlacementDecisionStatus = PlacementDecisionStatus()
