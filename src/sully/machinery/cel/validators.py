"""Mistakes in literals that types do not show: patterns, durations and timestamps.

Kubernetes refuses them when an expression is written, rather than each time it is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from sully.machinery.cel import regex, temporal
from sully.machinery.cel.checker import Checked, Resolution
from sully.machinery.cel.errors import EvaluationError, Issue
from sully.machinery.cel.nodes import Call, Literal, Node

_CHECKS: Final[dict[str, Callable[[str], object]]] = {
    "duration": temporal.parse_duration,
    "timestamp": temporal.parse_timestamp,
    "matches": regex.compiled,
}


def literal_issues(checked: Checked) -> Iterator[Issue]:
    """Yield a problem for every literal argument that cannot be read."""
    for node, reference in checked.references.items():
        if isinstance(node, Call) and isinstance(reference, Resolution):
            test = _CHECKS.get(node.function)
            argument = node.args[-1] if node.args else None
            if test is not None and _is_bad(argument, test):
                assert argument is not None
                yield Issue(argument.pos, f"invalid {node.function} argument")


def _is_bad(argument: Node | None, test: Callable[[str], object]) -> bool:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return False
    try:
        test(argument.value)
    except EvaluationError:
        return True
    return False
