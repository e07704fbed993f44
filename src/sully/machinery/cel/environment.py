"""Environments compile expressions; programs evaluate them.

An environment defines which variables, types and functions exist and what an expression may cost.
It is immutable, and so are the programs it makes: both may be shared between threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sully.machinery.cel import regex, temporal
from sully.machinery.cel.checker import Checked, Resolution, Variable, check
from sully.machinery.cel.costs.estimate import estimate
from sully.machinery.cel.costs.metering import Meter, metered
from sully.machinery.cel.declarations import Library, SizeEstimate
from sully.machinery.cel.errors import CompileError, EvaluationError, Issue, ProgramError, render
from sully.machinery.cel.evaluation.planner import Plan, plan
from sully.machinery.cel.format_calls import format_issues
from sully.machinery.cel.library.conversions import OF_TEXT
from sully.machinery.cel.syntax.macros import Expand, expand
from sully.machinery.cel.syntax.nodes import Call, Literal, Node
from sully.machinery.cel.syntax.parser import MAX_DEPTH, parse
from sully.machinery.cel.types import Type

DEFAULT_LIMIT: Final = 1_000_000
_DECLARED: Final = {
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "null": "null_type",
    "any": "google.protobuf.Any",
}


_LITERAL_CHECKS: Final[dict[str, Callable[[str], object]]] = {
    "duration": temporal.parse_duration,
    "timestamp": temporal.parse_timestamp,
    "matches": regex.compiled,
}


@dataclass(frozen=True, eq=False)
class Environment:
    """The declarations for expressions, and their required result types."""

    library: Library
    variables: Mapping[str, Type] = field(default_factory=dict)
    objects: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    sizes: Mapping[str, SizeEstimate] = field(default_factory=dict)
    # An expression must have one of these types, named in the error as `expects`; without any,
    # any will do.
    results: tuple[Type, ...] = ()
    expects: str = "bool or the unknown type"
    limit: int = DEFAULT_LIMIT
    container: str = ""
    homogeneous: bool = True
    # Patterns, durations and timestamps written in the expression are read when it is compiled.
    validated: bool = True
    # Calls of `format` are checked when it is compiled, as far as their arguments are known.
    checks_formats: bool = True
    expand: Expand = expand

    def compile(self, expression: str) -> Program:
        """Return the program of an expression; raise CompileError."""
        return self._compile(expression, lenient=False)

    def compile_unchecked(self, expression: str) -> Program:
        """Return the program of an expression without looking at types beforehand."""
        return self._compile(expression, lenient=True)

    def _compile(self, expression: str, *, lenient: bool) -> Program:
        root = parse(expression, self.expand)
        try:
            checked = self._checked(root, expression, lenient=lenient)
            if not lenient:
                self._check_result(checked)
            if self.validated:
                _check_patterns(checked)
                _check_conversions(checked)
            return Program(expression, checked, estimate(checked, self.sizes), self.limit)
        except RecursionError:
            deep = Issue(-1, f"expression recursion limit exceeded: {MAX_DEPTH}")
            raise CompileError(render([deep], expression)) from None

    def _checked(self, root: Node, expression: str, *, lenient: bool) -> Checked:
        checked, issues = check(root, self, lenient=lenient)
        if not issues:
            literal_issues = _literal_issues(checked) if self.validated else ()
            issues = [*literal_issues, *(format_issues(checked) if self.checks_formats else ())]
        if issues:
            raise CompileError(render(issues, expression))
        return checked

    def _check_result(self, checked: Checked) -> None:
        type_ = checked.types[checked.root]
        if self.results and type_ not in self.results:
            text = f"must evaluate to {self.expects}, not {_named(type_)}"
            raise CompileError(text, syntax=False)


def _literal_issues(checked: Checked) -> Iterator[Issue]:
    """Yield a problem for every invalid pattern, duration and timestamp in a literal.

    Kubernetes rejects them when an expression is compiled, not when it is evaluated.
    """
    for node, reference in checked.references.items():
        if isinstance(node, Call) and isinstance(reference, Resolution):
            test = _LITERAL_CHECKS.get(node.function)
            # Of a function, Kubernetes looks at the first argument, even if another is the pattern.
            argument = node.args[0] if node.args else None
            if test is not None and _is_invalid(argument, test):
                assert argument is not None
                yield Issue(argument.pos, f"invalid {node.function} argument")


def _check_patterns(checked: Checked) -> None:
    """Reject patterns that are only read when the program is made; raises ProgramError."""
    for node in checked.references:
        if isinstance(node, Call) and node.function == "matches" and len(node.args) == 2:
            pattern = node.args[1]
            if isinstance(pattern, Literal) and isinstance(pattern.value, str):
                try:
                    regex.compiled(pattern.value)
                except EvaluationError as error:
                    raise ProgramError(str(error)) from None


def _check_conversions(checked: Checked) -> None:
    """Reject literals that cannot be converted, which happens when the program is made."""
    for node in checked.references:
        kind = node.function if isinstance(node, Call) and len(node.args) == 1 else ""
        convert = OF_TEXT.get(kind)
        argument = node.args[0] if isinstance(node, Call) and node.args else None
        if convert is not None and _is_invalid(argument, convert):
            raise ProgramError(f"type conversion error from 'string' to '{kind}'")


def _is_invalid(argument: Node | None, test: Callable[[str], object]) -> bool:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return False
    try:
        test(argument.value)
    except EvaluationError:
        return True
    return False


def _named(type_: Type) -> str:
    """Return a type as the API names it, which is longer than in the checker's messages."""
    if not type_.params:
        return _DECLARED.get(type_.kind, type_.name)
    return f"{type_.name}({', '.join(map(_named, type_.params))})"


class Program:
    """A compiled expression."""

    __slots__ = ("_checked", "_metered", "_plan", "cost", "evaluate", "expression", "limit")

    def __init__(self, expression: str, checked: Checked, cost: int, limit: int) -> None:
        self.expression = expression
        # The most that an evaluation can cost, from the sizes the environment declares.
        self.cost = cost
        self._checked = checked
        self.limit = limit
        self._plan: Plan = plan(checked)
        self._metered: Plan | None = None
        # What cannot exceed the limit is not counted while it runs.
        self.evaluate: Plan = self._plan if cost <= limit else self._evaluate_counted

    @property
    def type(self) -> Type:
        """Return the type of the result, as far as it is known beforehand."""
        return self._checked.types[self._checked.root]

    def refers_to(self, name: str) -> bool:
        """Report whether the expression reads a variable of the environment."""
        return any(
            isinstance(reference, Variable) and reference.name == name and not reference.local
            for reference in self._checked.references.values()
        )

    def _evaluate_counted(self, activation: dict[str, Any]) -> Any:
        return self.evaluate_counted(activation, self.limit)[0]

    def evaluate_counted(self, activation: dict[str, Any], limit: int) -> tuple[Any, int]:
        """Return the result and what it cost; raise CostLimitError beyond the limit."""
        if self._metered is None:
            self._metered = metered(self._checked)
        meter = Meter(limit)
        value = self._metered({**activation, Meter.KEY: meter})
        return value, meter.cost
