"""A line on the terminal while something takes long; it vanishes when that is done.

Only for people: where the standard error is no terminal, nothing is drawn.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TextIO

LONG = 1.0
"""Seconds after which people wonder."""
AGAIN = 0.25
_ERASE = "\r\x1b[K"


@contextmanager
def patience(
    tell: Callable[[], str], stream: TextIO | None = None, *, after: float = LONG
) -> Iterator[None]:
    """Draw what is told, again and again, from some time on and until the block ends."""
    out = sys.stderr if stream is None else stream
    if not out.isatty():
        yield
        return
    done = Event()
    # A thread, because what takes long keeps the only other one busy.
    thread = Thread(target=_draw, args=(tell, out, done, after), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _draw(tell: Callable[[], str], out: TextIO, done: Event, after: float) -> None:
    if done.wait(after):
        return
    while True:
        out.write(f"{_ERASE}{tell()}")
        out.flush()
        if done.wait(AGAIN):
            break
    out.write(_ERASE)
    out.flush()
