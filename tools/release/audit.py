"""Asks the database of known vulnerabilities about the pinned packages."""

from __future__ import annotations

from release.lock import LOCKS
from release.project import ReleaseError, run

_UNREACHABLE = (
    "ConnectionError",
    "Failed to resolve",
    "Max retries",
    "ServiceError",
    "Name or service",
)


def audit() -> int:
    """Return 1 if a pinned package is known to be vulnerable, 2 if nobody could be asked."""
    code = 0
    for name in LOCKS:
        lock = f"requirements/{name}.txt"
        try:
            said = run(
                "pip-audit",
                "--require-hashes",
                "--disable-pip",
                "--progress-spinner=off",
                "-r",
                lock,
            )
        except ReleaseError as error:
            unreachable = any(text in str(error) for text in _UNREACHABLE)
            said = f"not audited: the database of vulnerabilities is unreachable\n  {_last(error)}"
            said = said if unreachable else str(error)
            code = max(code, 2 if unreachable else 1)
        print(f"{lock}: {said.strip()}")
    return code


def _last(error: ReleaseError) -> str:
    return str(error).strip().splitlines()[-1]
