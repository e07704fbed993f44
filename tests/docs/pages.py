"""The commands of a guide: each is run, or the page gives the reason.

A page starts its control plane with a `bash` block whose first line is `sully up …`; the flags are
taken from there. What stands in `console` blocks is run against it (console.py). Any other block
with commands has a line above it that readers do not see: `<!-- not run: why -->`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_FENCE = re.compile(
    r"^(?P<above>[^\n]*)\n\n?```(?P<kind>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_INDENTED = re.compile(r"(?:^|\n)(?P<above>[^\n]*)\n\n(?P<body>(?: {4}[^\n]*\n)+)")
_EXCUSE = re.compile(r"<!-- not run: \S.+ -->")
_COMMAND = re.compile(
    r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )?(?:sully|kubectl|etcdctl|pip|make|tar|curl) ", re.M
)
_SHELL = ("bash", "sh", "shell")
_WORDS = re.compile(r"`(?:kubectl )?((?:sully|kubectl) [^`]+)`")
_SERVERS = ("up", "controllers", "install")
"""Commands that continue, or that set a cluster up: pages start them in blocks of their own."""
_PLACEHOLDER = re.compile(r"…|\b[A-Z]{1,}\b")


def flags(page: str) -> list[str]:
    """Return the flags with which a page starts its control plane; none if it starts none."""
    for match in _FENCE.finditer(page):
        first = match["body"].partition("\n")[0]
        if match["kind"] in _SHELL and first.startswith("sully up"):
            return shlex.split(first, comments=True)[2:]
    return []


def unexplained(page: str) -> Iterator[str]:
    """Yield the blocks of commands that nobody runs and that give no reason."""
    for match in _FENCE.finditer(page):
        body, kind = match["body"], match["kind"]
        if kind in ("console", "yaml", "json", "mermaid") or not _COMMAND.search(body):
            continue
        starts = kind in _SHELL and body.startswith("sully up")
        if not starts and not _EXCUSE.search(match["above"]):
            yield body
    for match in _INDENTED.finditer(_FENCE.sub("", page)):
        if _COMMAND.search(match["body"]) and not _EXCUSE.search(match["above"]):
            yield match["body"]


def mentioned(page: str) -> Iterator[str]:
    """Yield the commands in the text of a page that a user could type as they stand there."""
    for text in _WORDS.findall(_INDENTED.sub("", _FENCE.sub("", page))):
        command = " ".join(text.split())
        arguments = command.split()
        typed = len(arguments) > 2 and not all(word.isalpha() for word in arguments)
        if typed and arguments[1] not in _SERVERS and not _PLACEHOLDER.search(command):
            yield command
