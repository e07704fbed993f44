"""Evaluates the rules of a schema (`x-kubernetes-validations`) on an object.

All rules of an object share a budget. What costs more than `ON_LOOP` is not evaluated where it is
asked for: `DeferredWorkError` has the work, which the server does in a thread, and then asks again.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import msgspec

from sully.machinery.cel import types
from sully.machinery.cel.environment import Program
from sully.machinery.cel.errors import (
    CompileError,
    CostLimitError,
    EvaluationError,
    NoSuchOverloadError,
)
from sully.machinery.cel.values import NONE, Optional
from sully.machinery.customresources.expressions import (
    OLD_SELF,
    PER_CALL,
    SELF,
    Convert,
    converter,
    environment,
)
from sully.machinery.customresources.pruning import EMBEDDED
from sully.machinery.customresources.validation import is_missing, old_items
from sully.machinery.fields import FieldError, Path
from sully.machinery.patch.json_patch import same_json
from sully.machinery.serialization.codec import to_json
from sully.machinery.strategy import DeferredWorkError

Schema = Mapping[str, Any]
Obj = dict[str, Any]

BUDGET: Final = 10_000_000
"""What all rules of one object may cost, as in Kubernetes."""
COMPILED_ON_LOOP: Final = 10
"""Rules that are compiled where they are needed first: some ten milliseconds."""
ON_LOOP: Final = 50_000
"""What they may cost before they are evaluated in a thread: some ten milliseconds."""
_UNCOUNTED: Final = 1_000
"""A rule that cannot cost more is not counted while it runs."""
_REMEMBERED: Final = 64
_OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class _TooLongError(Exception):
    """The rules of an object cost too much for the event loop."""


class _ExhaustedError(Exception):
    """The budget is used up; the last error reports it."""


class _Budget(msgspec.Struct):
    left: int
    on_loop: bool


class Rule(msgspec.Struct, frozen=True):
    """A compiled rule. error: why it could not be compiled, which definitions do not get past."""

    rule: Schema
    program: Program | None = None
    message: Program | None = None
    uses_old: bool = False
    error: str = ""

    @property
    def text(self) -> str:
        """Return what errors call the rule."""
        return str(self.rule.get("message") or self.rule["rule"]).strip()


def compile_rule(schema: Schema, rule: Schema, *, is_root: bool) -> Rule:
    """Compile a rule and its message; raises CompileError for the rule."""
    optional = bool(rule.get("optionalOldSelf"))
    try:
        env = environment(schema, is_root=is_root, optional=optional, result=types.BOOL)
    except KeyError as error:
        raise CompileError(str(error), syntax=False) from None
    program = env.compile(rule["rule"])
    message = None
    if rule.get("messageExpression"):
        message = replace(env, results=(types.STRING,)).compile(rule["messageExpression"])
    uses_old = program.refers_to(OLD_SELF)
    return Rule(rule, program, message, uses_old)


class Rules(msgspec.Struct):
    """The rules of a schema and of what is inside of it; compiled on first use."""

    schema: Schema
    is_root: bool
    fields: Mapping[str, "Rules"] = msgspec.field(default_factory=dict)
    values: "Rules | None" = None
    items: "Rules | None" = None
    _compiled: list[Rule] | None = None
    _convert: Convert | None = None
    _ready: bool = False
    _outcomes: dict[bytes, list[FieldError]] = msgspec.field(default_factory=dict)

    @property
    def compiled(self) -> list[Rule]:
        """Return the rules of this schema itself."""
        if self._compiled is None:
            self._compiled = [
                self._compile(rule) for rule in self.schema.get("x-kubernetes-validations") or ()
            ]
            if self._compiled:
                self._convert = converter(self.schema, is_root=self.is_root)
        return self._compiled

    def _compile(self, rule: Schema) -> Rule:
        try:
            return compile_rule(self.schema, rule, is_root=self.is_root)
        except CompileError as error:
            return Rule(rule, error=str(error))

    # -- evaluation ---------------------------------------------------------------------------

    def problems(self, value: Any, old: Any, at: Path) -> list[FieldError]:
        """Return the errors of all rules that do not hold; raises DeferredWorkError."""
        if not self._ready:
            if self.count > COMPILED_ON_LOOP:
                raise DeferredWorkError(self.compile)
            self.compile()
        try:
            return self._bounded(value, old, at, _Budget(ON_LOOP, on_loop=True))
        except _TooLongError:
            key = to_json([value, old])
        known = self._outcomes.get(key)
        if known is None:
            raise DeferredWorkError(lambda: self._cache_result(key, value, old, at))
        return known

    @property
    def count(self) -> int:
        """Return how many rules there are."""
        own = len(self.schema.get("x-kubernetes-validations") or ())
        return own + sum(inner.count for inner in self._inner())

    def compile(self) -> None:
        """Compile all rules."""
        _ = self.compiled
        for inner in self._inner():
            inner.compile()
        self._ready = True

    def _inner(self) -> Iterator["Rules"]:
        yield from self.fields.values()
        yield from (inner for inner in (self.values, self.items) if inner is not None)

    def _cache_result(self, key: bytes, value: Any, old: Any, at: Path) -> None:
        errors = self._bounded(value, old, at, _Budget(BUDGET, on_loop=False))
        while len(self._outcomes) >= _REMEMBERED:
            self._outcomes.pop(next(iter(self._outcomes)), None)
        self._outcomes[key] = errors

    def _bounded(self, value: Any, old: Any, at: Path, budget: _Budget) -> list[FieldError]:
        errors: list[FieldError] = []
        with suppress(_ExhaustedError):
            self._check(value, old, at, budget, errors)
        return errors

    def _check(
        self, value: Any, old: Any, at: Path, budget: _Budget, errors: list[FieldError]
    ) -> None:
        if value is None:
            return
        if self.compiled:
            self._check_own(value, old, at, budget, errors)
        if isinstance(value, list) and self.items is not None:
            before = old_items(old, self.schema)
            for index, item in enumerate(value):
                previous = None if before is None else before(item)
                previous = None if is_missing(previous) else previous
                self.items._check(item, previous, at.index(index), budget, errors)
        elif isinstance(value, dict):
            known = old if isinstance(old, dict) else {}
            for name, item in value.items():
                inner = self.fields.get(name)
                if inner is not None:
                    inner._check(item, known.get(name), at.child(name), budget, errors)
                elif self.values is not None:
                    self.values._check(item, known.get(name), at.key(name), budget, errors)

    def _check_own(
        self, value: Any, old: Any, at: Path, budget: _Budget, errors: list[FieldError]
    ) -> None:
        unchanged = old is not None and same_json(value, old)
        kind = self.schema.get("type", "")
        try:
            new = value if self._convert is None else self._convert(value)
            before = old if self._convert is None or old is None else self._convert(old)
        except EvaluationError as error:
            errors.append(at.invalid(kind, str(error)))
            return
        for rule in self.compiled:
            optional = bool(rule.rule.get("optionalOldSelf"))
            if (rule.uses_old and old is None and not optional) or (
                # What an update does not change is not checked again.
                unchanged and not rule.uses_old
            ):
                continue
            seen = (NONE if old is None else Optional(before)) if optional else before
            activation = {SELF: new, OLD_SELF: seen}
            self._evaluate(rule, activation, value, at, (budget, errors))

    def _evaluate(
        self,
        rule: Rule,
        activation: Obj,
        value: Any,
        at: Path,
        state: tuple[_Budget, list[FieldError]],
    ) -> None:
        budget, errors = state
        kind = self.schema.get("type", "")
        if rule.program is None:
            errors.append(at.invalid(kind, f"rule compile error: {rule.error}"))
            return
        try:
            holds = _run(rule.program, activation, budget)
        except CostLimitError as error:
            text = "no further validation rules will be run due to call cost exceeds limit for rule"
            errors.append(at.invalid(kind, f"'{error}': {text}: {rule.text}"))
            raise _ExhaustedError from None
        except _ExhaustedError:
            errors.append(at.invalid(kind, _OUT_OF_BUDGET))
            raise
        except EvaluationError as error:
            errors.append(at.invalid(kind, _failure(error, rule)))
            return
        if holds is not True:
            here = at.child(rule.rule["fieldPath"][1:]) if rule.rule.get("fieldPath") else at
            shown = _OMITTED if kind in ("object", "array") else value
            errors.append(_error(here, shown, _message(rule, activation, budget), rule))


_OMITTED: Final = object()


def _run(program: Program, activation: Obj, budget: _Budget) -> Any:
    if program.cost <= _UNCOUNTED:
        cost, result = program.cost, program.evaluate(activation)
    else:
        limit = min(PER_CALL, budget.left + 1) if budget.on_loop else PER_CALL
        try:
            result, cost = program.evaluate_counted(activation, limit)
        except CostLimitError:
            if limit < PER_CALL:
                raise _TooLongError from None
            raise
    if cost > budget.left:
        if budget.on_loop:
            raise _TooLongError
        raise _ExhaustedError
    budget.left -= cost
    return result


def _failure(error: EvaluationError, rule: Rule) -> str:
    if isinstance(error, NoSuchOverloadError):
        text = "call arguments did not match a supported operator, function or macro signature"
        return f"'{error}': {text} for rule: {rule.text}"
    return f"{error} evaluating rule: {rule.text}"


def _message(rule: Rule, activation: Obj, budget: _Budget) -> str:
    if rule.message is not None:
        try:
            text = _run(rule.message, activation, budget)
        except EvaluationError:
            text = ""
        # Kubernetes uses the fixed text for one that is empty, long or has several lines.
        if isinstance(text, str) and text.strip() and "\n" not in text and len(text) <= 5 * 1024:
            return text.strip()
    if rule.rule.get("message"):
        return rule.text
    return f"failed rule: {rule.text}"


def _error(at: Path, value: Any, text: str, rule: Rule) -> FieldError:
    match rule.rule.get("reason"):
        case "FieldValueRequired":
            return at.required(text)
        case "FieldValueForbidden":
            return at.forbidden(text)
        case "FieldValueDuplicate":
            # Without its text, as in Kubernetes.
            if value is _OMITTED:
                return msgspec.structs.replace(at.duplicate(""), body="Duplicate value")
            return at.duplicate(value)
        case _ if value is _OMITTED:
            return FieldError("FieldValueInvalid", str(at), f"Invalid value: {text}")
        case _:
            return at.invalid(value, text)


def rules_of(schema: Any, *, is_root: bool = False) -> Rules | None:
    """Return the rules of a schema; None if there are none in it."""
    if not isinstance(schema, Mapping):
        return None
    inner = {
        name: rules_of(one, is_root=bool(one.get(EMBEDDED)))
        for name, one in (schema.get("properties") or {}).items()
    }
    fields = {name: rules for name, rules in inner.items() if rules is not None}
    values, items = rules_of(schema.get("additionalProperties")), rules_of(schema.get("items"))
    if not (fields or values or items or schema.get("x-kubernetes-validations")):
        return None
    return Rules(schema, is_root, fields, values, items)
