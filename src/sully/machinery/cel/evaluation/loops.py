"""Loops and bindings.

`fast` runs each macro as the Python loop it means. `folded` runs the accumulator form step by step,
which is what the cost is counted over; `metering` uses it. Both give the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from sully.machinery.cel.errors import CostLimitError, EvaluationError, NoSuchOverloadError
from sully.machinery.cel.syntax.nodes import Call, Comprehension, ListNode, Node
from sully.machinery.cel.values import Value, as_key, keys

Scope = dict[str, Any]
Plan = Callable[[Scope], Value]
_UNSET: Final = object()
# Local variables live beside the global ones; the mark keeps `.x` apart from a loop's `x`.
LOCAL: Final = "~"


class Lazy:
    """A bound value that is computed when it is first read."""

    __slots__ = ("_plan", "_scope", "_value")

    def __init__(self, plan: Plan, scope: Scope) -> None:
        self._plan = plan
        self._scope = scope
        self._value: Value = _UNSET

    def __call__(self) -> Value:
        if self._value is _UNSET:
            self._value = self._plan(self._scope)
        return self._value


class Failed:
    """An accumulator that holds an error; reading it raises."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


def fast(node: Comprehension, plan: Callable[[Node], Plan]) -> Plan:
    """Return the closure of a macro."""
    if node.kind == "bind":
        return _bound(LOCAL + node.accumulator, plan(node.initial), plan(node.result))
    return _MAKERS[node.kind](_Loop(node, plan(node.range)), node, plan)


class _Loop:
    """The range of a loop, giving one scope per round."""

    __slots__ = ("_first", "_range", "_second")

    def __init__(self, node: Comprehension, ranged: Plan) -> None:
        self._range = ranged
        self._first = LOCAL + node.variables[0]
        self._second = LOCAL + node.variables[1] if len(node.variables) == 2 else None

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """Yield a scope for each item: one dict, refilled in each iteration."""
        ranged, inner, first, second = self._range(scope), dict(scope), self._first, self._second
        if second is not None:
            for inner[first], inner[second] in _pairs(ranged):
                yield inner
            return
        for inner[first] in items(ranged):
            yield inner


def items(ranged: Value) -> Iterator[Value]:
    """Iterate over the elements of a list or the keys of a map."""
    if isinstance(ranged, dict):
        return keys(ranged)
    if isinstance(ranged, (list, tuple)):
        return iter(ranged)
    raise NoSuchOverloadError


def _pairs(ranged: Value) -> Iterator[tuple[Value, Value]]:
    if isinstance(ranged, dict):
        return zip(keys(ranged), ranged.values(), strict=True)
    if isinstance(ranged, (list, tuple)):
        return enumerate(ranged)
    raise NoSuchOverloadError


def _bound(name: str, value: Plan, body: Plan) -> Plan:
    def bind(scope: Scope) -> Value:
        return body({**scope, name: Lazy(value, scope)})

    return bind


def _argument(node: Node, index: int) -> Node:
    assert isinstance(node, Call)
    return node.args[index]


def _any(decisive: bool) -> Callable[[_Loop, Comprehension, Callable[[Node], Plan]], Plan]:
    def make(loop: _Loop, node: Comprehension, plan: Callable[[Node], Plan]) -> Plan:
        test = plan(_argument(node.step, 1))

        def search(scope: Scope) -> bool:
            failure: EvaluationError | None = None
            for inner in loop.scopes(scope):
                try:
                    verdict = test(inner)
                except CostLimitError:
                    raise
                except EvaluationError as error:
                    failure = failure or error
                    continue
                if verdict is decisive:
                    return bool(decisive)
                if verdict is not (not decisive):
                    failure = failure or NoSuchOverloadError()
            if failure is not None:
                raise failure
            return not decisive

        return search

    return make


def _exists_one(loop: _Loop, node: Comprehension, plan: Callable[[Node], Plan]) -> Plan:
    test = plan(_argument(node.step, 0))

    def count(scope: Scope) -> bool:
        matches = 0
        for inner in loop.scopes(scope):
            matches += _verdict(test(inner))
        return matches == 1

    return count


def _verdict(value: Value) -> bool:
    if value is True or value is False:
        return bool(value)
    raise NoSuchOverloadError


def _collect(loop: _Loop, node: Comprehension, plan: Callable[[Node], Plan]) -> Plan:
    test: Plan | None = None
    added = node.step
    if isinstance(added, Call) and added.function == "_?_:_":
        test, added = plan(added.args[0]), added.args[1]
    appended = _argument(added, 1)
    assert isinstance(appended, ListNode)
    value = plan(appended.elements[0])

    def collect(scope: Scope) -> list[Value]:
        return [
            value(inner) for inner in loop.scopes(scope) if test is None or _verdict(test(inner))
        ]

    return collect


def _insert(loop: _Loop, node: Comprehension, plan: Callable[[Node], Plan]) -> Plan:
    test: Plan | None = None
    added = node.step
    if isinstance(added, Call) and added.function == "_?_:_":
        test, added = plan(added.args[0]), added.args[1]
    assert isinstance(added, Call)
    parts = [plan(arg) for arg in added.args[1:]]

    def insert(scope: Scope) -> dict[Value, Value]:
        out: dict[Value, Value] = {}
        for inner in loop.scopes(scope):
            if test is None or _verdict(test(inner)):
                _add(out, [part(inner) for part in parts])
        return out

    return insert


def map_insert(target: dict[Value, Value], *parts: Value) -> dict[Value, Value]:
    """Return a map with a key and value, or all entries of another map, added."""
    out = dict(target)
    _add(out, list(parts))
    return out


def _add(target: dict[Value, Value], parts: list[Value]) -> None:
    added = parts[0] if len(parts) == 1 else {as_key(parts[0]): parts[1]}
    if not isinstance(added, dict):
        raise NoSuchOverloadError
    for key, value in added.items():
        if key in target:
            raise EvaluationError(f"insert failed: key {key} already exists")
        target[key] = value


_MAKERS: Final = {
    "all": _any(False),
    "exists": _any(True),
    "exists_one": _exists_one,
    "map": _collect,
    "filter": _collect,
    "transformList": _collect,
    "transformMap": _insert,
    "transformMapEntry": _insert,
}


def folded(node: Comprehension, plan: Callable[[Node], Plan]) -> Plan:
    """Return the closure that runs the accumulator form of a loop."""
    if node.kind == "bind":
        return _bound(LOCAL + node.accumulator, plan(node.initial), plan(node.result))
    loop, name = _Loop(node, plan(node.range)), LOCAL + node.accumulator
    initial, condition = plan(node.initial), plan(node.condition)
    step, result = plan(node.step), plan(node.result)

    def fold(scope: Scope) -> Value:
        accumulated: Value = initial(scope)
        for inner in loop.scopes(scope):
            inner[name] = accumulated
            if condition(inner) is not True:
                break
            try:
                accumulated = step(inner)
            except CostLimitError:
                raise
            except EvaluationError as error:
                accumulated = Failed(error)
        return result({**scope, name: accumulated})

    return fold
