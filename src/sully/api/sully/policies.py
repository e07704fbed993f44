"""ClusterTaintPolicy: what a write may do, and how policies are printed.

What a policy does to a cluster is decided in `domain/clusters/policies.py`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from sully.api.cluster.types import EFFECTS, HEALTH_KEYS
from sully.api.core import generations
from sully.api.core.checks import between, formatted, label_key, label_selector, one_of
from sully.api.resource.validation.conditions import validate_conditions
from sully.api.sully import SULLY
from sully.api.sully.columns import table
from sully.api.sully.device_policy_validation import validate_amount, validate_flaps
from sully.api.sully.types import GROUP, POLICY_KIND, VERSION, ClusterTaintPolicyStatus
from sully.machinery.fields import FieldError, Path
from sully.machinery.names import label_value_problems
from sully.machinery.strategy import ResourceType, Strategy, Version, WriteContext

Obj = dict[str, Any]
Errors = Iterator[FieldError]

RULES_MAX = 64
LONGEST_DELAY = 365 * 24 * 3600
_STATUSES = ("True", "False", "Unknown")


class PolicyStrategy(Strategy):
    """Writes to policies."""

    def prepare_create(self, obj: Obj, ctx: WriteContext) -> None:
        """Start without a status."""
        obj["status"] = {}
        generations.start(obj)

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the status, count changes."""
        obj["status"] = old.get("status", {})
        # An empty selector is not an absent one.
        generations.follow(obj, old, bump=obj["spec"] != old["spec"])

    def validate_create(self, obj: Obj, ctx: WriteContext) -> Errors:
        """Check a new policy."""
        return validate_policy(obj["spec"], Path("spec"))

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check a changed policy."""
        return validate_policy(obj["spec"], Path("spec"))


class PolicyStatusStrategy(Strategy):
    """Writes to the status endpoint."""

    def prepare_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> None:
        """Keep the spec."""
        obj["spec"] = old["spec"]
        generations.follow(obj, old, bump=False)

    def validate_update(self, obj: Obj, old: Obj, ctx: WriteContext) -> Errors:
        """Check conditions."""
        status = msgspec.convert(obj.get("status", {}), ClusterTaintPolicyStatus)
        return validate_conditions(status.conditions, Path("status").child("conditions"))


def validate_policy(spec: Obj, at: Path) -> Errors:
    """Yield everything wrong with a policy."""
    yield from label_selector(spec.get("clusterSelector"), at.child("clusterSelector"))
    rules, where = spec.get("rules") or [], at.child("rules")
    if not rules:
        yield where.required("a policy without rules does nothing")
    if len(rules) > RULES_MAX:
        yield where.too_many(len(rules), RULES_MAX)
    for position, rule in enumerate(rules[:RULES_MAX]):
        yield from _rule(rule, where.index(position))
    yield from validate_flaps(spec.get("flaps"), at.child("flaps"))
    if (most := spec.get("maxUnavailable")) is not None:
        yield from validate_amount(most, at.child("maxUnavailable"))


def _rule(rule: Obj, at: Path) -> Errors:
    condition, where = rule["condition"], at.child("condition")
    if condition["type"]:
        yield from label_key(condition["type"], where.child("type"))
    else:
        yield where.child("type").required()
    yield from one_of(condition["status"], _STATUSES, where.child("status"), required=True)
    for position, status in enumerate(condition.get("orStatuses") or ()):
        at_status = where.child("orStatuses").index(position)
        yield from one_of(status, _STATUSES, at_status, required=True)
        if status == condition["status"]:
            yield at_status.duplicate(status)
    for delay in ("setAfterSeconds", "clearAfterSeconds"):
        yield from between(rule.get(delay, 0), 0, LONGEST_DELAY, at.child(delay))
    yield from _taint(rule["taint"], at.child("taint"))


def _taint(taint: Obj, at: Path) -> Errors:
    if not taint["key"]:
        yield at.child("key").required()
    elif taint["key"] in HEALTH_KEYS:
        # Two owners of one taint would set and clear it against each other.
        yield at.child("key").invalid(taint["key"], "is set by the hub from the cluster's health")
    else:
        yield from label_key(taint["key"], at.child("key"))
    yield from formatted(taint.get("value", ""), label_value_problems, at.child("value"))
    yield from one_of(taint["effect"], EFFECTS, at.child("effect"), required=True)


POLICIES = ResourceType(
    group=GROUP,
    kind=POLICY_KIND,
    plural="clustertaintpolicies",
    singular="clustertaintpolicy",
    namespaced=False,
    versions=(Version(VERSION, SULLY, delete_returns_object=True),),
    strategy=PolicyStrategy(reset=(("status",),)),
    status=PolicyStatusStrategy(reset=(("metadata",), ("spec",))),
    short_names=("ctp",),
    columns=table(POLICY_KIND),
)
