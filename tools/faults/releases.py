"""Earlier releases of Sully as programs, for upgrades and downgrades on the same data.

A release is the source of its commit, which git has; it runs with the packages that are installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from crashes.server import DiedError

_ROOT = Path(__file__).resolve().parent.parent.parent
_CACHE = _ROOT / ".cache" / "releases"


class ReleaseError(Exception):
    """A release cannot be used here."""


@dataclass(frozen=True, slots=True)
class Release:
    """One version of Sully."""

    version: str
    commit: str = ""
    """Empty: what is checked out."""

    @property
    def is_current(self) -> bool:
        """Report whether it is what is checked out."""
        return not self.commit

    @property
    def environment(self) -> dict[str, str]:
        """Return what lets a process import this release."""
        return {} if self.is_current else {"PYTHONPATH": str(self._folder / "src")}

    @property
    def _folder(self) -> Path:
        return _CACHE / self.version

    def prepare(self) -> None:
        """Take its source out of git, once."""
        if self.is_current or (self._folder / "src").exists():
            return
        command = ["git", "-C", str(_ROOT), "archive", self.commit, "src"]
        archived = subprocess.run(command, capture_output=True, check=False)
        if archived.returncode:
            reason = archived.stderr.decode(errors="replace").strip()
            raise ReleaseError(
                f"the source of {self.version} is not here: {reason}."
                " Upgrades need a clone with its history"
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-x", "-C", str(self._folder)], input=archived.stdout, check=True)

    def run(self, *arguments: str) -> None:
        """Run one of its commands to a good end."""
        done = subprocess.run(
            [sys.executable, "-m", "sully.cli.main", *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise DiedError(
                f"sully {arguments[0]} of {self.version} ended with {done.returncode}:"
                f" {done.stderr.strip()}"
            )


CURRENT = Release("current")
EARLIER = (
    Release("0.1.0", "0d21f5615a38eb4d9f4fbf39535aedd444437f55"),
    Release("0.2.0", "5cb17e5e589748f57d38a9cd9e6cc60cf57702a0"),
)
