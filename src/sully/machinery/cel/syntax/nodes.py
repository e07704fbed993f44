"""The syntax tree: what the parser builds and everything after it reads.

Nodes compare by identity, so that the checker can note types and references beside them. `pos` is
the offset that an error about the node points to: the operator, the dot, or the opening bracket.
Macros are already expanded into `Comprehension`; `kind` records which macro it was, so that the
planner can run it without interpreting the expansion.
"""

from __future__ import annotations

import msgspec


class Literal(msgspec.Struct, eq=False):
    """A constant of one of the basic types."""

    pos: int
    value: object


class Ident(msgspec.Struct, eq=False):
    """A name; a leading dot asks for the outermost meaning."""

    pos: int
    name: str


class Select(msgspec.Struct, eq=False):
    """`operand.field`, or the test of `has(operand.field)`."""

    pos: int
    operand: Node
    field: str
    test_only: bool = False


class Call(msgspec.Struct, eq=False):
    """A function or operator applied to arguments, perhaps on a target."""

    pos: int
    function: str
    args: tuple[Node, ...]
    target: Node | None = None


class ListNode(msgspec.Struct, eq=False):
    """A list; elements at the optional places are left out when absent."""

    pos: int
    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


class Entry(msgspec.Struct, eq=False):
    """One entry of a map or one field of a message."""

    pos: int
    key: Node
    value: Node
    optional: bool = False


class MapNode(msgspec.Struct, eq=False):
    pos: int
    entries: tuple[Entry, ...]


class MessageNode(msgspec.Struct, eq=False):
    """A message with fields; parsed, but no environment here declares messages."""

    pos: int
    name: str
    entries: tuple[Entry, ...]


class Comprehension(msgspec.Struct, eq=False):
    """A loop over a range that folds into an accumulator."""

    pos: int
    kind: str
    range: Node
    variables: tuple[str, ...]
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


Node = Literal | Ident | Select | Call | ListNode | MapNode | MessageNode | Comprehension


def qualified_name(node: Node) -> str | None:
    """Return `a.b.c` for a chain of plain selections from a name, else None."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test_only:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None
