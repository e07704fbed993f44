"""Compiles the expressions of a write in a thread, before validation.

Validation is synchronous, and one object may bring thousands of expressions, or some hundred of ten
thousand characters. Compiled expressions are cached, so validation finds them. Nothing is decided
here: what this misses, or takes for an expression, changes only where time is spent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from sully.api.cluster.selectors import expression_problem
from sully.api.resource.selectors import EXPRESSION_MAX, judge_expression
from sully.machinery.gates import Gates
from sully.machinery.serialization.codec import to_json_if_possible
from sully.server.requests import Request

SHORT: Final = 2048
"""Characters that are compiled on the event loop: some twenty milliseconds at most."""
_DEVICES: Final = frozenset(
    (
        *("deviceclasses", "devicetaintrules", "resourceclaims"),
        *("resourceclaimtemplates", "resourceslicepatches"),
    )
)
# Asked of each value of a body; a union of types takes three times as long.
_CONTAINERS: Final = (dict, list)
_CLUSTERS: Final = frozenset(("placements",))


async def compile_ahead(request: Request, value: Any, gates: Gates) -> None:
    """Compile the expressions in a body, if they are long."""
    plural = request.target.resource.plural
    if (plural not in _DEVICES and plural not in _CLUSTERS) or request.target.subresource:
        return
    expressions = expressions_ahead(value)
    if expressions:
        await asyncio.to_thread(_compile, expressions, gates, clusters=plural in _CLUSTERS)


def expressions_ahead(body: Any) -> set[tuple[str, bool]]:
    """Return the expressions in a body if they are long, else none."""
    encoded = to_json_if_possible(body)
    if encoded is not None and len(encoded) <= SHORT:
        # As nearly always.
        return set()
    expressions = set(expressions_in(body))
    return expressions if sum(len(text) for text, _ in expressions) > SHORT else set()


def expressions_in(body: Any) -> Iterator[tuple[str, bool]]:
    """Yield what may be an expression, and whether it derives an attribute.

    The body is an object or a patch of one, and may be nested deeper than Python nests calls.
    """
    waiting: list[tuple[Any, bool]] = [(body, False)]
    while waiting:
        value, derived = waiting.pop()
        if isinstance(value, list):
            waiting.extend((item, derived) for item in value)
        elif isinstance(value, dict):
            for name, item in value.items():
                # A JSON patch has them as values.
                if name in ("expression", "value") and isinstance(item, str):
                    yield item, derived
                elif name == "celExpressions" and isinstance(item, list):
                    yield from ((text, False) for text in item if isinstance(text, str))
                elif isinstance(item, _CONTAINERS):
                    waiting.append((item, derived or name == "derivedAttributes"))


def _compile(expressions: set[tuple[str, bool]], gates: Gates, *, clusters: bool) -> None:
    for text, derived in expressions:
        if clusters:
            expression_problem(text)
        elif len(text) <= EXPRESSION_MAX:
            judge_expression(text, gates, derived=derived)
