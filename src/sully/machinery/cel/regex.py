"""Regular expressions in time linear in the text: RE2, loaded when the first one is needed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sully.machinery.cel.errors import EvaluationError
from sully.machinery.cel.values import checked_size


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return a compiled pattern; raise EvaluationError when it is not one."""
    import re2  # Deferred: it takes longer to load than all of this package.

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, ValueError) as error:
        raise EvaluationError(f"error parsing regexp: {_reason(error)}") from None


# The messages of Go, where RE2 has others.
_REASONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


def _reason(error: Exception) -> str:
    """Return what is wrong with a pattern, and which part of it."""
    reason = error.args[0] if error.args else ""
    text, _, part = (reason.decode() if isinstance(reason, bytes) else str(reason)).partition(": ")
    return f"{_REASONS.get(text, text)}: `{part}`"


def matches(text: str, pattern: str) -> bool:
    """Report whether a pattern occurs anywhere in a text."""
    return compiled(pattern).search(text) is not None


def find(text: str, pattern: str) -> str:
    """Return the first occurrence of a pattern, or the empty string."""
    match = compiled(pattern).search(text)
    return "" if match is None else str(match.group(0))


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the occurrences of a pattern, at most `limit` when that is not negative."""
    texts: list[str] = []
    for match in compiled(pattern).finditer(text):
        if 0 <= limit <= len(texts):
            break
        texts.append(match.group(0))
        checked_size(len(texts))
    return texts
