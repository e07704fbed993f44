"""The process around a command: streams that are there, and an end without a stack trace.

Shells, pipes and supervisors do things that have nothing to do with what a command is about: they
close its output, interrupt it while it is still being imported, or want letters they cannot show.
`main.py` runs every command in here; `client/calling.py` has the failures of those that speak to
a server.
"""

import errno
import io
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from sully.cli.client.texts import guarded

INTERRUPTED = 130
"""The exit code of what was ended by Ctrl-C, as shells have it."""
PIPE_CLOSED = 141
"""The exit code of what nobody reads any more."""


def finished(work: Callable[[], int]) -> int:
    """Run a command in a process of its own; return its exit code when all it said is out."""
    try:
        code = _code(work)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        hush()
        return PIPE_CLOSED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        hush()
        print(f"sully: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    return code


def _code(work: Callable[[], int]) -> int:
    try:
        return work()
    except SystemExit as end:  # how argparse ends
        return end.code if isinstance(end.code, int) else 1


def hush() -> None:
    """Give up the standard output, so that the interpreter does not complain at its end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_streams() -> None:
    """See to it that the three streams are open, take every letter, and obey nobody else."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # Or the first file or socket would get this number, and what we print.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115 - open for as long as we are
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        # What a program reads is data, and its own business; errors are for people, wherever.
        if name == "stderr" or stream.isatty():
            setattr(sys, name, GuardedStream(stream))


class GuardedStream:
    """A stream for people, which lets nobody else's escape sequences through."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text without what a terminal would obey."""
        self._stream.write(guarded(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        self._stream.writelines(map(guarded, lines))

    def __getattr__(self, name: str) -> Any:
        """Be the stream in everything else."""
        return getattr(self._stream, name)
