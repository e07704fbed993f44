"""Whether selectors and expressions in a spec can work, and the warning if not.

OCM accepts all of them and fails later; here the client gets a warning immediately.
"""

from typing import Any

from sully.machinery.cel.environments.clusters import cluster_environment
from sully.machinery.cel.errors import CompileError
from sully.machinery.memo import memoized
from sully.machinery.selectors import labels

Obj = dict[str, Any]

EXPRESSION_MAX = 16 * 1024
"""Longer expressions are not compiled while their author waits."""


def selector_problem(selector: Obj) -> str:
    """Return what is wrong with a selector of labels or claims, empty if nothing is."""
    try:
        labels.from_object(selector)
    except labels.SelectorError as error:
        return str(error)
    return ""


def expression_problem(expression: str) -> str:
    """Return what is wrong with an expression over a cluster, empty if nothing is."""
    if len(expression) > EXPRESSION_MAX:
        return f"longer than {EXPRESSION_MAX} characters, and so not checked"
    return _compile_problem(expression)


@memoized(4096)
def _compile_problem(expression: str) -> str:
    try:
        cluster_environment().compile(expression)
    except CompileError as error:
        return error.detail
    return ""
