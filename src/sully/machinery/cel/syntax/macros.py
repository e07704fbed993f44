"""Calls that are not functions: `has`, the loops, `cel.bind` and the optional mappings.

Each macro becomes plain syntax with the same accumulator form that cel-go uses, because the cost
of an expression is counted over that form. The planner recognises the form by its `kind`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sully.machinery.cel.syntax.nodes import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
)

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
_SORTED: Final = "@__sortBy_input__"


class MacroError(ValueError):
    """A macro called in a way it cannot be expanded."""

    def __init__(self, pos: int, message: str) -> None:
        super().__init__(message)
        self.pos = pos


def expand(
    pos: int, function: str, target: Node | None, args: tuple[Node, ...], qualified: str
) -> Node | None:
    """Return what a call expands to, or None when it is an ordinary call."""
    node = expand_standard(pos, function, target, args, qualified)
    if node is not None or target is None:
        return node
    if qualified == "cel.bind" and len(args) == 3:
        return _bind(pos, args)
    maker = None if qualified == "cel.block" else _EXTENSIONS.get((function, len(args)))
    return None if maker is None else maker(pos, function, target, args)


def expand_standard(
    pos: int, function: str, target: Node | None, args: tuple[Node, ...], qualified: str
) -> Node | None:
    """Return what a call expands to without extensions of the language."""
    if target is None:
        return _has(pos, args) if function == "has" and len(args) == 1 else None
    maker = None if qualified == "cel.block" else _MEMBERS.get((function, len(args)))
    return None if maker is None else maker(pos, function, target, args)


def _has(pos: int, args: tuple[Node, ...]) -> Node:
    tested = args[0]
    if not isinstance(tested, Select) or tested.test_only:
        raise MacroError(tested.pos, "invalid argument to has() macro")
    return Select(pos, tested.operand, tested.field, test_only=True)


def _variable(node: Node) -> str:
    if not isinstance(node, Ident) or node.name.startswith("."):
        raise MacroError(node.pos, "argument must be a simple name")
    if node.name in (ACCUMULATOR, "__result__"):
        raise MacroError(node.pos, "iteration variable overwrites accumulator variable")
    return node.name


def _variables(nodes: tuple[Node, ...]) -> tuple[str, ...]:
    names = tuple(_variable(node) for node in nodes)
    if len(set(names)) < len(names):
        raise MacroError(nodes[1].pos, f"duplicate variable name: {names[1]}")
    return names


def _bind(pos: int, args: tuple[Node, ...]) -> Node:
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].pos, "cel.bind() variable names must be simple identifiers")
    return _binding(pos, args[0].name, args[1], args[2])


def _binding(pos: int, name: str, value: Node, body: Node) -> Node:
    return Comprehension(
        pos,
        "bind",
        ListNode(pos, ()),
        (UNUSED,),
        name,
        value,
        Literal(pos, False),
        Ident(pos, name),
        body,
    )


def _accu(pos: int) -> Node:
    return Ident(pos, ACCUMULATOR)


def _loop(pos: int, kind: str, target: Node, names: tuple[str, ...], parts: _Parts) -> Node:
    return Comprehension(
        pos,
        kind,
        target,
        names,
        ACCUMULATOR,
        parts[0],
        parts[1],
        parts[2],
        parts[3] if len(parts) > 3 else _accu(pos),
    )


def _all(pos: int, _: str, target: Node, args: tuple[Node, ...]) -> Node:
    condition = Call(pos, "@not_strictly_false", (_accu(pos),))
    step = Call(pos, "_&&_", (_accu(pos), args[-1]))
    return _loop(pos, "all", target, _variables(args[:-1]), (Literal(pos, True), condition, step))


def _exists(pos: int, _: str, target: Node, args: tuple[Node, ...]) -> Node:
    condition = Call(pos, "@not_strictly_false", (Call(pos, "!_", (_accu(pos),)),))
    step = Call(pos, "_||_", (_accu(pos), args[-1]))
    parts = (Literal(pos, False), condition, step)
    return _loop(pos, "exists", target, _variables(args[:-1]), parts)


def _exists_one(pos: int, _: str, target: Node, args: tuple[Node, ...]) -> Node:
    plus = Call(pos, "_+_", (_accu(pos), Literal(pos, 1)))
    step = Call(pos, "_?_:_", (args[-1], plus, _accu(pos)))
    result = Call(pos, "_==_", (_accu(pos), Literal(pos, 1)))
    parts = (Literal(pos, 0), Literal(pos, True), step, result)
    return _loop(pos, "exists_one", target, _variables(args[:-1]), parts)


def _append(pos: int, value: Node, condition: Node | None) -> Node:
    added = Call(pos, "_+_", (_accu(pos), ListNode(pos, (value,))))
    return added if condition is None else Call(pos, "_?_:_", (condition, added, _accu(pos)))


def _map(pos: int, _: str, target: Node, args: tuple[Node, ...]) -> Node:
    step = _append(pos, args[-1], args[1] if len(args) == 3 else None)
    parts = (ListNode(pos, ()), Literal(pos, True), step)
    return _loop(pos, "map", target, _variables(args[:1]), parts)


def _filter(pos: int, _: str, target: Node, args: tuple[Node, ...]) -> Node:
    step = _append(pos, args[0], args[1])
    parts = (ListNode(pos, ()), Literal(pos, True), step)
    return _loop(pos, "filter", target, _variables(args[:1]), parts)


def _transform_list(pos: int, _: str, target: Node, args: tuple[Node, ...]) -> Node:
    step = _append(pos, args[-1], args[2] if len(args) == 4 else None)
    parts = (ListNode(pos, ()), Literal(pos, True), step)
    return _loop(pos, "transformList", target, _variables(args[:2]), parts)


def _transform_map(pos: int, kind: str, target: Node, args: tuple[Node, ...]) -> Node:
    names = _variables(args[:2])
    key: tuple[Node, ...] = () if kind == "transformMapEntry" else (Ident(args[0].pos, names[0]),)
    step: Node = Call(pos, "cel.@mapInsert", (_accu(pos), *key, args[-1]))
    if len(args) == 4:
        step = Call(pos, "_?_:_", (args[2], step, _accu(pos)))
    parts = (MapNode(pos, ()), Literal(pos, True), step)
    return _loop(pos, kind, target, names, parts)


def _optional_map(pos: int, kind: str, target: Node, args: tuple[Node, ...]) -> Node:
    # The target stands twice in the tree, as it does in cel-go: the cost is counted twice.
    body = _binding(pos, _variable(args[0]), Call(pos, "value", (), target), args[1])
    present = body if kind == "optFlatMap" else Call(pos, "optional.of", (body,))
    absent = Call(pos, "optional.none", ())
    return Call(pos, "_?_:_", (Call(pos, "hasValue", (), target), present, absent))


def _sort_by(pos: int, _: str, target: Node, args: tuple[Node, ...]) -> Node:
    items = Ident(pos, _SORTED)
    keys = _map(pos, "map", items, args)
    ordered = Call(pos, "@sortByAssociatedKeys", (keys,), items)
    return _binding(pos, _SORTED, target, ordered)


_Parts = tuple[Node, Node, Node] | tuple[Node, Node, Node, Node]
_Maker = Callable[[int, str, Node, tuple[Node, ...]], Node]
Expand = Callable[[int, str, Node | None, tuple[Node, ...], str], Node | None]
_MEMBERS: Final[dict[tuple[str, int], _Maker]] = {
    ("all", 2): _all,
    ("exists", 2): _exists,
    ("exists_one", 2): _exists_one,
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("optMap", 2): _optional_map,
    ("optFlatMap", 2): _optional_map,
}
_EXTENSIONS: Final[dict[tuple[str, int], _Maker]] = {
    ("all", 3): _all,
    ("exists", 3): _exists,
    ("exists_one", 3): _exists_one,
    ("existsOne", 2): _exists_one,
    ("existsOne", 3): _exists_one,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map,
    ("transformMapEntry", 4): _transform_map,
    ("sortBy", 2): _sort_by,
}
