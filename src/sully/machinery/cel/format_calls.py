"""Calls of `format` on a literal: Kubernetes checks their clauses when an expression is compiled.

What a clause does is in library/formatting.py. Texts and places of the errors are those of cel-go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sully.machinery.cel.checker import Checked
from sully.machinery.cel.errors import Issue
from sully.machinery.cel.library.formatting import RULES, name_of, unrecognized
from sully.machinery.cel.syntax.nodes import Call, ListNode, Literal, MapNode, Node
from sully.machinery.cel.types import Type

_CLAUSE: Final = re.compile(r"%(?:(%)|(\.[0-9]*)?(.)?)", re.DOTALL)
_NOT_PARSED: Final = "could not parse formatting clause: "
_PRECISION: Final = f"{_NOT_PARSED}error while parsing precision: "
_INTEGERS: Final = frozenset(("int", "uint"))
# The texts NaN and Infinity are numbers too.
_NUMBERS: Final = frozenset(("double", "string"))
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "s": _INTEGERS
    | _NUMBERS
    | {"bool", "bytes", "map", "list", "type", "duration", "timestamp", "null"},
    "d": _INTEGERS,
    "f": _NUMBERS,
    "e": _NUMBERS,
    "b": _INTEGERS | {"bool"},
    "x": _INTEGERS | {"bytes", "string"},
    "X": _INTEGERS | {"bytes", "string"},
    "o": _INTEGERS,
}


def format_issues(checked: Checked) -> Iterator[Issue]:
    """Yield the first problem of every call of `format` whose template and list are literals."""
    for node in checked.references:
        if not isinstance(node, Call) or node.function != "format" or len(node.args) != 1:
            continue
        template, values = node.target, node.args[0]
        if isinstance(template, Literal) and isinstance(values, ListNode):
            text = str(template.value)
            yield from _first_issue(node, text, values.elements, checked.types)


def _first_issue(
    call: Call, template: str, values: Sequence[Node], types: Mapping[Node, Type]
) -> Iterator[Issue]:
    index = 0
    for clause in _CLAUSE.finditer(template):
        percent, precision, verb = clause.groups()
        if percent:
            continue
        problem = _problem(index < len(values), index, precision, verb)
        if problem:
            yield Issue(call.pos, problem)
            return
        wrong = _mistyped(values[index], verb, types)
        if wrong is not None:
            actual = name_of(types[wrong])
            yield Issue(wrong.pos, f"error during formatting: {RULES[verb]}, was given {actual}")
            return
        index += 1
    if index < len(values):
        counts = f"(expected {index}, got {len(values)})"
        yield Issue(call.pos, f"too many arguments supplied to string.format {counts}")


def _problem(has_value: bool, index: int, precision: str | None, verb: str | None) -> str:
    if precision is None and verb is None:
        return "unexpected end of string"
    if not has_value:
        return f"index {index} out of range"
    if verb is None:
        return f"{_PRECISION}could not find end of precision specifier"
    if precision == ".":
        failed = 'error while converting precision to integer: strconv.Atoi: parsing ""'
        return f"{_PRECISION}{failed}: invalid syntax"
    return "" if verb in _KINDS else unrecognized(verb)


def _mistyped(node: Node, verb: str, types: Mapping[Node, Type]) -> Node | None:
    """Return what a clause does not accept: a value, or for `%s` one inside of a literal."""
    if not types[node].is_dyn and types[node].kind not in _KINDS[verb]:
        return node
    inside: list[Node] = []
    if verb == "s" and isinstance(node, ListNode):
        inside = list(node.elements)
    elif verb == "s" and isinstance(node, MapNode):
        inside = [part for entry in node.entries for part in (entry.key, entry.value)]
    mistyped = (_mistyped(part, verb, types) for part in inside)
    return next((part for part in mistyped if part is not None), None)
