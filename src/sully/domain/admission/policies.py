"""What a ValidatingAdmissionPolicy decides about a write it matches.

Follows Kubernetes 1.37: match conditions first, then every validation, then audit annotations. All
of it may cost `COST_BUDGET` units for one policy, binding and parameter, in the cost units of
expressions: some tenths of a second at most. Kubernetes allows a hundred times as many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from sully.api.admissionregistration.types import FAIL, IGNORE
from sully.domain.admission.matching import Match, compile_match
from sully.machinery.cel import CompileError, CostLimitError, EvaluationError
from sully.machinery.cel.admission import Expressions, PolicyInput, Variables
from sully.machinery.cel.environment import Program
from sully.machinery.cel.types import BOOL, NULL_TYPE, STRING
from sully.machinery.cel.values import type_of
from sully.machinery.errors import joined

Obj = Mapping[str, Any]
COST_BUDGET: Final = 100_000
MESSAGE_MAX: Final = 5 * 1024
ANNOTATION_MAX: Final = 10 * 1024
_EXHAUSTED = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class Failure(msgspec.Struct, frozen=True):
    """A validation that failed: its place, and the message and reason that clients get."""

    index: int
    message: str
    reason: str = "Invalid"


class Verdict(msgspec.Struct):
    """What a policy decided about a write with one parameter."""

    failures: list[Failure] = msgspec.field(default_factory=list)
    """These lead to the actions of the binding."""
    errors: list[Failure] = msgspec.field(default_factory=list)
    """These deny the write, whatever the actions are."""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


_Compiled = Program | CompileError


class _Validation(msgspec.Struct, frozen=True):
    program: _Compiled
    message: Program | None
    text: str
    reason: str
    expression: str


class Policy:
    """A policy with its expressions compiled."""

    def __init__(self, obj: Obj) -> None:
        spec = obj["spec"]
        self.name: str = obj["metadata"]["name"]
        self.generation = obj["metadata"].get("generation")
        self.param_kind: Obj | None = spec.get("paramKind")
        self.fails: bool = spec.get("failurePolicy", FAIL) != IGNORE
        self.match: Match = compile_match(spec.get("matchConstraints"))
        compiler = Expressions(self.param_kind is not None)
        self._conditions = [
            (one["expression"].strip(), _compiled(compiler, one["expression"], composed=False))
            for one in spec.get("matchConditions", ())
        ]
        self._variables: dict[str, _Compiled] = {}
        for variable in spec.get("variables", ()):
            name, expression = variable["name"], variable["expression"]
            self._variables[name] = _compiled_variable(compiler, name, expression)
        self._validations = [_validation(compiler, one) for one in spec.get("validations", ())]
        self._annotations = [
            (one["key"], one["valueExpression"], _compiled_value(compiler, one["valueExpression"]))
            for one in spec.get("auditAnnotations", ())
        ]

    def decide(self, request: PolicyInput) -> Verdict:
        """Evaluate the policy for a write."""
        evaluation = _Evaluation(request, self._variables)
        verdict = Verdict()
        try:
            if not self._applies(evaluation):
                return verdict
            for index, validation in enumerate(self._validations):
                if (failure := self._check(evaluation, index, validation)) is not None:
                    verdict.failures.append(failure)
            self._annotate(evaluation, verdict)
        except _PolicyError as error:
            verdict.failures = [Failure(0, str(error))] if self.fails else []
        return verdict

    def _applies(self, evaluation: _Evaluation) -> bool:
        """Evaluate the match conditions: one that is false counts for more than one that fails."""
        problems = []
        for expression, program in self._conditions:
            try:
                if evaluation.run(program, expression) is False:
                    return False
            except _ExpressionError as error:
                problems.append(str(error))
        if problems and self.fails:
            raise _PolicyError(joined(problems))
        return not problems

    def _check(
        self, evaluation: _Evaluation, index: int, validation: _Validation
    ) -> Failure | None:
        try:
            passed = evaluation.run(validation.program, validation.expression) is True
        except _ExpressionError as error:
            return Failure(index, str(error)) if self.fails else None
        if passed:
            return None
        message = evaluation.message(validation.message) or validation.text
        message = message or f"failed expression: {validation.expression.strip()}"
        return Failure(index, message, validation.reason)

    def _annotate(self, evaluation: _Evaluation, verdict: Verdict) -> None:
        for key, expression, program in self._annotations:
            try:
                value = evaluation.run(program, expression)
            except _ExpressionError as error:
                if self.fails:
                    verdict.errors.append(Failure(0, str(error)))
                continue
            if isinstance(value, str) and value.strip():
                verdict.annotations[key] = value.strip()[:ANNOTATION_MAX]
            elif value is not None and not isinstance(value, str):
                text = (
                    f"valueExpression '{expression}' resulted in unsupported return type:"
                    f" {type_of(value)}. Return type must be either string or null."
                )
                verdict.errors.append(Failure(0, text))


class _PolicyError(Exception):
    """The policy cannot be evaluated as a whole."""


class _ExpressionError(Exception):
    """One expression failed."""


class _Evaluation:
    """The evaluations of one policy for one write, and what they may still cost."""

    def __init__(self, request: PolicyInput, variables: Mapping[str, _Compiled]) -> None:
        self._activation = request.activation()
        self._left = COST_BUDGET
        self._variables = Variables(variables, self._activation, COST_BUDGET)
        self._activation["variables"] = self._variables

    def run(self, program: _Compiled, expression: str) -> Any:
        """Return the value of an expression."""
        if isinstance(program, CompileError):
            raise _ExpressionError(f"compilation error: {program.detail}")
        before = self._variables.spent
        try:
            value, cost = program.evaluate_counted(self._activation, self._left)
        except EvaluationError as error:
            if isinstance(error, CostLimitError) and self._left < COST_BUDGET:
                raise _PolicyError(_EXHAUSTED) from None
            text = f"expression '{expression}' resulted in error: {error}"
            raise _ExpressionError(text) from None
        self._left -= cost + self._variables.spent - before
        if self._left < 0:
            raise _PolicyError(_EXHAUSTED)
        return value

    def message(self, program: Program | None) -> str:
        """Return the text of a message expression; empty if it has none that can be shown."""
        if program is None:
            return ""
        try:
            value = self.run(program, program.expression)
        except _ExpressionError:
            return ""
        text = value.strip() if isinstance(value, str) else ""
        return "" if len(text.encode()) > MESSAGE_MAX or "\n" in text else text


def _validation(compiler: Expressions, validation: Obj) -> _Validation:
    message: Program | None = None
    if validation.get("messageExpression", "").strip():
        try:
            message = compiler.compile(validation["messageExpression"], STRING, authorizer=False)
        except CompileError:
            message = None
    return _Validation(
        _compiled(compiler, validation["expression"]),
        message,
        validation.get("message", "").strip(),
        validation.get("reason", "Invalid"),
        validation["expression"],
    )


def _compiled(compiler: Expressions, expression: str, *, composed: bool = True) -> _Compiled:
    try:
        return compiler.compile(expression, BOOL, composed=composed)
    except CompileError as error:
        return error


def _compiled_value(compiler: Expressions, expression: str) -> _Compiled:
    try:
        return compiler.compile(expression.strip(), STRING, NULL_TYPE)
    except CompileError as error:
        return error


def _compiled_variable(compiler: Expressions, name: str, expression: str) -> _Compiled:
    try:
        return compiler.compile_variable(name, expression)
    except CompileError as error:
        return error
