"""The server of server.py as a process of its own, and commands against it.

with foreign("--minor", "33", "--devices", "v1beta1") as there:
    there.sully("devices")
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from e2e.raw import KeptRaw, Raw
from sully.testing.forkserver import run, start_module
from sully.testing.patience import PATIENCE

TESTS = Path(__file__).parents[1]


@dataclass(slots=True)
class Foreign:
    """A running server that is not ours."""

    folder: Path
    url: str
    forget_versions: Callable[[], None] = lambda: None
    """Make the server forget all old resource versions, and end all watches."""

    @property
    def kubeconfig(self) -> Path:
        """Return the admin's kubeconfig."""
        return self.folder / "kubeconfig"

    def admin(self) -> Raw:
        """Return the admin's access without a client."""
        return KeptRaw.admin(self.kubeconfig, self.folder)

    def rules(self) -> str:
        """Return where it has DeviceTaintRules: in 1.36 they are only a beta."""
        for version in ("v1", "v1beta2"):
            group = f"/apis/resource.k8s.io/{version}"
            resources = self.admin().request("GET", group).json()["resources"]
            if any(one["name"] == "devicetaintrules" for one in resources):
                return f"{group}/devicetaintrules"
        raise LookupError("the server has no DeviceTaintRules")

    def sully(
        self,
        *arguments: str,
        kubeconfig: Path | None = None,
        cwd: Path | None = None,
        **env: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command against it."""
        config = str(kubeconfig or self.kubeconfig)
        environment = {**os.environ, "COLUMNS": "200", **env}
        return run(*arguments, "--kubeconfig", config, env=environment, cwd=cwd)


@contextmanager
def foreign(*flags: str) -> Iterator[Foreign]:
    """Run such a server until the block ends."""
    with (
        tempfile.TemporaryDirectory(prefix="sully-") as name,
        (Path(name) / "log").open("w") as log,
    ):
        child = start_module(
            *("kube.server", "--data-dir", name, *flags),
            folder=TESTS,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            url = _ready(child, Path(name) / "log")
            yield Foreign(Path(name), url, partial(child.send_signal, signal.SIGUSR1))
        finally:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            assert child.stdout is not None
            child.stdout.close()


def _ready(child: subprocess.Popen[str], log: Path) -> str:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("ready: "):
            # It logs there, too, and would stop once the pipe is full.
            threading.Thread(target=_drain, args=(child.stdout,), daemon=True).start()
            return line.removeprefix("ready: ").strip()
    raise RuntimeError(f"the server ended before it was ready:\n{log.read_text()}")


def _drain(output: TextIO) -> None:
    with suppress(ValueError):  # closed at the end
        for _ in output:
            pass
