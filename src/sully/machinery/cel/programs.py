"""Compiled expressions, cached within bounds of memory, and charged to a budget.

To compile ten thousand characters takes up to a tenth of a second, and the program takes three
megabytes. So compiling is part of what an attempt may cost, and the cache is bounded by
the length of the expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from sully.machinery.cel.costs.budget import CostBudget, CostBudgetExceededError, Spending
from sully.machinery.cel.environment import Environment, Program
from sully.machinery.cel.errors import CompileError

UNITS_PER_CHARACTER: Final = 20
MAX_CHARACTERS: Final = 256 * 1024
"""Characters of all cached expressions: thousands of ordinary ones."""


class Programs:
    """The programs of one environment; a failure is cached too."""

    def __init__(
        self, environment: Callable[[], Environment], max_characters: int = MAX_CHARACTERS
    ) -> None:
        self._environment = environment
        self._max_characters = max_characters
        self._programs: dict[str, Program | CompileError] = {}
        self._characters = 0

    def get(self, expression: str, budget: CostBudget) -> Program | CompileError:
        """Return a program, or what is wrong with it; raise what the budget raises."""
        program = self._programs.get(expression)
        if program is None:
            program = budget.run(partial(self.compile, expression))
        return program

    def get_all(self, expressions: Iterable[str], budget: CostBudget) -> None:
        """Compile expressions that are needed together; raise what the budget raises."""
        distinct = set(expressions)
        if sum(map(len, distinct)) > self._max_characters:
            raise CostBudgetExceededError(budget.units, max(distinct, key=len))
        for expression in sorted(distinct):
            self.get(expression, budget)

    def compile(self, expression: str, spending: Spending | None = None) -> Program | CompileError:
        """Compile an expression, or return it from the cache."""
        program = self._programs.get(expression)
        if program is not None:
            return program
        if spending is not None:
            spending.take(len(expression) * UNITS_PER_CHARACTER, expression)
        try:
            program = self._environment().compile(expression)
        except CompileError as error:
            program = error
        if self._characters + len(expression) > self._max_characters:
            self._programs, self._characters = {}, 0
        self._programs[expression] = program
        self._characters += len(expression)
        return program
