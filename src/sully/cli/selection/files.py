"""Names on a command line that are files of the current folder: the shell has expanded a `*`."""

import os
from collections.abc import Iterable

EXPANDED = "these are files of the current folder, as if the shell had expanded a *"


def current_files() -> list[str]:
    """Return the files that a `*` would be expanded to."""
    try:
        return [name for name in os.listdir() if not name.startswith(".")]
    except OSError:
        return []


def files_hint(missing: Iterable[str], *, patterns: bool = True) -> str:
    """Return a line below names that were not found; empty if none of them is a file.

    `patterns`: the command accepts globs, if they are quoted.
    """
    files = set(current_files())
    if not files.intersection(missing):
        return ""
    return f"\n  {EXPANDED}" + ("; quote patterns: '*'" if patterns else "")
