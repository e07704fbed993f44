"""What evaluations may cost together, and what happens when they cost more."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from sully.machinery.cel import (
    CostBudget,
    CostBudgetExceededError,
    CostLimitError,
    DeviceInput,
    Program,
    Spending,
    UnfinishedError,
    device_environment,
)
from sully.machinery.cel.environments.clusters import cluster_environment, cluster_input

TEN = "[0,1,2,3,4,5,6,7,8,9]"
BOUNDED = device_environment().compile(f"{TEN}.all(a, {TEN}.all(b, true))")
"""Its cost is known before it runs."""
COUNTED = cluster_environment().compile("managedCluster.metadata.labels.all(key, key != 'x')")
"""Its cost depends on the cluster."""
DEVICE = DeviceInput("gpu.example.com")
CLUSTER: dict[str, Any] = dict(
    cluster_input({"metadata": {"name": "c1", "labels": dict.fromkeys("abcdefgh", "")}})
)
COST = COUNTED.evaluate_counted(CLUSTER, COUNTED.limit)[1]


class Answers:
    """Evaluates one expression for several inputs, and records what came out."""

    def __init__(self, program: Program, activation: dict[str, Any]) -> None:
        self._program = program
        self._activation = activation
        self.known: dict[int, Any] = {}

    def ask(self, number: int, budget: CostBudget) -> Any:
        if number not in self.known:
            budget.run(partial(self._evaluate, number))
        return self.known[number]

    def _evaluate(self, number: int, spending: Spending) -> None:
        limit = self._program.limit
        self.known[number] = spending.evaluate(self._program, self._activation, limit)[0]


@dataclass(frozen=True)
class Case:
    units: int
    asked: int
    want: int
    """How many are answered."""


CASES = {
    "nothing": Case(units=0, asked=1, want=0),
    "one unit too few": Case(units=3 * COST - 1, asked=3, want=2),
    "exactly": Case(units=3 * COST, asked=3, want=3),
    "more than enough": Case(units=10 * COST, asked=3, want=3),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_budget(case: Case) -> None:
    answers, budget = Answers(COUNTED, CLUSTER), CostBudget(case.units)

    with suppress(CostBudgetExceededError):
        for number in range(case.asked):
            answers.ask(number, budget)

    assert len(answers.known) == case.want


def test_what_exceeds_the_budget_is_named() -> None:
    with pytest.raises(CostBudgetExceededError) as exceeded:
        Answers(COUNTED, CLUSTER).ask(0, CostBudget(1))

    assert str(exceeded.value) == "evaluation exceeds the budget of 1 cost units"
    assert exceeded.value.expression == COUNTED.expression


def test_what_is_cached_costs_nothing() -> None:
    answers, budget = Answers(COUNTED, CLUSTER), CostBudget(COST)

    assert [answers.ask(0, budget) for _ in range(3)] == [True] * 3
    assert budget.left == 0


def test_a_bounded_expression_costs_its_bound() -> None:
    budget = CostBudget(BOUNDED.cost + 1)

    Answers(BOUNDED, DEVICE).ask(0, budget)

    assert budget.left == 1


def test_an_expression_beyond_its_own_limit_is_an_answer() -> None:
    spending = Spending(10 * COST)

    with pytest.raises(CostLimitError):
        spending.evaluate(COUNTED, CLUSTER, COST - 1)
    assert spending.spent == COST - 1


@pytest.mark.parametrize("program", [BOUNDED, COUNTED], ids=["bounded", "counted"])
@pytest.mark.parametrize("slices", [0.1, 0.9, 1, 1.5, 3, 100])
def test_slices_come_to_the_same_end(program: Program, slices: float) -> None:
    cost = BOUNDED.cost if program is BOUNDED else COST
    answers = Answers(program, DEVICE if program is BOUNDED else CLUSTER)
    budget = CostBudget(per_slice=int(slices * cost))
    works = []

    while len(answers.known) < 7:
        try:
            for number in range(7):
                answers.ask(number, budget)
        except UnfinishedError as unfinished:
            works.append(unfinished.work)
            if unfinished.work is not None:
                unfinished.work()
            budget.resume()

    assert set(answers.known.values()) == {True}
    assert len(works) == (7 if slices < 1 else -(-7 // int(slices)) - 1)
    # What never fits into a slice is work for a thread.
    assert all((work is None) == (slices >= 1) for work in works)


def test_work_that_is_too_large_for_the_budget() -> None:
    answers, budget = Answers(COUNTED, CLUSTER), CostBudget(COST - 1, per_slice=COST // 2)

    with pytest.raises(UnfinishedError) as interrupted:
        answers.ask(0, budget)
    assert interrupted.value.work is not None
    interrupted.value.work()
    budget.resume()

    with pytest.raises(CostBudgetExceededError):
        answers.ask(0, budget)
