"""The process around a command: open streams, and an exit without a stack trace.

Shells, pipes and supervisors close the output of a command, interrupt it while it is still being
imported, or use an encoding that lacks characters. `main.py` runs every command in here;
`client/session.py` has the failures of commands that talk to a server.
"""

import errno
import io
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from sully.cli.output.text import guarded

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells report it."""
PIPE_CLOSED = 141
"""The exit code when the reader of the output is gone."""


def finished(work: Callable[[], int]) -> int:
    """Run a command in a process of its own; return its exit code when all output is written."""
    try:
        code = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return PIPE_CLOSED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        discard_output()
        print(f"error: cannot write the output: {error.strerror}", file=sys.stderr)
        return 1
    return code


def discard_output() -> None:
    """Discard standard output, so that the interpreter does not complain at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_streams() -> None:
    """Make sure that the three streams are open, take every character, and are guarded."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # Otherwise the first file or socket would get this number, and what we print.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115 - open for as long as we are
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        # What a program reads is data; standard error is always for people.
        if name == "stderr" or stream.isatty():
            setattr(sys, name, GuardedStream(stream))


class GuardedStream:
    """A stream for people, which escapes control sequences that others wrote into texts."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def raw(self) -> TextIO:
        return self._stream

    def write(self, text: str) -> int:
        """Write a text without control sequences."""
        self._stream.write(guarded(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self._stream.writelines(map(guarded, lines))

    def __getattr__(self, name: str) -> Any:
        """Be the stream in everything else."""
        return getattr(self._stream, name)


def unguarded(stream: TextIO) -> TextIO:
    """Return the terminal behind a stream, for what draws on it and prints no text of others."""
    return stream.raw if isinstance(stream, GuardedStream) else stream
