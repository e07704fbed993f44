"""Asks the database of known vulnerabilities about the pinned packages."""

from __future__ import annotations

import re

from release.lock import LOCKS
from release.project import ReleaseError, run

_UNREACHABLE = ("ConnectionError", "Failed to resolve", "Max retries", "ServiceError")
_UNKNOWN = re.compile(r"could not be audited: (\S+)")


def audit() -> int:
    """Return 1 if a pinned package is known to be vulnerable, 2 if some could not be audited."""
    return max(_audit(f"requirements/{name}.txt") for name in LOCKS)


def _audit(lock: str) -> int:
    flags = ("--require-hashes", "--disable-pip", "--progress-spinner=off")
    try:
        output, failed = run("pip-audit", *flags, "--requirement", lock), False
    except ReleaseError as error:
        output, failed = str(error), True
    code, text = verdict(output, failed=failed)
    print(f"{lock}: {text}")
    return code


def verdict(output: str, *, failed: bool) -> tuple[int, str]:
    """Return the exit code and a text for what pip-audit printed.

    It succeeds also where the database does not know a package, as on a mirror without one.
    """
    if failed and not any(text in output for text in _UNREACHABLE):
        return 1, output.strip()
    if failed:
        reason = output.strip().splitlines()[-1]
        return 2, f"not audited: the database of vulnerabilities is unreachable\n  {reason}"
    if unknown := _UNKNOWN.findall(output):
        return 2, f"{len(unknown)} packages not audited: the database does not know them"
    return 0, output.strip()
