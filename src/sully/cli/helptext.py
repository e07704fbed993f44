"""The text below the flags of `--help`, made to fit the terminal.

It is written for lines of 100 columns, as the reference shows it. Where there is less room,
paragraphs are filled anew, and an example is broken so that a shell still takes it as one.
"""

import argparse
import re
from collections.abc import Iterator
from itertools import groupby

_WORDS = re.compile(r"(?:'[^']*'|\"[^\"]*\"|\S)+")
"""Words of a shell; what is in quotes is not broken."""
_TOLD = re.compile(r"(?<=\S)\s{2,}(?=[^\s-])")
"""The gap between an example and what it does."""
_DEEPER = "    "


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps lines as they are where they fit."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = super()._fill_text(text, width, indent).splitlines()
        if all(len(line) <= width for line in lines):
            return "\n".join(lines) + "\n"
        return "\n".join(fitted(lines, width)) + "\n"


def fitted(lines: list[str], width: int) -> Iterator[str]:
    """Yield lines so that none is too long."""
    for kind, some in groupby(lines, key=_kind):
        if kind == "example":
            for line in some:
                yield from _example(line, width)
        elif kind == "text":
            yield from _filled(" ".join(some), width)
        else:
            yield from some


def _kind(line: str) -> str:
    if not line.strip() or line.endswith(":"):
        return "as it is"
    return "example" if line.startswith(" ") else "text"


def _filled(text: str, width: int, indent: str = "") -> list[str]:
    from textwrap import wrap

    return wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _example(line: str, width: int) -> Iterator[str]:
    if len(line) <= width:
        yield line
        return
    indent = line[: len(line) - len(line.lstrip())]
    parts = _TOLD.split(line.strip(), maxsplit=1)
    close = indent + "  ".join(parts)
    if len(close) <= width:
        yield close
        return
    yield from _broken(parts[0], width, indent)
    for told in parts[1:]:
        yield from _filled(told, width, indent + _DEEPER)


def _broken(command: str, width: int, indent: str) -> Iterator[str]:
    """Yield a command over several lines, as shells take it."""
    line, begun = indent, False
    words = _WORDS.findall(command)
    for at, word in enumerate(words, start=1):
        room = width if at == len(words) else width - len(" \\")
        if begun and len(line) + 1 + len(word) > room:
            yield f"{line} \\"
            line, begun = indent + _DEEPER, False
        line += f" {word}" if begun else word
        begun = True
    yield line
