"""Adds probes to the syntax tree of a module: before each statement, and on each branch.

A probe is `_hits_[17] = 1`. It stands for one or more arcs, as coverage.py calls the step from one
line to the next: `(12, 13)` if the condition of line 12 holds, `(12, OTHERWISE)` if it does not,
and `(12, 12)` for line 12 itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile

Arc = tuple[int, int]
OTHERWISE = 0
"""The line after a branch that is not taken: coverage.py knows which one that is."""

_HITS = "_hits_"
_Branching = ast.If | ast.For | ast.AsyncFor | ast.While
_Defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def instrumented(source: bytes, path: str) -> tuple[ast.Module, list[list[Arc]]]:
    """Return a module with probes, and the arcs that each of them stands for."""
    tree = ast.parse(source, path)
    first = len(list(takewhile(_has_to_be_first, tree.body)))
    probes = _Probes()
    imported = [probes.probe([(statement.lineno,) * 2]) for statement in tree.body[:first]]
    body = probes.block(tree.body[first:])
    start = f"from probes.importer import hits as {_HITS}\n"
    start += f"{_HITS} = {_HITS}({path!r}, {len(probes.arcs)})"
    tree.body = [*tree.body[:first], *ast.parse(start).body, *imported, *body]
    return ast.fix_missing_locations(tree), probes.arcs


def _has_to_be_first(statement: ast.stmt) -> bool:
    return _is_text(statement) or (
        isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
    )


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Probes(ast.NodeVisitor):
    def __init__(self) -> None:
        self.arcs: list[list[Arc]] = []

    def probe(self, arcs: Iterable[Arc]) -> ast.stmt:
        """Return a statement that notes the execution of some arcs."""
        self.arcs.append(list(arcs))
        made = ast.parse(f"{_HITS}[{len(self.arcs) - 1}] = 1").body[0]
        # A line that exists: tracebacks and warnings may show it.
        return _at(made, self.arcs[-1][0][0])

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return statements with a probe before each."""
        made: list[ast.stmt] = []
        for statement in statements:
            self.visit(statement)
            made += [self.probe((line, line) for line in _lines(statement)), statement]
        return made

    def generic_visit(self, node: ast.AST) -> None:
        # Statements have their parts in these fields; expressions contain no statements.
        for field in ("body", "orelse", "finalbody"):
            inside = getattr(node, field, None)
            if isinstance(inside, list) and inside:
                setattr(node, field, self.block(inside))

    def _visit_definition(self, node: _Defining) -> None:
        # A docstring, and the names of another scope, come before everything.
        first = int(_is_text(node.body[0])) + sum(
            isinstance(statement, ast.Global | ast.Nonlocal) for statement in node.body
        )
        node.body = [*node.body[:first], *self.block(node.body[first:])]

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _visit_definition  # noqa: N815 - of the base

    def _visit_branch(self, node: _Branching) -> None:
        taken = self.probe([(node.lineno, _lines(node.body[0])[0])])
        skipped = self.probe([(node.lineno, OTHERWISE)])
        self.generic_visit(node)
        node.body.insert(0, taken)
        node.orelse.insert(0, skipped)

    visit_If = visit_For = visit_AsyncFor = visit_While = _visit_branch  # noqa: N815 - of the base

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        # An exception that a clause catches was compared with all clauses before.
        lines = [handler.lineno for handler in node.handlers]
        for number, handler in enumerate(node.handlers):
            entered = (handler.lineno, _lines(handler.body[0])[0])
            probe = self.probe([*pairwise(lines[: number + 1]), entered])
            handler.body = [probe, *self.block(handler.body)]
        self.generic_visit(node)

    visit_TryStar = visit_Try  # noqa: N815 - of the base

    def visit_Match(self, node: ast.Match) -> None:
        lines = [case.pattern.lineno for case in node.cases]
        last = node.cases[-1]
        for number, case in enumerate(node.cases):
            entered = (case.pattern.lineno, _lines(case.body[0])[0])
            probe = self.probe([*pairwise(lines[: number + 1]), entered])
            case.body = [probe, *self.block(case.body)]
        if last.guard is not None or not _matches_everything(last.pattern):
            none = self.probe([*pairwise(lines), (lines[-1], OTHERWISE)])
            node.cases.append(ast.match_case(ast.MatchAs(), None, [none]))


def _at(probe: ast.stmt, line: int) -> ast.stmt:
    for node in ast.walk(probe):
        if isinstance(node, ast.expr | ast.stmt):
            node.lineno = node.end_lineno = line
    return probe


def _lines(statement: ast.stmt) -> list[int]:
    """Return the lines that coverage.py counts: decorators have their own."""
    decorators = statement.decorator_list if isinstance(statement, _Defining) else []
    return [*(decorator.lineno for decorator in decorators), statement.lineno]


def _matches_everything(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return _matches_everything(pattern.patterns[-1])
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None or _matches_everything(pattern.pattern)
    return False
