"""Owns expressions in the Common Expression Language: parse, check, estimate, evaluate.

Never knows a kind of the API, keeps a clock or does I/O: what an expression sees is an argument.
Start at `environment.py`; `devices.py` and `clusters.py` have the environments of selectors.
"""

from __future__ import annotations

from sully.machinery.cel.devices import DeviceInput, device_environment, selects
from sully.machinery.cel.environment import (
    DEFAULT_LIMIT,
    Environment,
    Program,
    compile_cached,
)
from sully.machinery.cel.errors import CompileError, CostLimitError, EvaluationError

__all__ = [
    "DEFAULT_LIMIT",
    "CompileError",
    "CostLimitError",
    "DeviceInput",
    "Environment",
    "EvaluationError",
    "Program",
    "compile_cached",
    "device_environment",
    "selects",
]
