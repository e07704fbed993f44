"""Evaluation that counts what it costs and stops at a limit.

Used where the estimate gives no bound below the limit. The tree is run in its plain form, without
the planner's short cuts, because the units are defined over that form.
"""

from __future__ import annotations

import math
from typing import Any, Final

from sully.machinery.cel.checker import Checked, Resolution, Variable
from sully.machinery.cel.costs.estimate import LIST_COST, MAP_COST
from sully.machinery.cel.costs.sizes import REGEX, TRAVERSAL
from sully.machinery.cel.declarations import Implementation
from sully.machinery.cel.errors import CostLimitError
from sully.machinery.cel.evaluation import loops
from sully.machinery.cel.evaluation.planner import ACCESSORS, Plan, Planner, Scope, pick
from sully.machinery.cel.syntax.nodes import (
    Call,
    Comprehension,
    ListNode,
    MapNode,
    Node,
    Select,
)
from sully.machinery.cel.values import Value

# Calls that the planner turns into something other than a call.
_UNIT: Final = frozenset(("or", "orValue", "@not_strictly_false"))


class Meter:
    """What an evaluation has cost so far."""

    __slots__ = ("cost", "limit")
    KEY: Final = "@meter"

    def __init__(self, limit: int) -> None:
        self.cost = 0
        self.limit = limit

    def add(self, units: int) -> None:
        """Count units; raise when they are more than allowed."""
        self.cost += units
        if self.cost > self.limit:
            raise CostLimitError


def metered(checked: Checked) -> Plan:
    """Return the function that evaluates an expression and counts."""
    return _MeteredPlanner(checked).plan(checked.root)


class _MeteredPlanner(Planner):
    def _make(self, node: Node) -> Plan:
        inner_plan = super()._make(node)
        units = self._units(node)
        if units == 0:
            return inner_plan

        def counted(scope: Scope) -> Value:
            value = inner_plan(scope)
            scope[Meter.KEY].add(units)
            return value

        return counted

    def _units(self, node: Node) -> int:
        if isinstance(self._checked.references.get(node), Variable):
            return 1
        match node:
            case Select():
                return 0 if node.test_only else 1
            case ListNode():
                return LIST_COST
            case MapNode():
                return MAP_COST
            case Call():
                return 1 if node.function in _UNIT else 0
            case _:
                return 0

    def _path(self, node: Node) -> tuple[str, ...] | None:  # noqa: ARG002 - the planner gives it; what is metered takes no short cut
        return None

    def _function(self, node: Call) -> Plan:
        reference = self._checked.references.get(node)
        if not isinstance(reference, Resolution) or node.function in ACCESSORS:
            return super()._function(node)
        args = (node.target, *node.args) if reference.member else node.args
        plans = [self.plan(arg) for arg in args if arg is not None]
        overloads, function = reference.overloads, reference.name

        def call(scope: Scope) -> Value:
            values = tuple(item(scope) for item in plans)
            chosen = pick(overloads, values)
            result = chosen.run(*values)
            scope[Meter.KEY].add(call_units(function, chosen.id, values, result))
            return result

        return call

    def _apply(self, run: Implementation, args: tuple[Node, ...]) -> Plan:
        inner_plan = super()._apply(run, args)

        def call(scope: Scope) -> Value:
            value = inner_plan(scope)
            scope[Meter.KEY].add(1)
            return value

        return call

    def _comprehension(self, node: Comprehension) -> Plan:
        return loops.folded(node, self.plan)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, (str, bytes, list, tuple, dict)) else 1


def _walk(value: Any, factor: float = TRAVERSAL) -> int:
    return math.ceil(_size(value) * factor)


def _traversal(value: Any) -> int:
    """Return the cost of visiting everything in a value."""
    if isinstance(value, str):
        return int(len(value.encode()) * TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * TRAVERSAL)
    if isinstance(value, (list, tuple)):
        return sum(map(_traversal, value))
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(item) for key, item in value.items())
    return 1


_WALKED: Final = frozenset(
    (
        *("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR"),
        *("quantity", "isQuantity", "semver", "isSemver"),
    )
)
_VISITED: Final = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"))
_WALKED_OVERLOADS: Final = frozenset(
    ("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string")
)
# The functions that compare every element with every other, and how often they do it.
_SQUARED: Final = {
    "sets.contains": 1,
    "sets.intersects": 1,
    "sets.equivalent": 2,
    "distinct": 1,
    "sort": 1,
}
_JOINED: Final = frozenset({"add_string", "add_bytes"})
_COMPARED: Final = frozenset(
    {
        "equals",
        "not_equals",
        *(
            f"{name}_{kind}"
            for name in ("less", "less_equals", "greater", "greater_equals")
            for kind in ("string", "bytes")
        ),
    }
)


def call_units(function: str, overload: str, args: tuple[Value, ...], result: Value) -> int:
    """Return what one call has cost."""
    if function in _VISITED:
        return _traversal(args[0]) if args else 0
    if function in _WALKED or overload in _WALKED_OVERLOADS:
        return _walk(args[0])
    if function in ("replace", "split"):
        return _walk(args[0], 2 * TRAVERSAL)
    if function == "join":
        return _walk(result, 2 * TRAVERSAL)
    if overload == "matches_string" or function in ("find", "findAll"):
        return math.ceil((1 + _size(args[0])) * TRAVERSAL) * _walk(args[1], REGEX)
    if function in _SQUARED:
        return _SQUARED[function] * _size(args[0]) * _size(args[-1]) + 1
    if function in ("lists.range", "slice", "reverse", "@sortByAssociatedKeys"):
        return _size(result) + 1
    return _overload_units(overload, args)


def _overload_units(overload: str, args: tuple[Value, ...]) -> int:
    if overload == "in_list":
        return _size(args[1])
    if overload in _COMPARED:
        return math.ceil(min(_size(args[0]), _size(args[1])) * TRAVERSAL)
    if overload in _JOINED:
        return math.ceil((_size(args[0]) + _size(args[1])) * TRAVERSAL)
    if overload == "contains_string":
        return _walk(args[0]) * _walk(args[1])
    return 1
