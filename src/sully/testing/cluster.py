"""Whole control planes for tests: in this process, or in one of their own.

async with in_process() as plane:          # memory store, real socket, real TLS
    ...plane.url, plane.kubeconfig, plane.direct()

with process("--store", "sqlite") as up:   # `sully up` as users run it
    ...up.kubeconfig
"""

import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from sully.app import Config, RunningControlPlane, running
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates
from sully.runtime.clock import Clock
from sully.testing.forkserver import start
from sully.testing.patience import PATIENCE


@asynccontextmanager
async def in_process(
    *,
    store: str = "memory",
    data_dir: Path | None = None,
    gates: Gates | None = None,
    compat: Compat = Compat.SULLY,
    clock: Clock | None = None,
) -> AsyncIterator[RunningControlPlane]:
    """Run a control plane in this event loop, on a free port."""
    with tempfile.TemporaryDirectory(prefix="sully-") as folder:
        config = Config(
            data_dir=data_dir or Path(folder),
            port=0,
            store=store,
            gates=gates or Gates(),
            compat=compat,
        )
        async with running(config, clock) as plane:
            yield plane


@dataclass(slots=True)
class Process:
    """A running `sully up`."""

    child: subprocess.Popen[str]
    data_dir: Path
    url: str
    lines: "SimpleQueue[str]"  # its output once it is ready; an empty text is the end
    dashboard: str = ""  # the link to its dashboard, which can be used once

    @property
    def kubeconfig(self) -> Path:
        """Return the admin's kubeconfig."""
        return self.data_dir / "kubeconfig"

    def output(self) -> Iterator[str]:
        """Read its output, line by line, until it ends."""
        return iter(self.lines.get, "")

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ask it to end; return its exit code."""
        self.child.send_signal(number)
        return self.child.wait(timeout=PATIENCE)


@contextmanager
def process(*arguments: str, data_dir: Path | None = None) -> Iterator[Process]:
    """Run `sully up` as a process of its own until the block ends."""
    with tempfile.TemporaryDirectory(prefix="sully-") as folder:
        where = data_dir or Path(folder)
        command = ["up", "--data-dir", str(where)]
        if "--listen" not in arguments:
            command += ["--listen", "127.0.0.1:0"]
        child = start(
            *command,
            *arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            url, dashboard = _ready(child)
            yield Process(child, where, url, _follow(child), dashboard)
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
                try:
                    child.wait(timeout=PATIENCE)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
            if child.stdout is not None:
                child.stdout.close()


def _follow(child: "subprocess.Popen[str]") -> "SimpleQueue[str]":
    """Keep reading the output of a process: it would block once the pipe is full."""
    lines: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        with suppress(ValueError):  # closed at the end
            for line in child.stdout or ():
                lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    return lines


def _ready(child: "subprocess.Popen[str]") -> tuple[str, str]:
    """Read its output up to the line that it is ready; return its URL and its dashboard."""
    if child.stdout is None:
        raise RuntimeError("the process has no output to read")
    url, dashboard, lines = "", "", []
    for line in child.stdout:
        lines.append(line)
        if line.startswith("dashboard:"):
            dashboard = line.split()[1]
        if match := re.search(r'https://[^\s"]+', line):
            url = url or match[0]
        if line.startswith("ready after") or '"event":"ready"' in line:
            return url, dashboard
    raise RuntimeError("sully up ended before it was ready:\n" + "".join(lines))
