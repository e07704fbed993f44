"""A line on the terminal while something takes long; it vanishes when that is done.

Only for people: where standard error is not a terminal, nothing is drawn.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread
from typing import TextIO

from sully.cli.process import unguarded

DELAY_SECONDS = 1.0
"""How long something may take before the spinner appears."""

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def no_spinners() -> Iterator[None]:
    """Draw nothing within the block: it is waiting for the user."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


@contextmanager
def spinner(
    text: Callable[[], str], stream: TextIO | None = None, *, after: float = DELAY_SECONDS
) -> Iterator[None]:
    """Draw a spinner with a text that may change, after a delay and until the block ends."""
    out = sys.stderr if stream is None else stream
    if not out.isatty() or _quiet.get():
        yield
        return
    done = Event()
    # A thread, because what takes long keeps the main thread busy.
    thread = Thread(target=_draw, args=(text, out, done, after), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _draw(text: Callable[[], str], out: TextIO, done: Event, after: float) -> None:
    if done.wait(after):
        return
    # A late import: most commands are faster than the delay.
    from rich.console import Console
    from rich.text import Text

    class Line:
        def __rich__(self) -> Text:
            return Text(text())

    console = Console(file=unguarded(out), force_terminal=True)
    with console.status(Line(), spinner="dots" if console.encoding == "utf-8" else "line"):
        done.wait()
