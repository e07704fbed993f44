"""Names and types: what every part of an expression refers to and evaluates to.

The checker walks the tree once and notes, beside each node, its type and what it refers to. With
`lenient` it reports nothing and leaves open questions to the evaluation, which is how expressions
run unchecked. Texts and places of the errors are those of cel-go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

import msgspec

from sully.machinery.cel import types
from sully.machinery.cel.declarations import Library, Overload
from sully.machinery.cel.errors import Issue
from sully.machinery.cel.syntax.nodes import (
    Call,
    Comprehension,
    Entry,
    Ident,
    ListNode,
    Literal,
    MapNode,
    MessageNode,
    Node,
    Select,
    qualified_name,
)
from sully.machinery.cel.types import Type, Unifier
from sully.machinery.cel.values import type_of


class Declarations(Protocol):
    """What the checker asks of an environment."""

    @property
    def container(self) -> str:
        """Return the namespace that names are looked up in."""

    @property
    def variables(self) -> Mapping[str, Type]:
        """Return the declared variables."""

    @property
    def objects(self) -> Mapping[str, Mapping[str, Type]]:
        """Return the fields of the declared object types."""

    @property
    def library(self) -> Library:
        """Return the declared functions."""

    @property
    def homogeneous(self) -> bool:
        """Report whether all elements of a literal must have one type."""


class Variable(msgspec.Struct, frozen=True):
    """A node that reads a variable; `local` ones belong to a loop or a binding."""

    name: str
    local: bool = False


class Constant(msgspec.Struct, frozen=True):
    """A node that names a type."""

    value: Type


class Resolution(msgspec.Struct, frozen=True):
    """The overloads that a call may mean, and whether its target is an argument."""

    name: str
    overloads: tuple[Overload, ...]
    member: bool
    # Only one overload is possible, whatever the values turn out to be.
    certain: bool = False


Reference = Variable | Constant | Resolution
_OPTIONAL_SELECT: Final = "_?._"
_LOGICAL: Final = ("_&&_", "_||_")


class Checked(msgspec.Struct):
    """A tree with what the checker found out about it."""

    root: Node
    types: dict[Node, Type] = msgspec.field(default_factory=dict)
    references: dict[Node, Reference] = msgspec.field(default_factory=dict)


def check(root: Node, env: Declarations, *, lenient: bool = False) -> tuple[Checked, list[Issue]]:
    """Return the annotated tree and the problems found in it."""
    checker = _Checker(env, lenient)
    checker.visit(root)
    unifier = checker.unifier
    resolved = {n: unifier.resolve(t, default_dyn=True) for n, t in checker.types.items()}
    return Checked(root, resolved, checker.references), checker.issues


def candidates(name: str, container: str) -> Iterator[str]:
    """Yield the full names that a name may mean inside a namespace, innermost first."""
    if name.startswith("."):
        yield name[1:]
        return
    while container:
        yield f"{container}.{name}"
        container = container.rpartition(".")[0]
    yield name


class _Checker:
    def __init__(self, env: Declarations, lenient: bool) -> None:
        self._env = env
        self._lenient = lenient
        self._mixed = False
        self._scopes: list[dict[str, Type]] = []
        self.unifier = Unifier()
        self.types: dict[Node, Type] = {}
        self.references: dict[Node, Reference] = {}
        self.issues: list[Issue] = []

    def _report(self, node: Node | Entry, message: str) -> Type:
        if self._lenient:
            return types.DYN
        self.issues.append(Issue(node.pos, message))
        return types.ERROR

    def _type(self, node: Node) -> Type:
        return self.unifier.resolve(self.types[node])

    def visit(self, node: Node) -> None:
        """Note the type of a node and of everything under it."""
        if node in self.types:
            # An optional mapping has its target in the tree twice.
            return
        match node:
            case Literal():
                type_ = types.NULL if node.value is None else type_of(node.value)
            case Ident():
                type_ = self._ident(node)
            case Select():
                type_ = self._select(node)
            case Call():
                type_ = self._call(node)
            case ListNode():
                type_ = self._list(node)
            case MapNode():
                type_ = self._map(node)
            case MessageNode():
                type_ = self._message(node)
            case Comprehension():
                type_ = self._comprehension(node)
        self.types[node] = type_

    # Names

    def _local(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _lookup(self, node: Node, name: str) -> Type | None:
        """Resolve a name to a variable or a type, noting Kubernetes."""
        local = self._local(name)
        if local is not None:
            self.references[node] = Variable(name, local=True)
            return local
        for full in candidates(name, self._env.container):
            declared = self._env.variables.get(full)
            if declared is not None:
                self.references[node] = Variable(full)
                return types.DYN if self._lenient else declared
            constant = self._env.library.constants.get(full)
            if constant is not None:
                self.references[node] = Constant(constant)
                return types.type_of_type(constant)
        return None

    def _ident(self, node: Ident) -> Type:
        declared = self._lookup(node, node.name)
        return declared if declared is not None else self._undeclared(node, node.name)

    def _undeclared(self, node: Node | Entry, name: str) -> Type:
        place = f"(in container '{self._env.container}')"
        return self._report(node, f"undeclared reference to '{name}' {place}")

    def _select(self, node: Select) -> Type:
        name = qualified_name(node)
        if name is not None and self._local(name.partition(".")[0]) is None:
            declared = self._lookup(node, name)
            if declared is not None:
                return declared
        result = self._field(node, node.operand, node.field, optional=False)
        return types.BOOL if node.test_only else result

    def _field(self, node: Node, operand: Node, name: str, *, optional: bool) -> Type:
        self.visit(operand)
        target = self._type(operand)
        unwrapped = target.params[0] if types.is_optional(target) else target
        type_ = self._field_of(node, unwrapped, name)
        wrap = optional or (types.is_optional(target) and not self._is_test(node))
        return types.optional_of(type_) if wrap else type_

    @staticmethod
    def _is_test(node: Node) -> bool:
        return isinstance(node, Select) and node.test_only

    def _field_of(self, node: Node, target: Type, name: str) -> Type:
        if target.kind == "map":
            return target.params[1]
        if target.kind == types.PARAM:
            self.unifier.assignable(types.DYN, target)
            return types.DYN
        if target.kind == "object":
            type_ = self._env.objects.get(target.name, {}).get(name)
            return type_ if type_ is not None else self._report(node, f"undefined field '{name}'")
        if target.is_dyn or target.kind == types.ERROR_KIND:
            return types.DYN
        return self._report(node, f"type '{target}' does not support field selection")

    # Calls

    def _call(self, node: Call) -> Type:
        if node.function == _OPTIONAL_SELECT:
            return self._optional_select(node)
        for arg in node.args:
            self._mixed = node.function == "format" and isinstance(arg, ListNode)
            self.visit(arg)
        self._mixed = False
        functions = self._env.library.functions
        if node.target is not None:
            qualified = qualified_name(node.target)
            for full in self._function_names(qualified, node.function):
                if full in functions:
                    return self._resolve(node, full, node.args, member=False)
            self.visit(node.target)
            if node.function in functions:
                args = (node.target, *node.args)
                return self._resolve(node, node.function, args, member=True)
            return self._undeclared(node, node.function)
        for full in candidates(node.function, self._env.container):
            if full in functions:
                return self._resolve(node, full, node.args, member=False)
        return self._undeclared(node, node.function)

    def _function_names(self, qualified: str | None, function: str) -> Iterator[str]:
        if qualified is None or self._local(qualified.partition(".")[0]) is not None:
            return iter(())
        return candidates(f"{qualified}.{function}", self._env.container)

    def _resolve(self, node: Call, name: str, args: tuple[Node, ...], *, member: bool) -> Type:
        if name in _LOGICAL and not self._lenient:
            for arg in args:
                self._assert(arg, types.BOOL)
        arg_types = tuple(self._type(arg) for arg in args)
        declared = self._env.library.functions[name]
        style = [o for o in declared if o.member == member and len(o.args) == len(arg_types)]
        if self._lenient:
            self.references[node] = Resolution(name, tuple(style), member)
            return types.DYN
        matching: list[tuple[Overload, tuple[Type, ...]]] = []
        results: list[Type] = []
        before = self.unifier.mark()
        for overload in style:
            signature = (*overload.args, overload.result)
            if overload.generic:
                signature = self.unifier.instantiate(signature)
            if self.unifier.all_assignable(arg_types, signature[:-1]):
                matching.append((overload, signature))
                results.append(self.unifier.resolve(signature[-1]))
                self.unifier.rollback(before)
        if all(overload.dynamic for overload, _ in matching):
            matching = []
        if not matching and name in _LOGICAL:
            # Its operands were reported.
            return types.ERROR
        if not matching:
            return self._no_overload(node, name, arg_types, member=member)
        certain = len(matching) == 1 and not any(arg_type.is_dyn for arg_type in arg_types)
        overloads = tuple(overload for overload, _ in matching)
        self.references[node] = Resolution(name, overloads, member, certain)
        if len(matching) > 1:
            # What one of several overloads would make of a variable is not known to be so.
            return results[0] if len(set(results)) == 1 else types.DYN
        self.unifier.all_assignable(arg_types, matching[0][1][:-1])
        return self.unifier.resolve(matching[0][1][-1])

    def _no_overload(
        self, node: Call, name: str, arg_types: tuple[Type, ...], *, member: bool
    ) -> Type:
        shown = [str(self.unifier.resolve(arg_type)) for arg_type in arg_types]
        applied = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
        return self._report(node, f"found no matching overload for '{name}' applied to '{applied}'")

    def _optional_select(self, node: Call) -> Type:
        operand, name = node.args
        self.visit(name)
        text = name.value if isinstance(name, Literal) else ""
        return self._field(node, operand, str(text), optional=True)

    # Aggregates

    def _join(self, node: Node, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.unifier.assignable(previous, current):
            return types.most_general(previous, current)
        if self._env.homogeneous:
            return self._report(node, f"expected type '{previous}' but found '{current}'")
        return types.DYN

    def _element(self, node: Node, *, optional: bool) -> Type:
        self.visit(node)
        type_ = self._type(node)
        if not optional:
            return type_
        if types.is_optional(type_):
            return type_.params[0]
        if not type_.is_dyn:
            expected = types.optional_of(type_)
            self._report(node, f"expected type '{expected}' but found '{type_}'")
        return type_

    def _list(self, node: ListNode) -> Type:
        element: Type | None = None
        # Only the values of `format` may have different types.
        mixed, self._mixed = self._mixed, False
        for index, item in enumerate(node.elements):
            current = self._element(item, optional=index in node.optional)
            if mixed and element is not None and not self.unifier.assignable(element, current):
                element = types.DYN
            element = self._join(item, element, current)
        return types.list_of(element or self.unifier.fresh())

    def _map(self, node: MapNode) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            self.visit(entry.key)
            key = self._join(entry.key, key, self._type(entry.key))
            current = self._element(entry.value, optional=entry.optional)
            value = self._join(entry.value, value, current)
        return types.map_of(key or self.unifier.fresh(), value or self.unifier.fresh())

    def _message(self, node: MessageNode) -> Type:
        for entry in node.entries:
            self.visit(entry.value)
        for full in candidates(node.name, self._env.container):
            constant = self._env.library.constants.get(full)
            if constant is not None:
                return self._report(node, f"'{full}' is not a message type")
        return self._undeclared(node, node.name)

    # Loops

    def _comprehension(self, node: Comprehension) -> Type:
        self.visit(node.range)
        self.visit(node.initial)
        accumulated = self._type(node.initial)
        variables = self._loop_variables(node)
        self._scopes.append({node.accumulator: accumulated})
        self._scopes.append(variables)
        self.visit(node.condition)
        self._assert(node.condition, types.BOOL)
        self.visit(node.step)
        self._assert(node.step, accumulated)
        self._scopes.pop()
        self.visit(node.result)
        self._scopes.pop()
        return self._type(node.result)

    def _loop_variables(self, node: Comprehension) -> dict[str, Type]:
        ranged = self._type(node.range)
        pair = len(node.variables) == 2
        variable_types: tuple[Type, ...]
        if ranged.kind == "list":
            variable_types = (types.INT, ranged.params[0]) if pair else (ranged.params[0],)
        elif ranged.kind == "map":
            variable_types = ranged.params if pair else ranged.params[:1]
        else:
            if ranged.kind == types.PARAM:
                self.unifier.assignable(types.DYN, ranged)
            elif ranged not in (types.DYN, types.ERROR):
                text = f"expression of type '{ranged}' cannot be range of a comprehension"
                self._report(node.range, f"{text} (must be list, map, or dynamic)")
            variable_types = (types.DYN,) * len(node.variables)
        return dict(zip(node.variables, variable_types, strict=True))

    def _assert(self, node: Node, expected: Type) -> None:
        type_ = self._type(node)
        if not self.unifier.assignable(expected, type_):
            expected = self.unifier.resolve(expected)
            self._report(node, f"expected type '{expected}' but found '{type_}'")
