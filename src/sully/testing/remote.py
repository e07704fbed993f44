"""`sully controllers` and `sully simulate-nodes` as users run them, for tests: beside a server.

with process("--disable-controllers") as up, controllers(up.kubeconfig) as crew:
    crew.wait_for("leading since")

with simulated_nodes(kubeconfig, "--nodes", "2") as nodes:
    ...
"""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from sully.testing.forkserver import start

_PATIENCE = 120.0
"""Seconds after which a process is stuck."""


@dataclass(slots=True)
class Crew:
    """A running command."""

    child: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)
    _lines: "SimpleQueue[str]" = field(default_factory=SimpleQueue)  # an empty text is the end

    def follow(self) -> None:
        """Go on reading what it says: it would stop once the pipe is full."""
        with suppress(ValueError):  # closed at the end
            for line in self.child.stdout or ():
                self._lines.put(line)
        self._lines.put("")

    def wait_for(self, text: str, seconds: float = _PATIENCE) -> str:
        """Read what it says up to a line that contains this text; return that line."""
        while True:
            try:
                line = self._lines.get(timeout=seconds)
            except Empty:
                line = ""
            if not line:
                raise RuntimeError(f"it never said {text!r}:\n" + "".join(self.said))
            self.said.append(line)
            if text in line:
                return line.strip()

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ask it to end; return its exit code."""
        if self.child.poll() is None:
            self.child.send_signal(number)
        return self.child.wait(timeout=_PATIENCE)


@contextmanager
def controllers(kubeconfig: Path, *arguments: str) -> Iterator[Crew]:
    """Run `sully controllers` as a process of its own until the block ends."""
    with _running("controllers", kubeconfig, *arguments) as crew:
        yield crew


@contextmanager
def simulated_nodes(kubeconfig: Path, *arguments: str) -> Iterator[Crew]:
    """Run `sully simulate-nodes` until the block ends; its nodes are ready when it begins."""
    with _running("simulate-nodes", kubeconfig, *arguments) as crew:
        crew.wait_for("ready: ")
        yield crew


@contextmanager
def _running(command: str, kubeconfig: Path, *arguments: str) -> Iterator[Crew]:
    child = start(
        command,
        "--kubeconfig",
        str(kubeconfig),
        *arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    crew = Crew(child)
    threading.Thread(target=crew.follow, daemon=True).start()
    try:
        yield crew
    finally:
        try:
            crew.stop()
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()
