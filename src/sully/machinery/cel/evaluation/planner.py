"""Checked trees to Python closures.

Every node becomes a function of the activation (a dict of variables). Where the types are known
the closure is the bare Python operation; otherwise it looks at the values. An expression that has
to be metered is planned by `metering`, which is exact about cost and does not take short cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sully.machinery.cel import types
from sully.machinery.cel.checker import Checked, Constant, Resolution, Variable
from sully.machinery.cel.declarations import Implementation, Overload
from sully.machinery.cel.errors import EvaluationError, NoSuchOverloadError
from sully.machinery.cel.evaluation import access, loops, operators
from sully.machinery.cel.syntax.nodes import (
    Call,
    Comprehension,
    Entry,
    Ident,
    ListNode,
    Literal,
    MapNode,
    MessageNode,
    Node,
    Select,
)
from sully.machinery.cel.types import Type
from sully.machinery.cel.values import NONE, Optional, Value, as_key, type_of

Scope = dict[str, Any]
Plan = Callable[[Scope], Value]
ACCESSORS: Final = {"_[_]": access.index, "_[?_]": access.find}


class Constantly:
    """The closure of a constant, which the planner can look into."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, _: Scope) -> Value:
        return self.value


def plan(checked: Checked) -> Plan:
    """Return the function that evaluates an expression."""
    return Planner(checked).plan(checked.root)


