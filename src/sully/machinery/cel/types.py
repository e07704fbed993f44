"""The types of the language, and how they unify.

A type is a kind, a name and parameters. Type variables (`T`) stand in the signatures of functions;
`Unifier` finds out what they stand for in one expression. checker.py drives it; the
values that have these types are in `values`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

PARAM: Final = "param"
ERROR_KIND: Final = "error"


class Type:
    """A type; types with the same kind, name and parameters are equal."""

    __slots__ = ("_hash", "kind", "name", "params")

    def __init__(self, kind: str, name: str = "", params: tuple[Type, ...] = ()) -> None:
        self.kind = kind
        self.name = name or kind
        self.params = params
        self._hash = hash((kind, self.name, params))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Type)
            and self._hash == other._hash
            and self.kind == other.kind
            and self.name == other.name
            and self.params == other.params
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"

    def __repr__(self) -> str:
        return f"Type({self})"

    @property
    def is_dyn(self) -> bool:
        """Report whether the type is dynamic: `dyn`, or `any`, which differs only in its name."""
        return self.kind in ("dyn", "any")


DYN: Final = Type("dyn")
ANY: Final = Type("any")
ERROR: Final = Type(ERROR_KIND, "!error!")
NULL: Final = Type("null")
NULL_TYPE: Final = Type("null", "null_type")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
TIMESTAMP: Final = Type("timestamp")
DURATION: Final = Type("duration")
TYPE: Final = Type("type")

_SIMPLE: Final = {
    "dyn": DYN,
    "any": ANY,
    "null": NULL,
    "null_type": NULL_TYPE,
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Duration": DURATION,
    "type": TYPE,
}
_WORD: Final = re.compile(r"[\w.]+|[(),]")


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of a value that may be absent."""
    return Type("opaque", "optional_type", (value,))


def type_of_type(value: Type) -> Type:
    """Return the type that a type itself has."""
    return Type("type", "type", (value,))


def object_type(name: str) -> Type:
    """Return the type of an object with declared fields."""
    return Type("object", name)


def opaque(name: str) -> Type:
    """Return the type of values that only functions look into."""
    return Type("opaque", name)


def is_optional(candidate: Type) -> bool:
    return candidate.kind == "opaque" and candidate.name == "optional_type"


@lru_cache(maxsize=512)
def parse_type(text: str) -> Type:
    """Read a type as it is printed; a single capital letter is a type variable."""
    parsed, rest = _parse(_WORD.findall(text))
    if rest:
        raise ValueError(f"not a type: {text}")
    return parsed


def _parse(tokens: list[str]) -> tuple[Type, list[str]]:
    name, rest = tokens[0], tokens[1:]
    params: list[Type] = []
    if rest[:1] == ["("]:
        while rest[0] != ")":
            param, rest = _parse(rest[1:])
            params.append(param)
        rest = rest[1:]
    if len(name) == 1 and name.isupper():
        return Type(PARAM, name), rest
    if name in ("list", "map", "type"):
        return Type(name, name, tuple(params)), rest
    return _SIMPLE.get(name) or Type("opaque", name, tuple(params)), rest


class Unifier:
    """The bindings of the type variables of one expression."""

    def __init__(self) -> None:
        self._bound: dict[Type, Type] = {}
        # What each change replaced, newest last, for rollbacks.
        self._trail: list[tuple[Type, Type | None]] = []
        self._fresh = 0

    def mark(self) -> int:
        """Return a savepoint for `rollback`."""
        return len(self._trail)

    def rollback(self, mark: int) -> None:
        """Forget everything learnt since a mark."""
        while len(self._trail) > mark:
            variable, previous = self._trail.pop()
            if previous is None:
                del self._bound[variable]
            else:
                self._bound[variable] = previous

    def _set(self, variable: Type, type_: Type) -> None:
        self._trail.append((variable, self._bound.get(variable)))
        self._bound[variable] = type_

    def fresh(self) -> Type:
        """Return a type variable that nothing else uses."""
        self._fresh += 1
        return Type(PARAM, f"_var{self._fresh}")

    def instantiate(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return the types of a signature with fresh variables."""
        names: dict[Type, Type] = {}
        return tuple(self._rename(type_, names) for type_ in types)

    def _rename(self, type_: Type, names: dict[Type, Type]) -> Type:
        if type_.kind == PARAM:
            if type_ not in names:
                names[type_] = self.fresh()
            return names[type_]
        if not type_.params:
            return type_
        return Type(type_.kind, type_.name, tuple(self._rename(p, names) for p in type_.params))

    def assignable(self, left: Type, right: Type) -> bool:
        """Unify two types; on failure no variable is bound."""
        return self.all_assignable((left,), (right,))

    def all_assignable(self, left: tuple[Type, ...], right: tuple[Type, ...]) -> bool:
        """Unify two rows of types; on failure no variable is bound."""
        before = self.mark()
        if len(left) == len(right) and all(map(self._unify, left, right)):
            return True
        self.rollback(before)
        return False

    def _unify(self, left: Type, right: Type) -> bool:
        if left is right:
            return True
        if right.kind == PARAM:
            fits, known = self._bind(left, right)
            if fits or known:
                return fits
        if left.kind == PARAM:
            return self._bind(right, left)[0]
        if left.is_dyn or right.is_dyn or ERROR_KIND in (left.kind, right.kind):
            return True
        if "null" in (left.kind, right.kind):
            other = right if left.kind == "null" else left
            return other.kind in ("null", "object", "opaque", "timestamp", "duration")
        if left.kind == "type":
            return right.kind == "type"
        if left.kind != right.kind or left.name != right.name:
            return False
        return len(left.params) == len(right.params) and all(
            map(self._unify, left.params, right.params)
        )

    def _bind(self, type_: Type, variable: Type) -> tuple[bool, bool]:
        """Try to bind a variable to a type; return success and whether it was bound."""
        if type_ == variable:
            return True, True
        current = self._bound.get(variable)
        if current is None:
            if self._occurs(variable, type_):
                return False, False
            self._set(variable, type_)
            return True, False
        if type_ == current:
            return True, True
        if not self._unify(type_, current):
            return False, True
        general = most_general(type_, current)
        if not self._occurs(variable, general):
            self._set(variable, general)
        return True, True

    def _occurs(self, variable: Type, within: Type) -> bool:
        if variable == within:
            return True
        if within.kind == PARAM:
            bound = self._bound.get(within)
            return bound is not None and self._occurs(variable, bound)
        return any(self._occurs(variable, param) for param in within.params)

    def resolve(self, type_: Type, *, default_dyn: bool = False) -> Type:
        """Replace variables by their bindings; unbound ones become dyn with `default_dyn`."""
        if type_.kind == PARAM:
            bound = self._bound.get(type_)
            if bound is not None:
                return self.resolve(bound, default_dyn=default_dyn)
            return DYN if default_dyn else type_
        if not type_.params:
            return type_
        params = tuple(self.resolve(p, default_dyn=default_dyn) for p in type_.params)
        return type_ if params == type_.params else Type(type_.kind, type_.name, params)


def most_general(left: Type, right: Type) -> Type:
    """Return the wider of two types that unify."""
    return left if _covers(left, right) else right


def _covers(left: Type, right: Type) -> bool:
    if left.is_dyn or left.kind == PARAM:
        return True
    if right.is_dyn or right.kind == PARAM:
        return False
    if right.kind == "null" and left.kind != "null":
        return True
    if left.kind != right.kind or left.name != right.name:
        return False
    if left.kind == "type":
        return True
    return len(left.params) == len(right.params) and all(map(_covers, left.params, right.params))
