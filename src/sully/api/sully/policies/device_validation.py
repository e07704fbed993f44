"""Validation of DeviceTaintPolicies."""

from typing import Any

import msgspec

from sully.api.core.checks import Errors, dns_label, label_key, label_selector, one_of
from sully.api.resource.checks import options
from sully.api.resource.selectors import EXPRESSION_MAX, validate_expression
from sully.api.resource.types import DeviceTaintSelector
from sully.api.resource.validation.names import validate_subdomain
from sully.api.resource.validation.rules import validate_device_selector
from sully.api.sully.checks import (
    CONDITION_STATUSES,
    key_and_value,
    limited,
    required,
    required_key,
    validate_amount,
    validate_flaps,
    validate_items,
)
from sully.api.sully.durations import duration, validate_duration
from sully.api.sully.policies.prometheus_validation import validate_prometheus
from sully.api.sully.policies.proof_validation import validate_proof
from sully.machinery.cel import CompileError
from sully.machinery.cel.environments.taint_data import taint_data_environment
from sully.machinery.fields import Path
from sully.machinery.strategy import WriteContext

Obj = dict[str, Any]

SOURCES_MAX = 16
STEPS_MAX = 8
SUPPRESS_MAX = 16
LIMITS_MAX = 8
IDENTITIES_MAX = 1024
VALUES_MAX = 64
FAULTS = ("Degraded", "Unhealthy", "Unknown")
MODES = ("DryRun", "RequireApproval", "Enforce")
SEVERITIES = ("Minor", "Major", "Critical")
POLICY_EFFECTS = ("None", "NoSchedule", "NoExecute")
"""Those of Kubernetes, from weak to strong: rules of a policy work on any server."""
PARTITIONS = ("None", "ToPartitions", "ToWhole", "Both")
SCOPES = ("Fleet", "Class", "Pool", "Node", "Attribute")
KINDS_OF_SOURCES = (
    "driverTaint",
    "attributes",
    "claimCondition",
    "deviceHealth",
    "nodeCondition",
    "nodeTaint",
    "prometheus",
    "notPublished",
)
CRITERIA = (
    "driver",
    "pool",
    "device",
    "deviceClassName",
    "selectors",
    "identities",
    "nodeSelector",
)
NO_APPROVAL = "suppressed taints cannot be approved one by one: use the mode Enforce or DryRun"
NO_SOURCES = "a policy without sources does nothing"
NO_STEPS = "a policy without steps does nothing"
STEP_WEAKER = "must be stronger than the step before"
STEP_LESS = "must not be less than that of the step before"
INCOMPLETE = "sources, taint and steps must be set together, or none of them but suppress"
NO_CRITERIA = "a selector without criteria selects every device: set matchAll to true to mean that"


def validate_policy(spec: Obj, at: Path, ctx: WriteContext) -> Errors:
    """Yield everything wrong with a policy."""
    yield from one_of(spec["mode"], MODES, at.child("mode"))
    yield from one_of(spec["onDelete"], ("Delete", "Keep"), at.child("onDelete"))
    yield from one_of(spec["partitions"], PARTITIONS, at.child("partitions"))
    yield from validate_selector(spec["selector"], at.child("selector"), ctx)
    yield from label_key(spec["identityAttribute"], at.child("identityAttribute"))
    yield from _suppressions(spec, at)
    if not spec.get("suppress") or any(spec.get(name) for name in ("sources", "taint", "steps")):
        yield from _sources(spec.get("sources") or [], at.child("sources"), ctx)
        yield from key_and_value(spec.get("taint") or {}, at.child("taint"))
        yield from _steps(spec.get("steps") or [], at.child("steps"))
    for name in ("holdFor", "clearAfter"):
        yield from validate_duration(spec.get(name, ""), at.child(name))
    yield from validate_flaps(spec.get("flaps"), at.child("flaps"))
    yield from validate_proof(spec.get("proof"), at.child("proof"))
    yield from validate_items(spec.get("limits"), LIMITS_MAX, at.child("limits"), _limit)
    if (storm := spec.get("storm")) is not None:
        yield from validate_amount(storm["devices"], at.child("storm", "devices"), positive=True)
        within = at.child("storm", "within")
        yield from validate_duration(storm["within"], within, required=True)


def validate_selector(selector: Obj, at: Path, ctx: WriteContext) -> Errors:
    """Check which devices a policy or a maintenance is for."""
    if not selector.get("matchAll") and not any(name in selector for name in CRITERIA):
        yield at.required(NO_CRITERIA)
    if selector.get("matchAll") and any(name in selector for name in CRITERIA):
        yield at.child("matchAll").forbidden("must not be set with other criteria")
    names = {name: selector[name] for name in CRITERIA[:5] if name in selector}
    typed = msgspec.convert(names, DeviceTaintSelector)
    yield from validate_device_selector(typed, None, at, options(ctx))
    identities = selector.get("identities") or []
    if len(identities) > IDENTITIES_MAX:
        yield at.child("identities").too_many(len(identities), IDENTITIES_MAX)
    yield from label_selector(selector.get("nodeSelector"), at.child("nodeSelector"))


