"""Text to tokens.

Unknown characters do not stop the reading: each is reported and skipped, as ANTLR's lexers do, so
that one answer names every problem. The values of string and number tokens are made in `literals`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from sully.machinery.cel.errors import Issue

EOF: Final = "<EOF>"
IDENT: Final = "IDENTIFIER"
ESCAPED: Final = "ESC_IDENTIFIER"
INT: Final = "NUM_INT"
UINT: Final = "NUM_UINT"
FLOAT: Final = "NUM_FLOAT"
STRING: Final = "STRING"
BYTES: Final = "BYTES"

KEYWORDS: Final = frozenset({"true", "false", "null", "in"})
RESERVED: Final = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    )
)

_ESCAPE: Final = (
    r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}"
    r"|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
)


def _quoted(quote: str) -> str:
    return rf"{quote}(?:{_ESCAPE}|[^\\{quote}\n\r])*{quote}"


def _tripled(quote: str) -> str:
    return rf"{quote * 3}(?:{_ESCAPE}|[^\\])*?{quote * 3}"


_COOKED: Final = "|".join((_tripled('"'), _tripled("'"), _quoted('"'), _quoted("'")))
_RAW: Final = "|".join(
    (r'[rR]"""[\s\S]*?"""', r"[rR]'''[\s\S]*?'''", r'[rR]"[^"\n\r]*"', r"[rR]'[^'\n\r]*'")
)
_TOKEN: Final = re.compile(
    "|".join(
        (
            r"(?P<skip>[\t\n\f\r ]+|//[^\n]*)",
            rf"(?P<BYTES>[bB](?:{_RAW}|{_COOKED})|[rR][bB](?:\"[^\"\n\r]*\"|'[^'\n\r]*'))",
            rf"(?P<STRING>{_RAW}|{_COOKED})",
            r"(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"
            r"|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<NUM_UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])",
            r"(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<ESC_IDENTIFIER>`[a-zA-Z0-9_.\-/ ]+`)",
            r"(?P<IDENTIFIER>[a-zA-Z_][a-zA-Z0-9_]*)",
            r"(?P<op>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])",
        )
    ),
    re.ASCII,
)
# What an unknown character may be the start of; the reader looks one further before it gives up.
_STARTS: Final = re.compile(r"[|&=](?:[^|&=]|$)|[\"'][^\n\r]*|[^\n]")


class Token(NamedTuple):
    """A piece of the source: its kind (operators are their own), its text and its place."""

    kind: str
    text: str
    pos: int


def tokenize(source: str) -> tuple[list[Token], list[Issue]]:
    """Return the tokens, ending with EOF, and what could not be read."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    position, end = 0, len(source)
    while position < end:
        match = _TOKEN.match(source, position)
        if match is None:
            unknown = _STARTS.match(source, position)
            text = unknown.group() if unknown else source[position]
            issues.append(Issue(position, f"Syntax error: token recognition error at: '{text}'"))
            position += len(text)
            continue
        kind, text = match.lastgroup or "", match.group()
        if kind != "skip":
            operator = kind == "op" or (kind == IDENT and text in KEYWORDS)
            tokens.append(Token(text if operator else kind, text, position))
        position = match.end()
    tokens.append(Token(EOF, EOF, end))
    return tokens, issues
