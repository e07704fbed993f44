"""What functions cost in the worst case, given how large their arguments can be.

The numbers are those of Kubernetes and cel-go: they decide which expressions the API accepts, so
they are kept even where they look odd. `estimate` uses this for every call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

from sully.machinery.cel.costs.sizes import (
    MOST,
    NOTHING,
    ONE,
    REGEX,
    TRAVERSAL,
    UNKNOWN,
    CallCost,
    Range,
)
from sully.machinery.cel.syntax.nodes import Literal, Node
from sully.machinery.cel.types import Type

_ADDRESS: Final = Range(4, 16)
_NAME_PATTERN: Final = 128
_FORMAT_SIZE: Final = 64


class Argument(Protocol):
    """What is known about an argument of a call."""

    @property
    def node(self) -> Node:
        """Return the expression."""

    @property
    def type(self) -> Type:
        """Return its type."""

    @property
    def size(self) -> Range:
        """Return its size, or UNKNOWN."""

    @property
    def element(self) -> Range:
        """Return the size of its elements, or UNKNOWN."""


Target = Argument | None
Args = list[Argument]
_Rule = Callable[[str, Target, Args], CallCost | None]


def call_cost(function: str, overload: str, target: Target, args: Args) -> CallCost | None:
    """Return the cost of a call, or None for the default of one unit."""
    rule = _RULES.get(function)
    cost = rule(overload, target, args) if rule is not None else None
    if cost is not None:
        return cost
    standard = _STANDARD.get(overload)
    return standard(target, args) if standard is not None else None


def _fixed(_: str, __: Target, ___: Args) -> CallCost:
    return CallCost(ONE)


def _list_walk(_: str, target: Target, __: Args) -> CallCost | None:
    if target is None:
        return None
    if not target.type.params:
        return CallCost(target.size.scaled(TRAVERSAL))
    per_element = ONE
    if target.type.params[0].kind in ("string", "bytes"):
        per_element = per_element.plus(target.element.scaled(TRAVERSAL))
    return CallCost(target.size.times(per_element))


def _url(_: str, __: Target, args: Args) -> CallCost | None:
    if len(args) != 1:
        return None
    return CallCost(args[0].size.scaled(TRAVERSAL), args[0].size)


def _walk(_: str, target: Target, __: Args) -> CallCost | None:
    if target is None:
        return None
    return CallCost(target.size.scaled(TRAVERSAL), target.size)


def _replace(_: str, target: Target, args: Args) -> CallCost | None:
    if target is None or len(args) < 2:
        return None
    size = _replaced(target.size, args[0].size, args[1].size)
    return CallCost(target.size.scaled(2 * TRAVERSAL), size)


def _replaced(size: Range, old: Range, new: Range) -> Range:
    """Return how long a text can be after replacing a part of it everywhere."""
    if old.low == 0:
        most_count, most_retained = min(size.high + 1, MOST), size.high
    elif new.high <= old.low:
        most_count, most_retained = 0, size.high
    else:
        most_count, most_retained = math.ceil(size.high / old.low), 0
    if old.high == 0:
        least_count, least_retained = min(size.low + 1, MOST), size.low
    elif old.high <= new.low:
        least_count, least_retained = 0, size.low
    else:
        least_count, least_retained = math.ceil(size.low / old.high), 0
    return Range(least_count, most_count).times(new).plus(Range(least_retained, most_retained))


def _split(_: str, target: Target, args: Args) -> CallCost | None:
    if target is None:
        return None
    largest = target.size.high
    if len(args) > 1:
        limit = args[1].node
        if isinstance(limit, Literal) and isinstance(limit.value, int):
            # A negative limit, which means none, counts as the maximum.
            largest = limit.value % (MOST + 1)
    return CallCost(target.size.scaled(2 * TRAVERSAL), Range(0, largest))


def _join(_: str, target: Target, args: Args) -> CallCost | None:
    if target is None:
        return None
    size = target.size.times(target.element) if target.type.params else NOTHING
    if args:
        gaps = Range(max(target.size.low - 1, 0), max(target.size.high - 1, 0))
        size = size.plus(args[0].size.times(gaps))
    return CallCost(size.scaled(TRAVERSAL), size)


def _find(_: str, target: Target, args: Args) -> CallCost | None:
    if target is None or not args:
        return None
    text = target.size.plus(ONE).scaled(TRAVERSAL)
    return CallCost(text.times(args[0].size.scaled(REGEX)), Range(0, target.size.high))


def _parsed_member(_: str, target: Target, args: Args) -> CallCost | None:
    # Called as plain functions these cost one unit: Kubernetes looks for a target and finds none.
    return None if target is None else CallCost(args[0].size.scaled(TRAVERSAL))


def _ip(overload: str, target: Target, args: Args) -> CallCost | None:
    if target is None:
        return None
    if overload == "cidr_ip" or not args:
        return CallCost(ONE)
    return CallCost(args[0].size.scaled(TRAVERSAL))


def _canonical(_: str, target: Target, args: Args) -> CallCost | None:
    return None if target is None else CallCost(args[0].size.scaled(2 * TRAVERSAL))


def _contains_ip(overload: str, target: Target, args: Args) -> CallCost | None:
    if target is None or not args:
        return None
    cost = _ADDRESS.plus(_ADDRESS).scaled(TRAVERSAL)
    if overload == "cidr_contains_ip_string":
        cost = cost.plus(args[0].size.scaled(TRAVERSAL))
    return CallCost(cost)


def _contains_cidr(overload: str, target: Target, args: Args) -> CallCost | None:
    if target is None or not args:
        return None
    cost = _ADDRESS.plus(_ADDRESS).scaled(TRAVERSAL)
    cost = cost.plus(_ADDRESS.scaled(TRAVERSAL)).plus(ONE)
    if overload == "cidr_contains_cidr_string":
        cost = cost.plus(args[0].size.scaled(TRAVERSAL))
    return CallCost(cost)


def _validate(_: str, target: Target, args: Args) -> CallCost | None:
    if target is None:
        return None
    return CallCost(args[0].size.scaled(TRAVERSAL).scaled(_NAME_PATTERN * REGEX))


def _equal(_: str, __: Target, args: Args) -> CallCost | None:
    if len(args) != 2 or args[0].type != args[1].type:
        return None
    name = args[0].type.name
    if name in _CONSTANT_EQUALITY:
        return CallCost(ONE)
    if name == "kubernetes.NamedFormat":
        return CallCost(Range(1, _FORMAT_SIZE).scaled(TRAVERSAL))
    if name == "kubernetes.URL":
        size = args[1].size
        return CallCost(Range(1, 1 if size == UNKNOWN else size.high).scaled(TRAVERSAL))
    return None


def _range(_: str, __: Target, args: Args) -> CallCost:
    count = args[0].node
    if not isinstance(count, Literal) or not isinstance(count.value, int):
        return CallCost(UNKNOWN, UNKNOWN)
    size = Range(max(count.value, 0), max(count.value, 0))
    return CallCost(size.plus(ONE), size)


def _pairs(factor: int) -> _Rule:
    """Return the rule of functions that compare every element of one list with the other's."""

    def cost(_: str, target: Target, args: Args) -> CallCost:
        left, right = (target, target) if target is not None else (args[0], args[-1])
        compared = left.size.times(right.size).scaled(factor).plus(ONE)
        return CallCost(compared, None if target is None else left.size)

    return cost


