"""Real commands in a pipe and in a pseudo-terminal, as a user runs them.

with terminal("devices", "--watch", env=...) as screen:
    screen.wait_for("gpu-0")
    screen.interrupt()
    assert screen.end() == 130
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sully.testing.forkserver import COMMAND, run, start
from sully.testing.patience import PATIENCE

ERASE = re.compile("\r(\x1b\\[1A)?\x1b\\[2K")
"""Empties the line, or the one above: what was on it is gone, also for whoever reads the screen."""
CURSOR = re.compile("\x1b\\[\\?25[lh]")
"""Hides or shows the cursor."""


def environment(kubeconfig: Path | None = None, **more: str) -> dict[str, str]:
    """Return what a command runs in: nothing of whoever runs the tests."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    result = inherited | {"TERM": "xterm", "NO_COLOR": "1"}
    if kubeconfig is not None:
        result["KUBECONFIG"] = str(kubeconfig)
    return {name: value for name, value in (result | more).items() if value}


def program(*arguments: str) -> list[str]:
    """Return how to start a command with an interpreter of its own."""
    return [*COMMAND, *arguments]


def piped(
    *arguments: str, env: Mapping[str, str], input_text: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command whose output is not a terminal."""
    options = {"stdin": subprocess.DEVNULL} if input_text is None else {}
    return run(*arguments, env=env, cwd=cwd, stdin_text=input_text, timeout=PATIENCE, **options)


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")(errors="replace")


@dataclass(slots=True)
class Terminal:
    """A command in a terminal: what it shows, and the keyboard."""

    child: subprocess.Popen[bytes]
    keyboard: int
    shown: str = ""
    _seen: int = field(default=0)
    _decoder: codecs.IncrementalDecoder = field(default_factory=_decoder)

    def wait_for(self, text: str) -> None:
        """Read until a text is shown, after what was waited for before."""
        until = time.monotonic() + PATIENCE
        while (at := self.shown.find(text, self._seen)) < 0:
            assert self._read(until), f"never showed {text!r}:\n{self.shown}"
        self._seen = at + len(text)

    def type(self, text: str) -> None:
        """Type on the keyboard."""
        os.write(self.keyboard, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.child.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Read to the end; return the exit code."""
        until = time.monotonic() + PATIENCE
        while self._read(until):
            pass
        return self.child.wait(timeout=PATIENCE)

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self.keyboard], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self.keyboard, 65536)
        except OSError:  # how Linux reports that nobody is on the other side any more
            return False
        self._show(self._decoder.decode(data))
        return bool(data)

    def _show(self, text: str) -> None:
        """Add to the screen; lines and what ends them may come in pieces."""
        self.shown = CURSOR.sub("", self.shown + text).replace("\r\n", "\n")
        # Progress on a slow machine is drawn on a line that vanishes: no part of any screen.
        while match := ERASE.search(self.shown):
            end = match.start() - 1 if match[1] else match.start()
            line = self.shown.rfind("\n", 0, end) + 1
            self.shown = self.shown[:line] + self.shown[match.end() :]
            self._seen = min(self._seen, line)


@contextmanager
def terminal(
    *arguments: str,
    env: Mapping[str, str],
    columns: int = 80,
    cwd: Path | None = None,
    into: Path | None = None,
) -> Iterator[Terminal]:
    """Run a command in a terminal of so many columns until the block ends.

    Its standard output goes `into` a file, if that is reported.
    """
    keyboard, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with ExitStack() as stack:
        child = start(
            *arguments,
            env=env,
            cwd=cwd,
            stdin=screen,
            stdout=screen if into is None else stack.enter_context(into.open("wb")),
            stderr=screen,
            start_new_session=True,
        )
    os.close(screen)
    try:
        yield Terminal(child, keyboard)
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        os.close(keyboard)
