"""Compiled expressions: charged, cached, and not more of them than fit."""

from __future__ import annotations

import pytest

from sully.machinery.cel import (
    CompileError,
    CostBudget,
    CostBudgetExceededError,
    Program,
    Programs,
    UnfinishedError,
    device_environment,
)
from sully.machinery.cel.programs import UNITS_PER_CHARACTER


def test_compiling_is_charged_once() -> None:
    programs, budget = Programs(device_environment), CostBudget(1000)

    results = [programs.get("1 > 0", budget) for _ in range(3)]

    assert isinstance(results[0], Program)
    assert results[0] is results[2]
    assert budget.left == 1000 - 5 * UNITS_PER_CHARACTER


def test_a_failure_is_cached() -> None:
    programs, budget = Programs(device_environment), CostBudget(1000)

    results = [programs.get("1 +", budget) for _ in range(2)]

    assert isinstance(results[0], CompileError)
    assert results[0] is results[1]


def test_what_is_cached_is_bounded_by_its_length() -> None:
    programs = Programs(device_environment, max_characters=12)

    first = programs.compile("1 > 0")
    assert programs.compile("2 > 0") is programs.compile("2 > 0")
    assert programs.compile("1 > 0") is first
    programs.compile("3 > 0")

    assert programs.compile("1 > 0") is not first


def test_a_long_expression_is_work_for_a_thread() -> None:
    programs, budget = Programs(device_environment), CostBudget(per_slice=10)

    with pytest.raises(UnfinishedError) as unfinished:
        programs.get("1 > 0", budget)
    assert unfinished.value.work is not None
    unfinished.value.work()

    assert isinstance(programs.get("1 > 0", budget), Program)


def test_more_than_can_be_cached_exceeds_every_budget() -> None:
    programs = Programs(device_environment, max_characters=8)

    with pytest.raises(CostBudgetExceededError):
        programs.get_all(["1 > 0", "2 > 0"], CostBudget())
