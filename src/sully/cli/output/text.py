"""Untrusted text on a terminal: on one line, without control sequences, and as wide as it looks.

Descriptions, reasons and attributes are text of any user who may write an object, and messages
are those of any server. A line break would break a table, and an escape sequence could make a
terminal show something false. `printable` is for one text; everything that a command
prints passes `guarded` on its way out (`cli/process.py`).
"""

import re
from collections.abc import Iterable

# Colours, and the end of a line erased: nothing that moves, hides or answers.
_OWN_SEQUENCES = re.compile("(\\x1b\\[(?:0|1|2|22|[349][0-7]|[34]9)m|\\r\\x1b\\[K)")


def printable(text: str) -> str:
    """Return a text on one line; control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(map(_escape, text))


def guarded(text: str) -> str:
    """Return what may be written to a stream: lines, tabs and the sequences that we use ourselves.

    A carriage return is ours only at the beginning.
    """
    if text.isprintable() or text == "\n":
        return text
    if text[0] == "\r" and not text.startswith("\r\x1b"):
        return "\r" + guarded(text[1:]) if len(text) > 1 else text
    parts = _OWN_SEQUENCES.split(text)
    # Every second part is a sequence of ours.
    parts[::2] = [
        part if part.isprintable() else "".join(map(_escape_except_breaks, part))
        for part in parts[::2]
    ]
    return "".join(parts)


def _escape_except_breaks(char: str) -> str:
    return char if char in "\n\t" else _escape(char)


def _escape(char: str) -> str:
    if char.isprintable():
        return char
    if char.isspace():
        return " "
    return char.encode("unicode_escape").decode()


def width(text: str) -> int:
    """Return how many columns a text takes: characters of East Asia take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    # A late import: most texts need none of this.
    from unicodedata import combining, east_asian_width

    if combining(char):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def fitting(text: str, columns: int) -> int:
    """Return how many characters of a text fit into so many columns, at least one."""
    if text.isascii():
        return max(1, columns)
    taken = 0
    for at, char in enumerate(text):
        taken += _columns(char)
        if taken > columns:
            return max(1, at)
    return len(text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest a known name that is close to a text; empty if none is."""
    from difflib import SequenceMatcher, get_close_matches

    names = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), names, n=max(1, len(names)), cutoff=0.75)
    if not close:
        return ""
    matcher = SequenceMatcher(b=word.lower())

    def rank(name: str) -> tuple[float, str]:
        matcher.set_seq1(name)
        return -matcher.ratio(), name

    # Of several that are equally close, the first by name.
    return f' (did you mean "{names[min(close, key=rank)]}"?)'
