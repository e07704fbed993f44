"""ClusterTaintPolicy: what a write may do, and how policies are printed.

What a policy does to a cluster is decided in `domain/clusters/policies.py`.
"""

from typing import Any

from sully.api.cluster.types import CLUSTER_EFFECTS, HEALTH_KEYS
from sully.api.core.checks import Errors, between, label_selector, one_of
from sully.api.sully.checks import (
    CONDITION_STATUSES,
    key_and_value,
    required_key,
    validate_amount,
    validate_flaps,
    validate_items,
)
from sully.api.sully.columns import table
from sully.api.sully.strategies import (
    NO_STATUS,
    ONLY_STATUS,
    SPEC,
    VERSIONS,
    AuthoredStrategy,
    StatusStrategy,
)
from sully.api.sully.types import GROUP, POLICY_KIND
from sully.machinery.fields import Path
from sully.machinery.strategy import ResourceType, WriteContext

Obj = dict[str, Any]

RULES_MAX = 64
LONGEST_DELAY = 365 * 24 * 3600


class PolicyStrategy(AuthoredStrategy, frozen=True):
    """Writes to policies."""

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a policy."""
        return validate_policy(obj["spec"], SPEC)


def validate_policy(spec: Obj, at: Path) -> Errors:
    """Yield everything wrong with a policy."""
    yield from label_selector(spec.get("clusterSelector"), at.child("clusterSelector"))
    rules, where = spec.get("rules") or [], at.child("rules")
    if not rules:
        yield where.required("a policy without rules does nothing")
    yield from validate_items(rules, RULES_MAX, where, _rule)
    yield from validate_flaps(spec.get("flaps"), at.child("flaps"))
    if (most := spec.get("maxUnavailable")) is not None:
        yield from validate_amount(most, at.child("maxUnavailable"))


def _rule(rule: Obj, at: Path) -> Errors:
    condition, where = rule["condition"], at.child("condition")
    yield from required_key(condition["type"], where.child("type"))
    yield from one_of(condition["status"], CONDITION_STATUSES, where.child("status"), required=True)
    for position, status in enumerate(condition.get("orStatuses") or ()):
        at_status = where.child("orStatuses").index(position)
        yield from one_of(status, CONDITION_STATUSES, at_status, required=True)
        if status == condition["status"]:
            yield at_status.duplicate(status)
    for delay in ("setAfterSeconds", "clearAfterSeconds"):
        yield from between(rule.get(delay, 0), 0, LONGEST_DELAY, at.child(delay))
    yield from _taint(rule["taint"], at.child("taint"))


def _taint(taint: Obj, at: Path) -> Errors:
    if taint["key"] in HEALTH_KEYS:
        # Two owners of one taint would set and clear it against each other.
        yield at.child("key").invalid(taint["key"], "is set by the hub from the cluster's health")
    yield from key_and_value(taint, at)
    yield from one_of(taint["effect"], CLUSTER_EFFECTS, at.child("effect"), required=True)


POLICIES = ResourceType(
    group=GROUP,
    kind=POLICY_KIND,
    plural="clustertaintpolicies",
    singular="clustertaintpolicy",
    namespaced=False,
    versions=VERSIONS,
    strategy=PolicyStrategy(reset=NO_STATUS),
    status=StatusStrategy(reset=ONLY_STATUS),
    short_names=("ctp",),
    columns=table(POLICY_KIND),
)
