"""A copy of a database that is being written to, a few pages at a time.

SQLite's own copying works on the connection that writes: what is written meanwhile is
also written to the pages that were copied already. So the copy has the state at its end, needs no
second connection, and writers wait for a step and never for the whole. The writer thread does it;
`archive.py` makes an archive of the result.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import msgspec

_PAGES_PER_STEP = 256
"""A mebibyte: some milliseconds, which is what a writer waits at most."""


class Copy(msgspec.Struct, eq=False):
    """A job of the writer: put a copy of everything into a file that does not exist yet."""

    path: Path
    future: asyncio.Future[None]


class Copying:
    """A copy on its way. Belongs to the thread that owns the connection."""

    def __init__(self, source: apsw.Connection, path: Path) -> None:
        """Begin; raises `apsw.Error` as the other methods do."""
        self._target = apsw.Connection(str(path))
        try:
            # A failed copy is discarded; the caller flushes a complete one.
            self._target.pragma("journal_mode", "off")
            self._target.pragma("synchronous", "off")
            self._backup = self._target.backup("main", source, "main")
        except BaseException:
            self._target.close()
            raise

    def step(self) -> bool:
        """Copy some pages; return whether that was all."""
        done: bool = self._backup.step(_PAGES_PER_STEP)
        if done:
            self._backup.finish()
            self._target.close()
        return done

    def abandon(self) -> None:
        """Cancel the copy; the file is incomplete."""
        self._backup.close(True)
        self._target.close()
