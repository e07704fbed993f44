"""Policies that turn conditions of clusters into taints, as frozen values."""

from sully.api.cluster.types import ConditionsStatus, LabelSelector
from sully.machinery.meta import ObjectMeta, Wire

POLICY_KIND = "ClusterTaintPolicy"


class PolicyCondition(Wire, frozen=True, kw_only=True):
    """A condition with the status that counts; a missing one has the status Unknown."""

    type: str
    status: str


class PolicyTaint(Wire, frozen=True, kw_only=True):
    """A taint as a cluster gets it."""

    key: str
    value: str = ""
    effect: str


class PolicyRule(Wire, frozen=True, kw_only=True):
    """One condition and the taint it becomes, with how long either side must last first."""

    condition: PolicyCondition
    set_after_seconds: int = 0
    clear_after_seconds: int = 0
    taint: PolicyTaint


class ClusterTaintPolicySpec(Wire, frozen=True, kw_only=True):
    """Which conditions become which taints, and where; without a selector: nowhere."""

    cluster_selector: LabelSelector | None = None
    rules: tuple[PolicyRule, ...] = ()


class ClusterTaintPolicy(Wire, frozen=True, kw_only=True):
    """A policy."""

    metadata: ObjectMeta
    spec: ClusterTaintPolicySpec
    status: ConditionsStatus = ConditionsStatus()
