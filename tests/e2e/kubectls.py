"""Which kubectl programs there are to test with.

`SULLY_KUBECTLS` (colon separated) names them outright. Otherwise: the old one that `make test`
fetches, the one on PATH, and those that lie beside the latter as `kubectl.1.NN`: the oldest and the
newest of them, and all in `make robust`.
"""

import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from property_examples import ALL
from suite_plugin import DEBIAN_KUBECTL
from sully.testing.patience import PATIENCE

_SIBLING = re.compile(r"kubectl\.1\.\d+")


@dataclass(frozen=True, slots=True)
class Kubectl:
    """One kubectl program."""

    path: Path
    minor: int
    # Others repeat what is likely to differ between versions, and not every session.
    main: bool

    def __str__(self) -> str:
        return f"kubectl-1.{self.minor}"


@functools.cache
def find() -> tuple[Kubectl, ...]:
    """Return one kubectl of each version, oldest first."""
    result: dict[int, Kubectl] = {}
    for path, main in _candidates():
        minor = _minor(path)
        if minor not in result:
            result[minor] = Kubectl(path, minor, main)
    return tuple(result[minor] for minor in sorted(result))


def _candidates() -> Iterator[tuple[Path, bool]]:
    if named := os.environ.get("SULLY_KUBECTLS"):
        yield from ((Path(text), True) for text in named.split(":") if text)
        return
    if DEBIAN_KUBECTL.exists():
        yield DEBIAN_KUBECTL, True
    if on_path := shutil.which("kubectl"):
        yield Path(on_path), True
        beside = Path(on_path).resolve().parent.iterdir()
        siblings = sorted(path for path in beside if _SIBLING.fullmatch(path.name))
        yield from (
            (path, False) for path in (siblings if ALL else (*siblings[:1], *siblings[-1:]))
        )


def _minor(path: Path) -> int:
    done = subprocess.run(
        [path, "version", "--client", "-o", "json"],
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    client_version = json.loads(done.stdout)["clientVersion"]
    return int(re.sub(r"\D.*", "", client_version["minor"]))
