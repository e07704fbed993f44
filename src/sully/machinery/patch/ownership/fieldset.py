"""Sets of fields, in the form in which managedFields writes them (FieldsV1).

A set is a tree of path elements: `f:name` a field, `k:{…}` a list item by its keys, `v:…` one by
its value, `i:…` one by position. A node is a member of the set when it is empty or holds the mark
".". The tree *is* the wire form, so reading and writing cost nothing; no node may be changed once
it is part of a set, since sets share them. typed.py builds sets from objects.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from sully.machinery.patch.errors import MAX_DEPTH
from sully.machinery.serialization.codec import from_json
from sully.machinery.serialization.gotext import compact_json, quote

Tree = dict[str, Any]
SELF = "."
MAX_SHARED = 16 * 1024
"""Bytes of a tree that is cached."""
_sorting = msgspec.json.Encoder(order="sorted")


class FieldSetError(ValueError):
    """A tree that is not a set of fields."""


class FieldSet:
    """An immutable set of field paths."""

    __slots__ = ("_hash", "tree")

    def __init__(self, tree: Tree | None = None) -> None:
        """Wrap a canonical tree; use `parse` for other trees."""
        self.tree: Tree = {} if tree is None else tree
        self._hash: int | None = None

    @classmethod
    def parse(cls, fields: Any) -> "FieldSet":
        """Read a tree a client wrote; what cannot be a set is refused."""
        if not isinstance(fields, dict):
            raise FieldSetError("fieldsV1 is not an object")
        return cls(_parse(fields, 0))

    @classmethod
    def of(cls, *paths: tuple[str, ...]) -> "FieldSet":
        """Make a set of paths of field names."""
        tree: Tree = {}
        for path in paths:
            single: Tree = {}
            for name in reversed(path):
                single = {f"f:{name}": single}
            tree = union(tree, single)
        return cls(tree)

    def __bool__(self) -> bool:
        return bool(self.tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.tree == other.tree

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(encoded(self.tree))
        return self._hash

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(map(path_text, self.paths()))})"

    def __contains__(self, path: tuple[str, ...]) -> bool:
        """Report whether a path (a tuple of elements) is a member."""
        node = self.tree
        for element in path:
            if element not in node:
                return False
            node = node[element]
        return is_member(node)

    def union(self, other: "FieldSet") -> "FieldSet":
        """Return what is in either set."""
        return FieldSet(union(self.tree, other.tree))

    def difference(self, other: "FieldSet") -> "FieldSet":
        """Return what is not in the other set; what lies below its members stays."""
        return FieldSet(difference(self.tree, other.tree))

    def intersection(self, other: "FieldSet") -> "FieldSet":
        """Return what is in both sets."""
        return FieldSet(intersection(self.tree, other.tree))

    def recursive_difference(self, other: "FieldSet") -> "FieldSet":
        """Return what is neither in the other set nor below one of its members."""
        return FieldSet(recursive_difference(self.tree, other.tree))

    def paths(self) -> Iterator[tuple[str, ...]]:
        """Go through all members: at each level first the members, then what is below."""
        return _paths(self.tree, ())


def is_member(node: Tree) -> bool:
    """Report whether a node of a tree is itself in the set."""
    return not node or SELF in node


def union(left: Tree, right: Tree) -> Tree:
    """Join two trees."""
    if not left:
        return right
    if not right or left is right:
        return left
    result = dict(left)
    for element, node in right.items():
        known = result.get(element)
        result[element] = node if known is None else _join(known, node)
    return result


def _join(left: Tree, right: Tree) -> Tree:
    if left and right:
        return union(left, right)
    both = left or right
    # One side is a bare member, so the joined node is one.
    return {SELF: {}, **both} if both and SELF not in both else both


def difference(left: Tree, right: Tree) -> Tree:
    """Remove the members of one tree from another."""
    result: Tree = {}
    for element, node in left.items():
        other = right.get(element)
        if element == SELF:
            continue
        rest = node if other is None else _without(node, other)
        if rest is not None:
            result[element] = rest
    return result


def _without(node: Tree, other: Tree) -> Tree | None:
    keeps = is_member(node) and not is_member(other)
    below = difference(node, other) if node else node
    if not below:
        return {} if keeps else None
    return {SELF: {}, **below} if keeps else below


def intersection(left: Tree, right: Tree) -> Tree:
    """Keep the members that both trees have."""
    result: Tree = {}
    if len(right) < len(left):
        left, right = right, left
    for element, node in left.items():
        other = right.get(element)
        if other is None or element == SELF:
            continue
        member = is_member(node) and is_member(other)
        below = intersection(node, other) if node and other else {}
        if below:
            result[element] = {SELF: {}, **below} if member else below
        elif member:
            result[element] = {}
    return result


def recursive_difference(left: Tree, right: Tree) -> Tree:
    """Remove the members of one tree, with everything below them, from another."""
    if not right:
        return left
    result: Tree = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None or element == SELF:
            result[element] = node
        elif not is_member(other):
            rest = recursive_difference(node, other)
            # A bare mark is written as an empty node, and a node that lost everything is dropped.
            if rest.keys() == {SELF}:
                rest = {}
            if rest or is_member(node):
                result[element] = rest
    return result


def _paths(tree: Tree, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    ordered = sorted(element for element in tree if element != SELF)
    for element in ordered:
        if is_member(tree[element]):
            yield (*above, element)
    for element in ordered:
        if tree[element]:
            yield from _paths(tree[element], (*above, element))


def in_order(tree: Tree) -> Tree:
    """Return a tree with sorted keys, for a stable wire form."""
    # A walk in Python takes more than twice as long.
    data = encoded(tree)
    return _read_once(data) if len(data) <= MAX_SHARED else _read_once.__wrapped__(data)


def encoded(trees: Any) -> bytes:
    """Return a text that equal trees, or equal Structs of trees, have in common."""
    return _sorting.encode(trees)


# Objects of one template have the same fields, so thousands of them share a few trees.
# Large ones are rare, and would be most of the memory.
@lru_cache(maxsize=1024)
def _read_once(tree: bytes) -> Tree:
    parsed: Tree = from_json(tree)
    return parsed


def path_text(path: tuple[str, ...]) -> str:
    """Write a path as clients read it: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(map(_element_text, path))


