"""Errors of expressions and their texts.

The texts follow cel-go, because Kubernetes copies them into its answers and clients know them:
one block per problem, the offending line under it, and a caret under the column.
"""

from __future__ import annotations

from typing import Final

import msgspec

LIMIT_TEXT: Final = "operation cancelled: actual cost limit exceeded"
_WIDE_DOT: Final = "\uff0e"
_WIDE_CARET: Final = "\uff3e"


class CompileError(ValueError):
    """An expression that cannot be used; `str()` is what Kubernetes puts into its answer.

    `syntax` is true when Kubernetes puts `compilation failed: ` before it, and false when the
    expression is well-formed but has the wrong type.
    """

    def __init__(self, message: str, *, syntax: bool = True) -> None:
        super().__init__(message)
        self.syntax = syntax

    @property
    def detail(self) -> str:
        """Return the text of the field error in an API answer."""
        return f"compilation failed: {self}" if self.syntax else str(self)


class ProgramError(CompileError):
    """An expression that has no program although it compiles; Kubernetes calls that internal."""

    @property
    def detail(self) -> str:
        """Return the text of the field error in an API answer."""
        return f"program instantiation failed: {self}"


class EvaluationError(Exception):
    """An expression that failed on these inputs; `&&` and `||` may absorb it."""


class NoSuchKeyError(EvaluationError):
    """A map or an object has no such key or field."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no such key: {key}")
        self.key = key


class NoSuchOverloadError(EvaluationError):
    """No function accepts these operands."""

    def __init__(self) -> None:
        super().__init__("no such overload")


class CostLimitError(EvaluationError):
    """The evaluation used up its budget. Nothing absorbs this."""

    def __init__(self) -> None:
        super().__init__(LIMIT_TEXT)


class Issue(msgspec.Struct, frozen=True):
    """One problem at a position of the source, counted in characters; -1 is unknown."""

    offset: int
    message: str


def render(issues: list[Issue], source: str) -> str:
    """Return all problems in the order of their places, as cel-go prints them."""
    placed = [(*_place(issue.offset, source), issue.message) for issue in issues]
    placed.sort(key=lambda item: (item[0], item[1]))
    lines = source.split("\n")
    return "\n".join(_block(line, column, message, lines) for line, column, message in placed)


def _place(offset: int, source: str) -> tuple[int, int]:
    """Return the line, counted from one, and the column, counted from zero."""
    if offset < 0:
        return -1, -1
    if not source:
        # The end of nothing is before its first column.
        return 1, -1
    before = source[:offset]
    line = before.count("\n") + 1
    return line, offset - (before.rfind("\n") + 1)


def _block(line: int, column: int, message: str, lines: list[str]) -> str:
    head = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 1 or column < 0:
        return head
    text = lines[line - 1]
    dots = "".join("." if char.isascii() else _WIDE_DOT for char in text[:column])
    caret = "^" if text[column : column + 1].isascii() else _WIDE_CARET
    return f"{head}\n | {text.replace(chr(9), ' ')}\n | {dots}{caret}"
