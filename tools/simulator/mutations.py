"""Faults that are planted in Sully's own code, each of which the simulation must find.

planted.txt lists them. A fault replaces lines of a module while it is loaded. They must occur
exactly once: a change of the code that moves them fails the run, and not silently weakens it.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

LIST = Path(__file__).with_name("planted.txt")


class MutationError(Exception):
    """A mutation does not fit the code any more."""


@dataclass(slots=True)
class Mutation:
    """One fault."""

    name: str
    module: str = ""
    old: str = ""
    new: str = ""

    def apply(self, source: str) -> str:
        """Return the source with the fault in it."""
        count = source.count(self.old)
        if count != 1:
            raise MutationError(
                f"{self.name}: {self.module} has these lines {count} times, not once:\n{self.old}"
            )
        return source.replace(self.old, self.new)


def mutations() -> list[Mutation]:
    """Return all faults, in the order of the list."""
    return list(_parse(LIST.read_text()))


def _parse(text: str) -> Iterator[Mutation]:
    mutation: Mutation | None = None
    for line in text.splitlines():
        mark, rest = line[:1], line[1:]
        if mark == "=":
            if mutation is not None:
                yield mutation
            mutation = Mutation(rest.strip())
        elif mutation is not None and mark == "@":
            mutation.module = rest.strip()
        elif mutation is not None and mark == "-":
            mutation.old += f"{rest}\n"
        elif mutation is not None and mark == "+":
            mutation.new += f"{rest}\n"
    if mutation is not None:
        yield mutation


def check(mutation: Mutation) -> None:
    """Raise if a mutation does not fit the code, or is invalid code."""
    spec = importlib.util.find_spec(mutation.module)
    if spec is None or spec.origin is None:
        raise MutationError(f"{mutation.name}: there is no module {mutation.module}")
    source = Path(spec.origin).read_text()
    compile(mutation.apply(source), mutation.module, "exec")


@dataclass(frozen=True, slots=True)
class _Finder(importlib.abc.MetaPathFinder):
    mutation: Mutation

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find only the module of the mutation."""
        if fullname != self.mutation.module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(self.mutation, fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, mutation: Mutation, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._mutation = mutation

    def get_code(self, fullname: str) -> CodeType:
        """Compile the changed source, never from a cache."""
        source = self.get_source(fullname)
        assert source is not None, fullname
        code = compile(self._mutation.apply(source), self.path, "exec")
        assert isinstance(code, CodeType), fullname
        return code


def plant(name: str) -> None:
    """Plant a fault in this process; before its module is imported."""
    mutation = next(known for known in mutations() if known.name == name)
    if mutation.module in sys.modules:
        raise MutationError(f"{mutation.module} is loaded already")
    sys.meta_path.insert(0, _Finder(mutation))
