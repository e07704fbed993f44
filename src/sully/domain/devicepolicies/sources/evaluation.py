"""Which sources of a policy are active for a device, and what they report.

A source that cannot be evaluated, such as an expression that fails or a stale report, is neither
active nor quiet: the device is then unknown, and nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from sully.api.resource.types import CELDeviceSelector as Expression
from sully.api.resource.types import DeviceSelector, DeviceTaint
from sully.api.sully.types import (
    UNHEALTHY,
    UNKNOWN,
    DeviceTaintPolicyCondition,
    DeviceTaintPolicyDriverTaint,
    DeviceTaintPolicyHealth,
    DeviceTaintPolicyNodeTaint,
    DeviceTaintPolicySource,
    DeviceTaintPolicySuppression,
)
from sully.domain.devicepolicies.settings import severity_of
from sully.domain.devicepolicies.sources.nodes import NodeCondition, PolicyNode
from sully.domain.devicepolicies.sources.prometheus import QueryError, QueryResult, sample_of
from sully.domain.devicepolicies.states import Fault
from sully.domain.devices.selectors import Content, DeviceSelectorError, matches
from sully.domain.health.matching import Identity
from sully.domain.health.reports import Health
from sully.domain.tolerations import taint_text
from sully.machinery.cel import (
    CompileError,
    CostBudget,
    CostBudgetExceededError,
    EvaluationError,
    Program,
    Programs,
    as_bool,
)
from sully.machinery.cel.environments.taint_data import VARIABLE, taint_data_environment
from sully.machinery.meta import Condition, find_condition


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What sources can see of a device."""

    content: Content | None = None
    """None: no slice has the device."""
    taints: tuple[DeviceTaint, ...] = ()
    """Those that its driver publishes, or that patches set."""
    slice_taints: tuple[DeviceTaint, ...] = ()
    """Those that its driver publishes."""
    allocated: bool = False
    conditions: tuple[Condition, ...] = ()
    """Those that drivers report in the status of claims."""
    node: PolicyNode | None = None
    health: tuple[Health, ...] = ()
    identity: Identity | None = None
    """By what others name the device."""


class SourceProblem(Exception):  # noqa: N818 - not an error: the device is unknown
    """Why a source cannot be evaluated for a device."""


def active_faults(
    sources: Iterable[DeviceTaintPolicySource],
    facts: DeviceFacts,
    queries: Mapping[str, QueryResult],
) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
    """Return the faults of a device, and why sources could not be evaluated.

    `queries` has the results of those that query Prometheus, by the names of the sources.
    """
    faults: list[Fault] = []
    problems: list[str] = []
    for source in sources:
        try:
            message = _fault(source, facts, queries)
        except SourceProblem as problem:
            problems.append(f"source {source.name}: {problem}")
            continue
        if message:
            faults.append(Fault(source.name, severity_of(source.severity), message))
    return tuple(faults), tuple(problems)


def _fault(
    source: DeviceTaintPolicySource, facts: DeviceFacts, queries: Mapping[str, QueryResult]
) -> str:
    """Return what a source reports; nothing if it is quiet."""
    if source.not_published:
        return "no ResourceSlice has the device" if _is_missing(facts) else ""
    if source.node_condition is not None:
        return _condition(source.node_condition, _of_node(facts).conditions, "node condition")
    if source.node_taint is not None:
        return _node_taint(source.node_taint, _of_node(facts))
    if source.claim_condition is not None:
        return _condition(source.claim_condition, facts.conditions, "condition")
    if source.device_health is not None:
        return _health(source.device_health, facts.health)
    if source.prometheus is not None:
        return _sample(queries.get(source.name), facts)
    # The others are about what the driver publishes.
    if facts.content is None:
        raise SourceProblem("no ResourceSlice has the device")
    if source.driver_taint is not None:
        return _driver_taint(source.driver_taint, facts.taints)
    if source.attributes is not None:
        return _attributes(source.attributes.expression, facts.content)
    raise SourceProblem("it is of a kind that this version does not know")


def _is_missing(facts: DeviceFacts) -> bool:
    return facts.content is None and facts.allocated


