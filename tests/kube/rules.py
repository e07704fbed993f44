"""CEL rules of custom resource definitions: syntax, cost, and whether they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any

from sully.machinery.cel import types
from sully.machinery.cel.environment import Environment, Program
from sully.machinery.cel.errors import CompileError, EvaluationError
from sully.machinery.cel.library.catalogue import kubernetes_library
from sully.machinery.fields import FieldError, Path

Obj = Mapping[str, Any]

MESSAGE_MAX = 2048
TIMES_MAX = 10_000
"""A server estimates costs; a rule as cheap as ours stays within its budget so often for sure."""
REASONS = frozenset(
    ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return what a rule sees: the value, and the one before."""
    return Environment(
        library=kubernetes_library(),
        variables={"self": types.DYN, "oldSelf": types.DYN},
        results=(types.BOOL,),
    )


@lru_cache(maxsize=64)
def program(rule: str) -> Program:
    """Return a rule, compiled."""
    return environment().compile(rule)


@dataclass(frozen=True, slots=True)
class Around:
    """What is known about the place of a rule."""

    correlated: bool = True
    """Whether a value has a place or key of its own: only then is there one before."""
    times: float = 1
    """How often the rule is evaluated at the most; without a bound its cost has none either."""


ONCE = Around()


def rule_problems(schema: Obj, at: str = "", around: Around = ONCE) -> Iterator[str]:
    """Yield everything for which a server would refuse the rules of a schema."""
    for number, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        yield from _rule(rule, f"{at}.x-kubernetes-validations[{number}]", around)
    for name, inner in (schema.get("properties") or {}).items():
        yield from rule_problems(inner, f"{at}.{name}", around)
    if isinstance(schema.get("items"), Mapping):
        keyed = around.correlated and schema.get("x-kubernetes-list-type") == "map"
        times = around.times * schema.get("maxItems", inf)
        yield from rule_problems(schema["items"], f"{at}[]", Around(keyed, times))
    if isinstance(schema.get("additionalProperties"), Mapping):
        times = around.times * schema.get("maxProperties", inf)
        inside = Around(around.correlated, times)
        yield from rule_problems(schema["additionalProperties"], f"{at}{{}}", inside)


def _rule(rule: Obj, at: str, around: Around) -> Iterator[str]:
    if around.times > TIMES_MAX:
        yield f"{at}: it may be evaluated {around.times} times, which costs too much"
    if rule.get("reason", "FieldValueInvalid") not in REASONS:
        yield f"{at}.reason: {rule['reason']} is none"
    message = rule.get("message", "")
    if "\n" in message or len(message) > MESSAGE_MAX or not message.strip():
        yield f"{at}.message: must be one line"
    if "oldSelf" in rule["rule"] and not around.correlated:
        yield f"{at}.rule: there is no one value before this one"
    try:
        program(rule["rule"])
    except CompileError as error:
        yield f"{at}.rule: {error}"


def broken(schema: Obj, value: Any, old: Any, at: Path) -> Iterator[FieldError]:
    """Yield every rule that a value breaks; `old` is None for a new one."""
    for rule in schema.get("x-kubernetes-validations") or ():
        if "oldSelf" in rule["rule"] and old is None:
            continue
        if not _holds(rule["rule"], value, old):
            yield at.invalid(value, rule.get("message") or f"failed rule: {rule['rule']}")
    if isinstance(value, Mapping):
        yield from _sized(schema, value, "Properties", "properties", at)
        for name, inner in (schema.get("properties") or {}).items():
            if name in value:
                before = old.get(name) if isinstance(old, Mapping) else None
                yield from broken(inner, value[name], before, at.child(name))
        if isinstance(more := schema.get("additionalProperties"), Mapping):
            for name, item in value.items():
                yield from broken(more, item, (old or {}).get(name), at.child(name))
    if isinstance(value, list):
        yield from _sized(schema, value, "Items", "items", at)
        for number, item in enumerate(value):
            yield from broken(schema.get("items") or {}, item, None, at.index(number))


def _sized(schema: Obj, value: Any, what: str, word: str, at: Path) -> Iterator[FieldError]:
    if len(value) < schema.get(f"min{what}", 0):
        text = f"{at} in body should have at least {schema[f'min{what}']} {word}"
        yield at.invalid(len(value), text)
    if len(value) > schema.get(f"max{what}", inf):
        yield at.too_many(len(value), schema[f"max{what}"])


def _holds(rule: str, value: Any, old: Any) -> bool:
    try:
        return program(rule).evaluate({"self": value, "oldSelf": old}) is True
    except EvaluationError:
        return False
