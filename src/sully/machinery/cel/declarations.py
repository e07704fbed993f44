"""What an environment knows: functions with their overloads, variables and object types.

Libraries are tables of signatures written as text, `string.startsWith(string) -> bool`, each with
the Python function that does it. They are read once, when the first environment is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from sully.machinery.cel.types import PARAM, Type, parse_type

Implementation = Callable[..., Any]
_SIGNATURE: Final = re.compile(
    r"(?:(?P<target>[\w.(), ]+):)?(?P<name>\S+?)\((?P<args>.*)\) -> (?P<result>.+)"
)


class Overload(msgspec.Struct, frozen=True, eq=False):
    """One way to call a function."""

    id: str
    args: tuple[Type, ...]
    result: Type
    member: bool
    run: Implementation
    generic: bool
    dynamic: bool = False
    """Only values find it, while an expression runs: known types do not match it."""


class SizeEstimate(msgspec.Struct, frozen=True):
    """How large a value can get, for the estimate of the worst case.

    `named`: every element may also be selected by name and has the same size.
    """

    size: int
    key: SizeEstimate | None = None
    element: SizeEstimate | None = None
    fields: Mapping[str, SizeEstimate] = msgspec.field(default_factory=dict)
    named: bool = False


class Library(msgspec.Struct, frozen=True):
    """Functions under their names, and constants such as the names of types."""

    functions: Mapping[str, tuple[Overload, ...]]
    constants: Mapping[str, Type] = msgspec.field(default_factory=dict)


def overload(identifier: str, signature: str, run: Implementation) -> tuple[str, Overload]:
    """Read `target:name(args) -> result` (the target is absent for plain functions)."""
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(f"not a signature: {signature}")
    target = match["target"]
    args = tuple(parse_type(text) for text in _split(match["args"]))
    if target:
        args = (parse_type(target), *args)
    generic = any(map(_has_variable, args))
    return match["name"], Overload(
        identifier, args, parse_type(match["result"]), bool(target), run, generic
    )


def library(
    rows: Iterable[tuple[str, str, Implementation]], constants: Mapping[str, Type] | None = None
) -> Library:
    """Build a library from rows of overload identifier, signature and function."""
    functions: dict[str, list[Overload]] = {}
    for identifier, signature, run in rows:
        name, declared = overload(identifier, signature, run)
        functions.setdefault(name, []).append(declared)
    return Library(
        {name: tuple(overloads) for name, overloads in functions.items()}, constants or {}
    )


def merge(libraries: Iterable[Library]) -> Library:
    """Merge libraries."""
    functions: dict[str, tuple[Overload, ...]] = {}
    constants: dict[str, Type] = {}
    for library_ in libraries:
        for name, overloads in library_.functions.items():
            functions[name] = functions.get(name, ()) + overloads
        constants.update(library_.constants)
    return Library(functions, constants)


def dynamic(library_: Library) -> Library:
    """Return the functions of a library for values whose types are not known beforehand."""
    functions = {
        name: tuple(msgspec.structs.replace(declared, dynamic=True) for declared in overloads)
        for name, overloads in library_.functions.items()
    }
    return Library(functions, library_.constants)


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside parentheses."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    return [part.strip() for part in (*parts, current) if part.strip()]


def _has_variable(type_: Type) -> bool:
    return type_.kind == PARAM or any(map(_has_variable, type_.params))
