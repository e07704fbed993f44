"""The fault layer of one data directory: compiles it, requests faults, and moves its clock.

preload.c is loaded into a server with LD_PRELOAD. Both share a control block in a file. A layer
outlives the servers that run with it, one after the other.
"""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from enum import IntEnum
from pathlib import Path

_SOURCE = Path(__file__).with_name("preload.c")
_REQUEST = struct.Struct("<IIII")
"""Fault, how many calls pass before it, how many fail, how many have failed."""
_CLOCK = struct.Struct("<q")
_CLOCK_AT = 16


class LayerError(Exception):
    """The layer cannot be used here."""


class Fault(IntEnum):
    """What fails; the numbers are those of preload.c."""

    NONE = 0
    WRITE_EIO = 1
    WRITE_ENOSPC = 2
    WRITE_SHORT = 3
    WRITE_TORN = 4
    SYNC_EIO = 5
    READ_EIO = 6
    POWER_CUT = 7


def compiled(folder: Path) -> Path:
    """Compile the layer; it takes a fraction of a second."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise LayerError("I/O errors need a C compiler: install gcc")
    library = folder / "faults.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE)]
    done = subprocess.run(
        [*command, "-ldl", "-lpthread"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LayerError(f"the fault layer does not compile: {done.stderr.strip()}")
    return library


class Layer:
    """Below the servers of one data directory."""

    def __init__(self, library: Path, directory: Path, folder: Path) -> None:
        self.record = folder / "writes"
        """What was written and flushed since `begin`."""
        self._library = library
        self._directory = directory.resolve()
        self._file = folder / "control"
        self._file.write_bytes(bytes(mmap.PAGESIZE))
        with self._file.open("r+b") as opened:
            self._control = mmap.mmap(opened.fileno(), mmap.PAGESIZE)

    @property
    def environment(self) -> dict[str, str]:
        """Return what a server is started with."""
        return {
            "LD_PRELOAD": str(self._library),
            "SULLY_FAULTS_DIRECTORY": str(self._directory),
            "SULLY_FAULTS_CONTROL": str(self._file),
            "SULLY_FAULTS_RECORD": str(self.record),
        }

    @property
    def injected(self) -> int:
        """Return how many calls have failed since the last request."""
        return int(_REQUEST.unpack_from(self._control)[3])

    def request(self, fault: Fault, *, skip: int = 0, count: int = 1) -> None:
        """Let calls fail from now on; NONE ends it."""
        # Without a fault first: a call in between must not see half of a request.
        _REQUEST.pack_into(self._control, 0, Fault.NONE, 0, 0, 0)
        _REQUEST.pack_into(self._control, 0, Fault.NONE, skip, count, 0)
        struct.pack_into("<I", self._control, 0, fault)

    def step_clock(self, seconds: float) -> None:
        """Set the clock of the server to so many seconds after the right time."""
        _CLOCK.pack_into(self._control, _CLOCK_AT, int(seconds * 1e9))

    def begin(self) -> dict[str, bytes]:
        """Start a new record; return the files as they are, which count as flushed."""
        self.record.unlink(missing_ok=True)
        return self.files()

    def files(self) -> dict[str, bytes]:
        """Return the files that faults are for."""
        paths = [self._directory / name for name in FILES]
        return {path.name: path.read_bytes() for path in paths if path.exists()}

    def replace(self, files: dict[str, bytes]) -> None:
        """Set the files to what a disk has after a power failure."""
        for name in (*FILES, "store.db-shm"):
            (self._directory / name).unlink(missing_ok=True)
        for name, content in files.items():
            (self._directory / name).write_bytes(content)


FILES = ("store.db", "store.db-wal")
"""By their numbers in the record."""