def _of_node(facts: DeviceFacts) -> PolicyNode:
    if facts.node is None:
        raise SourceProblem("the node of the device is not known")
    return facts.node


def _condition(
    expected: DeviceTaintPolicyCondition, conditions: Iterable[Condition | NodeCondition], what: str
) -> str:
    condition = find_condition(conditions, expected.type)
    if condition is None or condition.status != expected.status:
        return ""
    if expected.reason and condition.reason != expected.reason:
        return ""
    reason = f" ({condition.reason})" if condition.reason else ""
    return f"{what} {condition.type} is {condition.status}{reason}"


def _node_taint(expected: DeviceTaintPolicyNodeTaint, node: PolicyNode) -> str:
    taints = (taint for taint in node.taints if _matches_taint(expected, taint))
    return next((f"node taint {taint_text(taint)}" for taint in taints), "")


def _driver_taint(expected: DeviceTaintPolicyDriverTaint, taints: Iterable[DeviceTaint]) -> str:
    # One that never works is reported before there is a taint.
    _program(expected.expression)
    matching = (taint for taint in taints if taint_matches(expected, taint))
    return next((f"driver taint {taint_text(taint)}" for taint in matching), "")


def taint_matches(
    expected: DeviceTaintPolicyDriverTaint | DeviceTaintPolicySuppression, taint: DeviceTaint
) -> bool:
    """Report whether a taint of a driver matches the source; raise SourceProblem if unknown."""
    return _matches_taint(expected, taint) and _data_matches(expected.expression, taint.data)


def _matches_taint(
    expected: DeviceTaintPolicyDriverTaint
    | DeviceTaintPolicyNodeTaint
    | DeviceTaintPolicySuppression,
    taint: Any,
) -> bool:
    return (
        taint.key == expected.key
        and expected.value in (None, taint.value)
        and expected.effect in ("", taint.effect)
    )


def _program(expression: str) -> Program | None:
    """Return the program of an expression, None if there is none; raise SourceProblem if wrong."""
    if not expression:
        return None
    program = _programs.compile(expression)
    if isinstance(program, CompileError):
        raise SourceProblem(program.detail)
    return program


def _data_matches(expression: str, data: Any) -> bool:
    program = _program(expression)
    if program is None:
        return True
    try:
        return bool(as_bool(program.evaluate_counted({VARIABLE: data}, program.limit)[0]))
    except EvaluationError as error:
        if data is None:
            # A taint without details does not match; many drivers publish none.
            return False
        raise SourceProblem(str(error)) from None


def _attributes(expression: str, content: Content) -> str:
    selector = DeviceSelector(cel=Expression(expression=expression))
    try:
        return expression if matches((selector,), content, CostBudget()) else ""
    except (DeviceSelectorError, CostBudgetExceededError) as error:
        raise SourceProblem(str(error)) from None


def _sample(result: QueryResult | None, facts: DeviceFacts) -> str:
    try:
        value = sample_of(result, facts.identity)
    except QueryError as error:
        raise SourceProblem(str(error)) from None
    return f"the query returns {value:g}" if value else ""


def _health(expected: DeviceTaintPolicyHealth, reports: Iterable[Health]) -> str:
    statuses = expected.statuses or (UNHEALTHY,)
    unknown = ""
    for health in reports:
        if health.status in statuses and _has_reason(expected, health):
            return _health_text(health)
        if health.status == UNKNOWN:
            unknown = unknown or health.problem or "the health is Unknown"
    if unknown:
        raise SourceProblem(unknown)
    return ""


def _has_reason(expected: DeviceTaintPolicyHealth, health: Health) -> bool:
    if not expected.keys and not expected.values:
        return True
    return any(
        (not expected.keys or reason.key in expected.keys)
        and (not expected.values or reason.value in expected.values)
        for reason in health.reasons
    )


def _health_text(health: Health) -> str:
    reasons = sorted({f"{reason.key} {reason.value}".rstrip() for reason in health.reasons})
    return f"health is {health.status}" + (f" ({', '.join(reasons)})" if reasons else "")


_programs = Programs(taint_data_environment)
