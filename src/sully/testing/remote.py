"""`sully controllers` and `sully simulate-nodes` as users run them, for tests: beside a server.

with process("--disable-controllers") as up, controllers(up.kubeconfig) as process:
    process.wait_for("leading since")

with simulated_nodes(kubeconfig, "--nodes", "2") as process:
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
from sully.testing.patience import PATIENCE


@dataclass(slots=True)
class CommandProcess:
    """A running command."""

    child: subprocess.Popen[str]
    output: list[str] = field(default_factory=list)
    _lines: "SimpleQueue[str]" = field(default_factory=SimpleQueue)  # an empty text is the end

    def follow(self) -> None:
        """Keep reading the output: the process would block once the pipe is full."""
        with suppress(ValueError):  # closed at the end
            for line in self.child.stdout or ():
                self._lines.put(line)
        self._lines.put("")

    def wait_for(self, text: str, seconds: float = PATIENCE) -> str:
        """Read the output up to a line that contains this text; return that line."""
        while True:
            try:
                line = self._lines.get(timeout=seconds)
            except Empty:
                line = ""
            if not line:
                raise RuntimeError(f"no line contains {text!r}:\n" + "".join(self.output))
            self.output.append(line)
            if text in line:
                return line.strip()

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ask it to end; return its exit code."""
        if self.child.poll() is None:
            self.child.send_signal(number)
        return self.child.wait(timeout=PATIENCE)


@contextmanager
def controllers(kubeconfig: Path, *arguments: str) -> Iterator[CommandProcess]:
    """Run `sully controllers` as a process of its own until the block ends."""
    with running("controllers", *arguments, kubeconfig=kubeconfig) as process:
        yield process


@contextmanager
def simulated_nodes(kubeconfig: Path, *arguments: str) -> Iterator[CommandProcess]:
    """Run `sully simulate-nodes` until the block ends; its nodes are ready when it begins."""
    with running("simulate-nodes", *arguments, kubeconfig=kubeconfig) as process:
        process.wait_for("ready: ")
        yield process


@contextmanager
def running(command: str, *arguments: str, kubeconfig: Path) -> Iterator[CommandProcess]:
    """Run a command against a server, at most until the block ends."""
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
    process = CommandProcess(child)
    threading.Thread(target=process.follow, daemon=True).start()
    try:
        yield process
    finally:
        try:
            process.stop()
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()
