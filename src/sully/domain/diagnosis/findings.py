"""The result of a check, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

State = Literal["ok", "warning", "failure"]


class Finding(msgspec.Struct, frozen=True):
    """What one check has found."""

    check: str
    state: State
    message: str
    remedy: str = ""
    """What to do; empty if nothing is wrong."""


def ok(check: str, message: str) -> Finding:
    """Return that nothing is wrong."""
    return Finding(check, "ok", message)


def warning(check: str, message: str, remedy: str) -> Finding:
    """Return what will fail, or could not be checked."""
    return Finding(check, "warning", message, remedy)


def failure(check: str, message: str, remedy: str) -> Finding:
    """Return what does not work."""
    return Finding(check, "failure", message, remedy)


def has_failure(findings: Iterable[Finding]) -> bool:
    """Report whether something does not work."""
    return any(finding.state == "failure" for finding in findings)


MOST_NAMED = 5


def listed(names: Iterable[object]) -> str:
    """Return names in a text: the first ones, and how many more there are."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return ", ".join(texts[:MOST_NAMED]) + more