class Planner:
    """Plans one tree; `metering` refines it."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._done: dict[Node, Plan] = {}

    def plan(self, node: Node) -> Plan:
        """Return the closure of a node, which is built once."""
        planned = self._done.get(node)
        if planned is None:
            planned = self._done[node] = self._make(node)
        return planned

    def _type(self, node: Node) -> Type:
        return self._checked.types[node]

    def _make(self, node: Node) -> Plan:  # noqa: PLR0911 - one return per kind of node
        reference = self._checked.references.get(node)
        if isinstance(reference, Variable):
            return self._variable(reference)
        if isinstance(reference, Constant):
            return Constantly(reference.value)
        match node:
            case Literal():
                return Constantly(node.value)
            case Ident():
                return _failing(f"no such attribute(s): {node.name}")
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case MessageNode():
                return _failing(f"unknown type: {node.name}")
            case Comprehension():
                return self._comprehension(node)

    # Names and fields

    def _variable(self, reference: Variable) -> Plan:
        name = reference.name
        if reference.local:
            return _local(loops.LOCAL + name)

        def variable(scope: Scope) -> Value:
            try:
                return scope[name]
            except KeyError:
                raise EvaluationError(f"no such attribute(s): {name}") from None

        return variable

    def _select(self, node: Select) -> Plan:
        operand, field = self.plan(node.operand), node.field
        if node.test_only:
            return lambda scope: access.has(operand(scope), field)

        def select(scope: Scope) -> Value:
            return access.select(operand(scope), field)

        return operators.fused(self._path(node), select)

    def _path(self, node: Node) -> tuple[str, ...] | None:
        """Return the variable and keys of a chain such as `device.attributes["d"].x`."""
        reference = self._checked.references.get(node)
        if isinstance(reference, Variable):
            return None if reference.local else (reference.name,)
        if isinstance(node, Select) and not node.test_only:
            inner, key = self._path(node.operand), node.field
        elif isinstance(node, Call) and node.function == "_[_]" and len(node.args) == 2:
            inner, constant = self._path(node.args[0]), node.args[1]
            if not isinstance(constant, Literal) or not isinstance(constant.value, str):
                return None
            key = constant.value
        else:
            return None
        return None if inner is None else (*inner, key)

    # Calls

    def _call(self, node: Call) -> Plan:
        function, args = node.function, node.args
        if function in ("_&&_", "_||_"):
            make = operators.conjunction if function == "_&&_" else operators.disjunction
            return make(self.plan(args[0]), self.plan(args[1]))
        if function == "_?_:_":
            return operators.conditional(*(self.plan(arg) for arg in args))
        if function == "@not_strictly_false":
            return operators.not_strictly_false(self.plan(args[0]))
        if function == "_?._":
            return self._apply(access.find, args)
        if function in ("or", "orValue") and node.target is not None and len(args) == 1:
            target, other = self.plan(node.target), self.plan(args[0])
            return operators.otherwise(target, other, unwrap=function == "orValue")
        return self._function(node)

    def _function(self, node: Call) -> Plan:
        reference = self._checked.references.get(node)
        if not isinstance(reference, Resolution):
            return _failing(f"unbound function: {node.function}")
        args = node.args
        if reference.member and node.target is not None:
            args = (node.target, *args)
        plans = [self.plan(arg) for arg in args]
        arg_types = [self._type(arg) for arg in args]
        if node.function in ACCESSORS:
            accessor = self._apply(ACCESSORS[node.function], args)
            return operators.fused(self._path(node), accessor)
        quick = operators.quick(node.function, plans, arg_types)
        if quick is not None:
            return quick
        run = implementation(reference, len(plans))
        if plans and all(isinstance(arg, Constantly) for arg in plans):
            return _folded(run, [arg.value for arg in plans if isinstance(arg, Constantly)])
        return _applied(run, plans)

    def _apply(self, run: Implementation, args: tuple[Node, ...]) -> Plan:
        return _applied(run, [self.plan(arg) for arg in args])

    # Aggregates

    def _list(self, node: ListNode) -> Plan:
        plans = [self.plan(item) for item in node.elements]
        optional = node.optional
        if not optional:
            if all(isinstance(arg, Constantly) for arg in plans):
                return Constantly([arg.value for arg in plans if isinstance(arg, Constantly)])
            return lambda scope: [arg(scope) for arg in plans]

        def build(scope: Scope) -> list[Value]:
            out: list[Value] = []
            for index, arg in enumerate(plans):
                value = arg(scope)
                if index not in optional:
                    out.append(value)
                elif _has_value(value):
                    out.append(value.value)
            return out

        return build

    def _map(self, node: MapNode) -> Plan:
        rows = [self._entry(entry) for entry in node.entries]

        def build(scope: Scope) -> dict[Value, Value]:
            out: dict[Value, Value] = {}
            for key_plan, value_plan, optional in rows:
                key, value = as_key(key_plan(scope)), value_plan(scope)
                if optional and not _has_value(value):
                    continue
                if key in out or type(key) is float:
                    problem = "unsupported key type" if type(key) is float else "repeated key"
                    raise EvaluationError(f"Failed with {problem}: {key}")
                out[key] = value.value if optional else value
            return out

        return build

    def _entry(self, entry: Entry) -> tuple[Plan, Plan, bool]:
        return self.plan(entry.key), self.plan(entry.value), entry.optional

    def _comprehension(self, node: Comprehension) -> Plan:
        return loops.fast(node, self.plan)


def _failing(message: str) -> Plan:
    def fail(_: Scope) -> Value:
        raise EvaluationError(message)

    return fail


def _local(key: str) -> Plan:
    def variable(scope: Scope) -> Value:
        value = scope[key]
        if type(value) is loops.Lazy:
            return value()
        if type(value) is loops.Failed:
            raise value.error
        return value

    return variable


def _has_value(value: Value) -> bool:
    if not isinstance(value, Optional):
        raise EvaluationError(f"cannot initialize optional entry from non-optional value {value}")
    return value is not NONE and value.present


def _folded(run: Implementation, values: list[Value]) -> Plan:
    """Compute a call on constants now; a failure is for the evaluation to meet."""
    try:
        return Constantly(run(*values))
    except EvaluationError as error:
        return _failing(str(error))


def _applied(run: Implementation, plans: list[Plan]) -> Plan:
    if len(plans) == 1:
        only = plans[0]
        return lambda scope: run(only(scope))
    if len(plans) == 2:
        left, right = plans
        if isinstance(right, Constantly):
            constant = right.value
            return lambda scope: run(left(scope), constant)
        return lambda scope: run(left(scope), right(scope))
    return lambda scope: run(*[arg(scope) for arg in plans])


def implementation(reference: Resolution, arity: int) -> Implementation:
    """Return the function of the only overload, or one that picks by the values."""
    overloads = reference.overloads
    if reference.certain:
        return overloads[0].run

    # The choice depends on nothing but the classes of the values, and there are few of those.
    chosen: dict[tuple[type, ...], Implementation] = {}

    def dispatch(*values: Value) -> Value:
        classes = tuple(map(type, values))
        run = chosen.get(classes)
        if run is None:
            run = chosen[classes] = pick(overloads, values).run
        return run(*values)

    def dispatch_two(left: Value, right: Value) -> Value:
        run = chosen.get((type(left), type(right)))
        return dispatch(left, right) if run is None else run(left, right)

    return dispatch_two if arity == 2 else dispatch


def pick(overloads: tuple[Overload, ...], values: tuple[Value, ...]) -> Overload:
    """Return the overload that accepts these values."""
    kinds = [type_of(value) for value in values]
    for overload in overloads:
        if len(overload.args) == len(kinds) and all(map(_accepts, overload.args, kinds)):
            return overload
    raise NoSuchOverloadError


def _accepts(declared: Type, actual: Type) -> bool:
    if declared.is_dyn or declared.kind == types.PARAM:
        return True
    if declared.kind != actual.kind or declared.kind in ("null", "type", "list", "map"):
        return declared.kind == actual.kind
    return declared.name == actual.name