def _rebuilt(_: str, target: Target, __: Args) -> CallCost | None:
    return None if target is None else CallCost(target.size.plus(ONE), target.size)


_CONSTANT_EQUALITY: Final = frozenset(
    {"net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"}
)
_RULES: Final[dict[str, _Rule]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _list_walk),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _walk),
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _parsed_member
    ),
    **dict.fromkeys(
        (
            *("masked", "prefixLength", "family", "isUnspecified", "isLoopback"),
            *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "format.named"),
            *("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan"),
            *("isLessThan", "compareTo", "add", "sub", "major", "minor", "patch"),
            *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
        ),
        _fixed,
    ),
    **dict.fromkeys(("sets.contains", "sets.intersects", "distinct", "sort"), _pairs(1)),
    **dict.fromkeys(("slice", "reverse", "@sortByAssociatedKeys"), _rebuilt),
    "sets.equivalent": _pairs(2),
    "lists.range": _range,
    "url": _url,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "ip": _ip,
    "ip.isCanonical": _canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equal,
}


# The language's own functions, under the names of their overloads.


def _to_bytes(_: Target, args: Args) -> CallCost:
    size = args[0].size
    return CallCost(size.scaled(TRAVERSAL), Range(size.low, min(size.high * 4, MOST)))


def _to_text(_: Target, args: Args) -> CallCost:
    size = args[0].size
    return CallCost(size.scaled(TRAVERSAL), Range(size.low // 4, size.high))


def _quote(_: Target, args: Args) -> CallCost:
    size = args[0].size
    quoted = Range(min(size.low + 2, MOST), min(size.high * 2 + 2, MOST))
    return CallCost(size.scaled(TRAVERSAL), quoted)


def _format(target: Target, _: Args) -> CallCost | None:
    return None if target is None else CallCost(target.size.scaled(TRAVERSAL))


def _affix(_: Target, args: Args) -> CallCost:
    return CallCost(args[0].size.scaled(TRAVERSAL))


def _in_list(_: Target, args: Args) -> CallCost:
    return CallCost(args[1].size.scaled(1))


def _matches(target: Target, args: Args) -> CallCost | None:
    if target is None:
        return None
    text = target.size.plus(ONE).scaled(TRAVERSAL)
    return CallCost(text.times(args[0].size.scaled(REGEX)))


def _contains(target: Target, args: Args) -> CallCost | None:
    if target is None:
        return None
    return CallCost(target.size.scaled(TRAVERSAL).times(args[0].size.scaled(TRAVERSAL)))


def _concatenation(_: Target, args: Args) -> CallCost:
    size = args[0].size.plus(args[1].size)
    return CallCost(size.scaled(TRAVERSAL), size)


def _list_concatenation(_: Target, args: Args) -> CallCost:
    return CallCost(ONE, args[0].size.plus(args[1].size))


def _comparison(_: Target, args: Args) -> CallCost:
    largest = min(args[0].size.high, args[1].size.high)
    return CallCost(Range(min(1, largest), largest).scaled(TRAVERSAL))


_COMPARED: Final = tuple(
    f"{name}_{kind}"
    for name in ("less", "less_equals", "greater", "greater_equals")
    for kind in ("string", "bytes")
)
_STANDARD: Final[dict[str, Callable[[Target, Args], CallCost | None]]] = {
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_text,
    "strings_quote": _quote,
    "string_format": _format,
    "starts_with_string": _affix,
    "ends_with_string": _affix,
    "in_list": _in_list,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _concatenation,
    "add_bytes": _concatenation,
    "add_list": _list_concatenation,
    **dict.fromkeys((*_COMPARED, "equals", "not_equals"), _comparison),
}
