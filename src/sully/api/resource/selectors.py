"""CEL expressions over devices: the only module of this group that uses the CEL package.

Cost is estimated for the worst case that the limits of slices allow, so that an expression which
is accepted can never keep the scheduler busy.
"""

from dataclasses import replace
from hashlib import sha256

import msgspec

from sully.api.resource.checks import Errors, Options, validate_declared_items
from sully.api.resource.types import DeviceSelector
from sully.machinery.cel import CompileError, ProgramError, device_environment
from sully.machinery.fields import Path
from sully.machinery.gates import Gates
from sully.machinery.memo import Memo

SELECTORS_MAX = 32
EXPRESSION_MAX = 10 * 1024
COST_MAX = 1_000_000


class Judgement(msgspec.Struct, frozen=True):
    """What is wrong with an expression, if anything is, and what it costs."""

    problem: str = ""
    is_internal: bool = False
    """Kubernetes calls the problem an internal error."""
    cost: int = 0


def validate_selectors(selectors: tuple[DeviceSelector, ...], at: Path, rules: Options) -> Errors:
    """Check the selectors of a class, request, rule or patch."""
    yield from validate_declared_items(
        selectors, SELECTORS_MAX, lambda one, at: validate_selector(one, at, rules), at
    )


def validate_selector(selector: DeviceSelector, at: Path, rules: Options) -> Errors:
    """Check that a selector has an expression and that it compiles to a boolean."""
    if selector.cel is None:
        yield at.child("cel").required()
    else:
        yield from validate_expression(
            selector.cel.expression, at.child("cel", "expression"), rules
        )


def validate_expression(
    expression: str, at: Path, rules: Options, *, derived: bool = False
) -> Errors:
    """Compile a new expression and check its cost; a stored one is not checked again.

    A derived attribute may have a value of any type, a selector returns a boolean.
    """
    if rules.stored:
        return
    if len(expression.encode()) > EXPRESSION_MAX:
        yield at.too_long(EXPRESSION_MAX)
        return
    judgement = _judge(expression, rules, derived)
    if judgement.is_internal:
        yield at.internal(judgement.problem)
    elif judgement.problem:
        yield at.invalid(expression, judgement.problem)
    elif judgement.cost > COST_MAX:
        yield at.forbidden("too complex, exceeds cost limit")


def derived_cost(expression: str, rules: Options) -> int:
    """Return the worst cost of a derived attribute; one that is not checked costs nothing."""
    if rules.stored or not expression or len(expression.encode()) > EXPRESSION_MAX:
        return 0
    return _judge(expression, rules, True).cost


def _judge(expression: str, rules: Options, derived: bool) -> Judgement:
    return judge_expression(expression, rules.gates, derived=derived)


def judge_expression(expression: str, gates: Gates, *, derived: bool) -> Judgement:
    """Return what is wrong with an expression, and its cost; cached by expression."""
    switched = gates["DRAConsumableCapacity"], gates["DRAListTypeAttributes"]
    # Expressions may be long, and there may be thousands of them in one claim.
    key = sha256(expression.encode()).digest(), derived, *switched
    cached = _judged.get(key)
    return (
        cached
        if cached is not None
        else _judged.keep(key, _compiled(expression, derived, *switched))
    )


_judged: Memo[tuple[bytes, bool, bool, bool], Judgement] = Memo(16 * 1024)


def _compiled(expression: str, derived: bool, consumable: bool, lists: bool) -> Judgement:
    environment = device_environment(consumable_capacity=consumable, list_attributes=lists)
    if derived:
        environment = replace(environment, results=())
    try:
        return Judgement(cost=environment.compile(expression).cost)
    except CompileError as error:
        return Judgement(error.detail, is_internal=isinstance(error, ProgramError))
