"""Owns expressions in the Common Expression Language: parse, check, estimate, evaluate.

Never knows a kind of the API, keeps a clock or does I/O: what an expression sees is an argument.
Start at `environment.py`; `environments/` has those of selectors, `costs/budget.py` bounds what
many evaluations cost together.
"""

from __future__ import annotations

from sully.machinery.cel.costs.budget import (
    COST_BUDGET,
    SLICE,
    CostBudget,
    CostBudgetExceededError,
    Spending,
    UnfinishedError,
)
from sully.machinery.cel.environment import (
    DEFAULT_LIMIT,
    Environment,
    Program,
)
from sully.machinery.cel.environments.devices import (
    DeviceInput,
    as_bool,
    device_environment,
    selects,
)
from sully.machinery.cel.errors import (
    CompileError,
    CostLimitError,
    EvaluationError,
    NoSuchKeyError,
    ProgramError,
)
from sully.machinery.cel.programs import Programs

__all__ = [
    "COST_BUDGET",
    "DEFAULT_LIMIT",
    "SLICE",
    "CompileError",
    "CostBudget",
    "CostBudgetExceededError",
    "CostLimitError",
    "DeviceInput",
    "Environment",
    "EvaluationError",
    "NoSuchKeyError",
    "Program",
    "ProgramError",
    "Programs",
    "Spending",
    "UnfinishedError",
    "as_bool",
    "device_environment",
    "selects",
]