def _sources(sources: list[Obj], at: Path, ctx: WriteContext) -> Errors:
    if not sources:
        yield at.required(NO_SOURCES)
    if len(sources) > SOURCES_MAX:
        yield at.too_many(len(sources), SOURCES_MAX)
    names: set[str] = set()
    for position, source in enumerate(sources[:SOURCES_MAX]):
        where = at.index(position)
        yield from dns_label(source["name"], where.child("name"))
        if source["name"] in names:
            yield where.child("name").duplicate(source["name"])
        names.add(source["name"])
        yield from one_of(source["severity"], SEVERITIES, where.child("severity"))
        yield from _source(source, where, ctx)


def _source(source: Obj, at: Path, ctx: WriteContext) -> Errors:
    # An empty object selects, too.
    kinds = [name for name in KINDS_OF_SOURCES if source.get(name, False) is not False]
    if len(kinds) != 1:
        yield at.invalid(kinds, f"must have exactly one of {', '.join(KINDS_OF_SOURCES)}")
    for name in kinds:
        where = at.child(name)
        match name:
            case "driverTaint":
                yield from key_and_value(source[name], where)
                yield from _data_expression(source[name].get("expression", ""), where)
            case "nodeTaint":
                yield from key_and_value(source[name], where)
            case "attributes":
                expression = source[name]["expression"]
                yield from validate_expression(expression, where.child("expression"), options(ctx))
            case "claimCondition" | "nodeCondition":
                yield from _condition(source[name], where)
            case "deviceHealth":
                yield from _health(source[name], where)
            case "prometheus":
                yield from validate_prometheus(source[name], where)
            case _:
                pass  # notPublished has no fields


def _suppressions(spec: Obj, at: Path) -> Errors:
    """Check which taints of drivers have no effect: each ends at a time."""
    where = at.child("suppress")
    if spec.get("suppress") and spec["mode"] == "RequireApproval":
        yield where.forbidden(NO_APPROVAL)
    yield from validate_items(spec.get("suppress"), SUPPRESS_MAX, where, _suppression)


def _suppression(taint: Obj, at: Path) -> Errors:
    yield from key_and_value(taint, at)
    yield from _data_expression(taint.get("expression", ""), at)
    yield from required(taint, "until", at)
    yield from limited(taint, "reason", at)


def _data_expression(expression: str, at: Path) -> Errors:
    where = at.child("expression")
    if len(expression.encode()) > EXPRESSION_MAX:
        yield where.too_long(EXPRESSION_MAX)
    elif expression:
        try:
            taint_data_environment().compile(expression)
        except CompileError as error:
            yield where.invalid(expression, error.detail)


def _condition(condition: Obj, at: Path) -> Errors:
    yield from required_key(condition["type"], at.child("type"))
    yield from one_of(condition["status"], CONDITION_STATUSES, at.child("status"), required=True)


def _health(health: Obj, at: Path) -> Errors:
    for position, status in enumerate(health.get("statuses") or ()):
        yield from one_of(status, FAULTS, at.child("statuses").index(position))
    for name in ("keys", "values"):
        if len(health.get(name) or ()) > VALUES_MAX:
            yield at.child(name).too_many(len(health[name]), VALUES_MAX)


def _steps(steps: list[Obj], at: Path) -> Errors:
    if not steps:
        yield at.required(NO_STEPS)
    if len(steps) > STEPS_MAX:
        yield at.too_many(len(steps), STEPS_MAX)
    for position, step in enumerate(steps[:STEPS_MAX]):
        where = at.index(position)
        yield from one_of(step["effect"], POLICY_EFFECTS, where.child("effect"), required=True)
        yield from one_of(step["minSeverity"], SEVERITIES, where.child("minSeverity"))
        yield from validate_duration(step.get("after", ""), where.child("after"))
        if position:
            yield from _follows(step, steps[position - 1], where)


def _follows(step: Obj, before: Obj, at: Path) -> Errors:
    """Check that a step is stronger than the one before, and not earlier for the same faults."""
    order = {name: place for place, name in enumerate((*POLICY_EFFECTS, *SEVERITIES))}
    if order.get(step["effect"], 99) <= order.get(before["effect"], -1):
        yield at.child("effect").invalid(step["effect"], STEP_WEAKER)
    if order.get(step["minSeverity"], 99) < order.get(before["minSeverity"], -1):
        yield at.child("minSeverity").invalid(step["minSeverity"], STEP_LESS)
    same = step["minSeverity"] == before["minSeverity"]
    if same and duration(step.get("after", "")) < duration(before.get("after", "")):
        yield at.child("after").invalid(step.get("after", ""), STEP_LESS)


def _limit(limit: Obj, at: Path) -> Errors:
    yield from one_of(limit["scope"], SCOPES, at.child("scope"), required=True)
    yield from validate_amount(limit["maxUnavailable"], at.child("maxUnavailable"))
    for name, scope in (("deviceClassName", "Class"), ("attribute", "Attribute")):
        yield from _only_with(limit, name, scope, at)


def _only_with(limit: Obj, name: str, scope: str, at: Path) -> Errors:
    key, where = limit.get(name, ""), at.child(name)
    if limit["scope"] != scope:
        if key:
            yield where.forbidden(f"may only be set with the scope {scope}")
    elif not key:
        yield where.required(f"the scope is {scope}")
    elif name == "attribute":
        # As in constraints of claims; without a domain it is the driver's own.
        yield from label_key(key, where)
    else:
        yield from validate_subdomain(key, where)
