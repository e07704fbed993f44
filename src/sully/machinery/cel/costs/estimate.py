"""What an expression can cost in the worst case, before it is ever evaluated.

The API refuses expressions by this number, so it must be equal to Kubernetes': the walk, the
units, and also which sizes it knows and which it takes for boundless. Sizes of inputs come from
the sizes that the environment declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sully.machinery.cel.checker import Checked, Constant, Resolution, Variable
from sully.machinery.cel.costs.callcosts import call_cost
from sully.machinery.cel.costs.sizes import (
    MOST,
    NOTHING,
    ONE,
    UNKNOWN,
    CallCost,
    Entries,
    Range,
)
from sully.machinery.cel.declarations import SizeEstimate
from sully.machinery.cel.syntax.nodes import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    MessageNode,
    Node,
    Select,
)
from sully.machinery.cel.types import Type, is_optional

LIST_COST: Final = 10
MAP_COST: Final = 30
MESSAGE_COST: Final = 40
Path = tuple[str, ...]
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


def estimate(checked: Checked, sizes: Mapping[str, SizeEstimate]) -> int:
    """Return the most that one evaluation can cost."""
    return _Estimator(checked, sizes).cost(checked.root).high


class _Local:
    """What is known about a variable of a loop or binding."""

    __slots__ = ("entries", "path", "size")

    def __init__(self, path: Path, size: Range | None, entries: Entries | None) -> None:
        self.path = path
        self.size = size
        self.entries = entries


class _Argument:
    """An argument of a call, as `callcosts` sees it."""

    __slots__ = ("element", "node", "size", "type")

    def __init__(self, estimator: _Estimator, node: Node) -> None:
        self.node = node
        self.type = estimator.type(node)
        self.size = estimator.size(node) or UNKNOWN
        path = estimator.path(node)
        self.element = (estimator.declared_size((*path, "@items")) if path else None) or UNKNOWN


class _Estimator:
    def __init__(self, checked: Checked, sizes: Mapping[str, SizeEstimate]) -> None:
        self._checked = checked
        self._declared = sizes
        self._locals: dict[str, list[_Local]] = {}
        self._costs: dict[Node, Range] = {}
        self._sizes: dict[Node, Range] = {}
        self._entries: dict[Node, Entries] = {}
        self._paths: dict[Node, Path] = {}

    def type(self, node: Node) -> Type:
        """Return the type that the checker found."""
        return self._checked.types[node]

    def cost(self, node: Node) -> Range:
        """Return the cost of a node; a shared one is walked once."""
        cost = self._costs.get(node)
        if cost is None:
            cost = self._costs[node] = self._cost(node)
        return cost

    def _cost(self, node: Node) -> Range:
        match node:
            case Literal():
                return NOTHING
            case Ident():
                return self._ident(node, node.name)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case MessageNode():
                total = Range(MESSAGE_COST, MESSAGE_COST)
                for entry in node.entries:
                    total = total.plus(self.cost(entry.value))
                return total
            case Comprehension():
                return self._bind(node) if node.kind == "bind" else self._loop(node)

    # Sizes and paths

    def _local(self, node: Node) -> _Local | None:
        if isinstance(node, Ident):
            stack = self._locals.get(node.name)
            return stack[-1] if stack else None
        return None

    def path(self, node: Node) -> Path:
        """Return how a node is reached from a variable, or nothing."""
        local = self._local(node)
        return local.path if local is not None else self._paths.get(node, ())

    def declared_size(self, path: Path) -> Range | None:
        """Return the size that the environment declares for a path."""
        declared = self._declared.get(path[0]) if path else None
        for step in path[1:]:
            if declared is None:
                return None
            declared = _step(declared, step)
        return None if declared is None else Range(0, declared.size)

    def size(self, node: Node) -> Range | None:
        """Return how large a value can get, or None when that is not known."""
        known = self._sizes.get(node) or _literal_size(node)
        if known is not None:
            return known
        declared = self.declared_size(self.path(node))
        if declared is not None:
            self._sizes[node] = declared
            return declared
        if _is_scalar(self.type(node)):
            return ONE
        local = self._local(node)
        return local.size if local is not None else None

    def entries(self, node: Node) -> Entries | None:
        """Return how large the entries of a container can get."""
        local = self._local(node)
        local_entries = local.entries if local is not None else None
        return self._entries.get(node) or local_entries

    # Costs of nodes

    def _ident(self, node: Node, name: str) -> Range:
        local = self._local(node)
        self._paths[node] = local.path if local is not None else (name,)
        return ONE

    def _select(self, node: Select) -> Range:
        reference = self._checked.references.get(node)
        if isinstance(reference, Variable):
            return self._ident(node, reference.name)
        if isinstance(reference, Constant):
            return ONE
        inner = self.cost(node.operand)
        if node.test_only:
            return inner
        self._paths[node] = (*self.path(node.operand), node.field)
        kind = self.type(node.operand).kind
        return inner.plus(ONE) if kind in ("map", "object", "param") else inner

    def _call(self, node: Call) -> Range:
        if node.function == "dyn" and len(node.args) == 1:
            return self._dyn(node)
        costs = [self.cost(arg) for arg in node.args]
        reference = self._checked.references.get(node)
        if node.function == "_?._":
            return sum_of(costs).plus(ONE)
        if not isinstance(reference, Resolution) or not reference.overloads:
            return NOTHING
        target = node.target if reference.member else None
        total = self.cost(target) if target is not None else NOTHING
        return total.plus(self._overloads(node, target, costs, reference))

    def _overloads(
        self, node: Call, target: Node | None, costs: list[Range], reference: Resolution
    ) -> Range:
        """Return a cost that covers every overload the call may mean."""
        target_argument = _Argument(self, target) if target is not None else None
        args = [_Argument(self, arg) for arg in node.args]
        total = Range(MOST, 0)
        size: Range | None = None
        for overload in reference.overloads:
            estimated = self._special(node, costs)
            if estimated is None:
                one = call_cost(
                    reference.name, overload.id, target_argument, list(args)
                ) or CallCost(ONE)
                estimated = CallCost(one.cost.plus(sum_of(costs)), one.size)
            total = total.union(estimated.cost)
            if estimated.size is not None:
                size = estimated.size if size is None else size.union(estimated.size)
            if overload.id in ("index_list", "index_map"):
                size = self._indexed(node, overload.id)
            size = size or self.size(node)
        if node.function == "_+_":
            self._concatenated(node)
        if size is not None:
            self._sizes[node] = size
        return total

    def _special(self, node: Call, costs: list[Range]) -> CallCost | None:
        """Return the cost of the operators that do not evaluate all of their operands."""
        if node.function in ("_&&_", "_||_"):
            return CallCost(Range(costs[0].low, costs[0].plus(costs[1]).high))
        if node.function != "_?_:_":
            return None
        _, chosen, other = node.args
        size = (self.size(chosen) or UNKNOWN).union(self.size(other) or UNKNOWN)
        entries = self.entries(chosen)
        joined = entries.union(self.entries(other)) if entries is not None else None
        if joined is not None:
            self._entries[node] = joined
        return CallCost(costs[0].plus(costs[1].union(costs[2])), size)

    def _indexed(self, node: Call, overload: str) -> Range | None:
        step = "@items" if overload == "index_list" else "@values"
        container = node.args[0]
        self._paths[node] = (*self.path(container), step)
        entries = self.entries(container)
        return entries.value if entries is not None else None

    def _concatenated(self, node: Call) -> None:
        entries = self.entries(node.args[0])
        joined = entries.union(self.entries(node.args[1])) if entries is not None else None
        if joined is not None:
            self._entries[node] = joined

    def _dyn(self, node: Call) -> Range:
        inner = self.cost(node.args[0])
        self._copy(node, node.args[0])
        return inner.plus(ONE)

    def _copy(self, node: Node, source: Node) -> None:
        size, entries = self.size(source), self.entries(source)
        if size is not None:
            self._sizes[node] = size
        if entries is not None:
            self._entries[node] = entries

    def _list(self, node: ListNode) -> Range:
        total, item = Range(LIST_COST, LIST_COST), Range(MOST, 0)
        for element in node.elements:
            total = total.plus(self.cost(element))
            item = item.union(self.size(element) or UNKNOWN)
        elements = item if node.elements else NOTHING
        self._entries[node] = Entries("list", ONE, elements)
        return total

    def _map(self, node: MapNode) -> Range:
        total, key, value = Range(MAP_COST, MAP_COST), Range(MOST, 0), Range(MOST, 0)
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self.size(entry.key) or UNKNOWN)
            value = value.union(self.size(entry.value) or UNKNOWN)
        if not node.entries:
            key = value = NOTHING
        self._entries[node] = Entries("map", key, value)
        return total

    # Loops

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _bind(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self._push_value(node.accumulator, node.initial)
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        self._copy(node, node.result)
        return total

    def _push_value(self, name: str, value: Node) -> None:
        self._push(name, _Local(self.path(value), self.size(value), self.entries(value)))

    def _push_variables(self, node: Comprehension) -> None:
        entries, path = self.entries(node.range), self.path(node.range)
        kind = entries.kind if entries is not None else self.type(node.range).kind
        key, value = (entries.key, entries.value) if entries is not None else (None, None)
        steps = ("@indices", "@items") if kind == "list" else ("@keys", "@values")
        first = _Local((*path, steps[0]), key, None)
        second = _Local((*path, steps[1]), value, None)
        if len(node.variables) == 2:
            self._push(node.variables[0], first)
            self._push(node.variables[1], second)
        else:
            self._push(node.variables[0], second if kind == "list" else first)

    def _loop(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self._push_value(node.accumulator, node.initial)
        self._push_variables(node)
        per_iteration = self.cost(node.condition).plus(self.cost(node.step))
        for name in node.variables:
            self._locals[name].pop()
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        count = self.size(node.range) or UNKNOWN
        self._note_loop_size(node, count)
        return total.plus(count.times(per_iteration))

    def _note_loop_size(self, node: Comprehension, count: Range) -> None:
        if isinstance(node.initial, Literal):
            size = self.size(node.initial)
            if size is not None:
                self._sizes[node] = size
        elif isinstance(node.initial, (ListNode, MapNode)):
            self._sizes[node] = count
            entries = self.entries(node.step)
            if entries is not None:
                self._entries[node] = entries


def sum_of(costs: list[Range]) -> Range:
    total = NOTHING
    for one in costs:
        total = total.plus(one)
    return total


def _step(declared: SizeEstimate, step: str) -> SizeEstimate | None:
    if step in ("@items", "@values"):
        return declared.element
    if step == "@keys":
        return declared.key
    return declared.fields.get(step) or (declared.element if declared.named else None)


def _literal_size(node: Node) -> Range | None:
    match node:
        case Literal():
            value = node.value
            length = len(value) if isinstance(value, (str, bytes)) else 1
            return Range(length, length)
        case ListNode():
            return Range(len(node.elements), len(node.elements))
        case MapNode():
            return Range(len(node.entries), len(node.entries))
        case _:
            return None


def _is_scalar(one: Type) -> bool:
    if is_optional(one):
        return _is_scalar(one.params[0])
    return one.kind in _SCALARS
