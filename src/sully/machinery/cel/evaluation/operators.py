"""The operators: those that absorb errors, and short cuts where the types allow them.

`planner` asks here first. A short cut returns None when it does not apply, and never changes a
result: on anything unusual it leaves the answer to the general path.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from sully.machinery.cel.errors import CostLimitError, EvaluationError, NoSuchOverloadError
from sully.machinery.cel.types import Type
from sully.machinery.cel.values import Optional, Value, comparison, equals

Scope = dict[str, Any]
Plan = Callable[[Scope], Value]

_ORDERINGS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
# Of these, Python's own comparison is CEL's.
_PLAIN: Final = frozenset({"string", "int", "uint", "double", "bytes", "timestamp", "duration"})
_ORDERED: Final = _PLAIN - {"timestamp", "duration"}


def fused(path: tuple[str, ...] | None, general: Plan) -> Plan:
    """Return a closure that follows constant keys in one step.

    Only maps accept a string as an index, so success is the general path's success; every failure
    is left to the general path, which has the message for it.
    """
    if path is None:
        return general
    maker = {2: _two, 3: _three, 4: _four}.get(len(path))
    return general if maker is None else maker(path, general)


def _two(path: tuple[str, ...], general: Plan) -> Plan:
    first, second = path

    def follow(scope: Scope) -> Value:
        try:
            return scope[first][second]
        except (KeyError, TypeError):
            return general(scope)

    return follow


def _three(path: tuple[str, ...], general: Plan) -> Plan:
    first, second, third = path

    def follow(scope: Scope) -> Value:
        try:
            return scope[first][second][third]
        except (KeyError, TypeError):
            return general(scope)

    return follow


def _four(path: tuple[str, ...], general: Plan) -> Plan:
    first, second, third, fourth = path

    def follow(scope: Scope) -> Value:
        try:
            return scope[first][second][third][fourth]
        except (KeyError, TypeError):
            return general(scope)

    return follow


def _settle(error: EvaluationError, other: Plan, scope: Scope, decisive: Value) -> bool:
    """Return the decisive value if the other side has it, else raise the first error."""
    if isinstance(error, CostLimitError):
        raise error
    try:
        if other(scope) is decisive:
            return bool(decisive)
    except CostLimitError:
        raise
    except EvaluationError:
        raise error from None
    raise error


def conjunction(left: Plan, right: Plan) -> Plan:
    """Return `left && right`: a false on either side wins over an error on the other."""
    return _junction(left, right, decisive=False)


def disjunction(left: Plan, right: Plan) -> Plan:
    """Return `left || right`: a true on either side wins over an error on the other."""
    return _junction(left, right, decisive=True)


def _junction(left: Plan, right: Plan, *, decisive: bool) -> Plan:
    undecided = not decisive

    def junction(scope: Scope) -> bool:
        try:
            first = left(scope)
        except EvaluationError as error:
            return _settle(error, right, scope, decisive)
        if first is decisive:
            return bool(first)
        if first is not undecided:
            return _settle(NoSuchOverloadError(), right, scope, decisive)
        second = right(scope)
        if second is True or second is False:
            return bool(second)
        raise NoSuchOverloadError

    return junction


def conditional(test: Plan, chosen: Plan, other: Plan) -> Plan:
    """Return `test ? chosen : other`."""

    def choose(scope: Scope) -> Value:
        verdict = test(scope)
        if verdict is True:
            return chosen(scope)
        if verdict is False:
            return other(scope)
        raise NoSuchOverloadError

    return choose


def otherwise(target: Plan, other: Plan, *, unwrap: bool) -> Plan:
    """Return `target.or(other)` or `target.orValue(other)`: the other is not read in vain."""

    def choose(scope: Scope) -> Value:
        optional = target(scope)
        if not isinstance(optional, Optional):
            raise NoSuchOverloadError
        if not optional.present:
            return other(scope)
        return optional.value if unwrap else optional

    return choose


def not_strictly_false(inner: Plan) -> Plan:
    """Return whether a loop should go on: also after an error, which a later item may absorb."""

    def test(scope: Scope) -> bool:
        try:
            return inner(scope) is not False
        except CostLimitError:
            raise
        except EvaluationError:
            return True

    return test


def quick(function: str, plans: list[Plan], arg_types: list[Type]) -> Plan | None:
    """Return a closure for equality, order and negation, or None for other functions."""
    if function in ("_==_", "_!=_"):
        return _equality(plans, arg_types, negate=function == "_!=_")
    ordering = _ORDERINGS.get(function)
    if ordering is not None:
        return _ordering(ordering, plans, arg_types)
    if function == "!_":
        return _negation(plans[0])
    return None


def _equality(plans: list[Plan], arg_types: list[Type], *, negate: bool) -> Plan:
    left, right = plans
    constant = getattr(right, "value", None)
    if type(constant) is str or (arg_types[0] == arg_types[1] and arg_types[0].kind in _PLAIN):
        # A string equals only strings.
        if constant is not None:
            if negate:
                return lambda scope: left(scope) != constant
            return lambda scope: left(scope) == constant
        test: Callable[[Any, Any], bool] = operator.ne if negate else operator.eq
        return lambda scope: test(left(scope), right(scope))
    if negate:
        return lambda scope: not equals(left(scope), right(scope))
    return lambda scope: equals(left(scope), right(scope))


def _ordering(test: Callable[[Any, Any], bool], plans: list[Plan], arg_types: list[Type]) -> Plan:
    left, right = plans
    constant = getattr(right, "value", None)
    if arg_types[0] == arg_types[1] and arg_types[0].kind in _ORDERED:
        if constant is not None:
            return lambda scope: test(left(scope), constant)
        return lambda scope: test(left(scope), right(scope))
    guarded = comparison(test)
    if type(constant) is int:

        def against(scope: Scope) -> bool:
            value = left(scope)
            return test(value, constant) if type(value) is int else guarded(value, constant)

        return against
    return lambda scope: guarded(left(scope), right(scope))


def _negation(inner: Plan) -> Plan:
    def invert(scope: Scope) -> bool:
        value = inner(scope)
        if value is True:
            return False
        if value is False:
            return True
        raise NoSuchOverloadError

    return invert
