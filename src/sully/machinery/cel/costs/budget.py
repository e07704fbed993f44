"""How much the evaluations of one attempt may cost together, and how much of it at a time.

A limit per expression does not bound a pod with hundreds of selectors on hundreds of devices. So
a caller that evaluates for a user has a `CostBudget`, in the cost units of expressions. What is
cached costs nothing: a decision that is interrupted starts again from the beginning and finds
what it evaluated before. A caller in an event loop takes the budget in slices (`UnfinishedError`),
and moves an evaluation that is larger than a slice to a thread (`runtime/evaluation.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from sully.machinery.cel.environment import Program
from sully.machinery.cel.errors import CostLimitError

COST_BUDGET: Final = 100_000_000
"""Kubernetes calls a million units a tenth of a second; its filter timeout is ten seconds."""
SLICE: Final = 20_000
"""Units that are evaluated before others get a turn: a few milliseconds, rarely fifty."""

T = TypeVar("T")


class CostBudgetExceededError(Exception):
    """Evaluating everything would cost more than the budget."""

    def __init__(self, units: int, expression: str) -> None:
        super().__init__(f"evaluation exceeds the budget of {units} cost units")
        self.units = units
        self.expression = expression
        """The one that was to be evaluated when too little was left; empty for other work."""


class UnfinishedError(Exception):
    """The slice is used up; calling again continues.

    With `work`, only after that was done: it may take long, and may be done in a thread.
    """

    def __init__(self, budget: CostBudget, work: Callable[[], None] | None = None) -> None:
        super().__init__("not finished in this slice")
        self.budget = budget
        self.work = work


class _TooLargeError(Exception):
    """An evaluation exceeds its limit."""

    def __init__(self, expression: str) -> None:
        super().__init__(expression)
        self.expression = expression


class Spending:
    """What one piece of work may cost, and has cost."""

    __slots__ = ("limit", "spent")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    def evaluate(self, program: Program, activation: dict[str, Any], limit: int) -> tuple[Any, int]:
        """Evaluate an expression that may cost so much; return the result and what it cost.

        An expression with a bound is not counted while it runs, and costs its bound.
        """
        left = self.limit - self.spent
        if program.cost <= limit:
            self.take(program.cost, program.expression)
            return program.evaluate(activation), program.cost
        try:
            value, cost = program.evaluate_counted(activation, min(limit, left))
        except CostLimitError:
            self.spent += min(limit, left)
            if left < limit:
                raise _TooLargeError(program.expression) from None
            raise
        self.spent += cost
        return value, cost

    def take(self, units: int, expression: str) -> None:
        """Spend units on an expression before the work is done."""
        if units > self.limit - self.spent:
            raise _TooLargeError(expression)
        self.spent += units


class CostBudget:
    """What may still be spent, in all and in this slice."""

    __slots__ = ("_fresh", "_per_slice", "_slice", "left", "memory", "units")

    def __init__(self, units: int = COST_BUDGET, *, per_slice: int | None = None) -> None:
        self.units = units
        self.left = units
        self.memory: dict[object, object] = {}
        """Expensive work, which its caller continues in another slice."""
        self._per_slice = per_slice
        self.resume()

    @property
    def is_sliced(self) -> bool:
        """Report whether work is interrupted by UnfinishedError."""
        return self._per_slice is not None

    def resume(self) -> None:
        """Begin a slice."""
        self._slice = self._per_slice
        self._fresh = True

    def run(self, work: Callable[[Spending], T]) -> T:
        """Evaluate something that is cached afterwards.

        Raises CostBudgetExceededError, or UnfinishedError where there are slices.
        """
        limit = self.left if self._slice is None else min(self.left, self._slice)
        spending = Spending(limit)
        fresh, self._fresh = self._fresh, False
        try:
            return work(spending)
        except _TooLargeError as error:
            if limit == self.left:
                raise CostBudgetExceededError(self.units, error.expression) from None
            raise UnfinishedError(self, self._whole(work) if fresh else None) from None
        finally:
            self.charge(spending.spent)

    def spend(self, units: int) -> None:
        """Charge for work that was done and can go on later.

        Raises CostBudgetExceededError, or UnfinishedError where there are slices.
        """
        self._fresh = False
        self.charge(units)
        if not self.left:
            raise CostBudgetExceededError(self.units, "")
        if self._slice == 0:
            raise UnfinishedError(self)

    def charge(self, units: int) -> None:
        """Take units from the budget."""
        self.left = max(self.left - units, 0)
        if self._slice is not None:
            self._slice = max(self._slice - units, 0)

    def _whole(self, work: Callable[[Spending], T]) -> Callable[[], None]:
        def done() -> None:
            spending = Spending(self.left)
            try:
                work(spending)
            except _TooLargeError:
                # Nothing is left, so the next request fails too.
                spending.spent = self.left
            finally:
                self.charge(spending.spent)

        return done