def _element_text(element: str) -> str:
    kind, rest = element[:2], element[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "i:":
        return f"[{rest}]"
    value = json.loads(rest)
    if kind == "v:":
        return f"[={_value_text(value)}]"
    return "[" + ",".join(f"{name}={_value_text(item)}" for name, item in value.items()) + "]"


def _value_text(value: Any) -> str:
    return quote(value) if isinstance(value, str) else compact_json(value)


def _parse(fields: Tree, depth: int) -> Tree:
    if depth > MAX_DEPTH:
        raise FieldSetError(f"fieldsV1 nests deeper than {MAX_DEPTH} levels")
    result: Tree = {}
    for element, below in fields.items():
        if not isinstance(below, dict):
            raise FieldSetError(f"{element!r} in fieldsV1 is not an object")
        if element == SELF:
            result[SELF] = {}
            continue
        canonical = _parse_element(element)
        if canonical is not None:
            node = _parse(below, depth + 1)
            if node or not below:
                result[canonical] = {} if node.keys() == {SELF} else node
    if depth == 0:
        # No manager owns the object as a whole.
        result.pop(SELF, None)
    return result


def _parse_element(element: str) -> str | None:
    """Return the canonical form of an element, None for kinds of elements not known here."""
    kind, rest = element[:2], element[2:]
    if kind[1:] != ":":
        raise FieldSetError(f"missing colon: {element}")
    if kind == "f:":
        return element
    if kind not in ("k:", "v:", "i:"):
        return None
    try:
        value = json.loads(rest)
    except (ValueError, RecursionError):
        raise FieldSetError(f"{element!r} holds no JSON") from None
    if kind == "k:":
        if not isinstance(value, dict) or not value:
            raise FieldSetError(f"{element!r} holds no keys")
        return "k:" + compact_json(dict(sorted(value.items())))
    if kind == "i:" and type(value) is not int:
        raise FieldSetError(f"{element!r} holds no position")
    return kind + compact_json(value)
