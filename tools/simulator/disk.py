"""A disk that loses what was not flushed, tears writes at a crash, and fails on request.

SQLite runs on it unchanged, through a VFS. A file is what was flushed and the writes since, in
order. At a crash each of these writes has happened, or not, or in part, whatever their order was.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import apsw

SECTOR = 512
_NAMES = itertools.count()


@dataclass(slots=True)
class _Write:
    offset: int
    data: bytes | None
    """None: the file was truncated to the offset."""


@dataclass(slots=True)
class _Content:
    """One file."""

    data: bytearray = field(default_factory=bytearray)
    flushed: bytearray = field(default_factory=bytearray)
    pending: list[_Write] = field(default_factory=list)

    def write(self, write: _Write) -> None:
        """Write what readers see and a flush makes durable."""
        _apply(self.data, write)
        self.pending.append(write)

    def flush(self) -> None:
        """Make everything durable."""
        for write in self.pending:
            _apply(self.flushed, write)
        self.pending.clear()

    def crash(self, rng: random.Random) -> None:
        """Keep what was flushed, and some of the rest."""
        for write in self.pending:
            luck = rng.random()
            if luck < 0.4:
                continue
            data = write.data
            if data is not None and luck < 0.6 and len(data) > SECTOR:
                # Torn: only some of its sectors reached the disk.
                end = rng.randrange(1, -(-len(data) // SECTOR)) * SECTOR
                data = data[:end]
            _apply(self.flushed, _Write(write.offset, data))
        self.pending.clear()

    def copy(self) -> _Content:
        """Return a copy of what is durable."""
        return _Content(bytearray(self.flushed), bytearray(self.flushed))


def _apply(data: bytearray, write: _Write) -> None:
    if write.data is None:
        del data[write.offset :]
        return
    if len(data) < write.offset:
        data.extend(bytes(write.offset - len(data)))
    data[write.offset : write.offset + len(write.data)] = write.data


class SimulatedDisk:
    """The files of one machine."""

    def __init__(self, rng: random.Random, files: dict[str, _Content] | None = None) -> None:
        self.name = f"simulated-{next(_NAMES)}"
        self.failing = 0
        """How many of the next writes and flushes fail with an I/O error."""
        self.fuse: int | None = None
        """After how many writes and flushes the machine loses power."""
        self.on_power_cut: Callable[[], None] = lambda: None
        self._rng = rng
        self._files = files or {}
        self.users: list[object] = []
        """Who has opened files: SQLite would delete its log when a dead user is collected."""
        self._vfs = _Vfs(self)

    def create(self, name: str) -> None:
        """Create an empty file, unless it exists."""
        self._files.setdefault(name, _Content())

    def crash(self) -> None:
        """Lose power: open files are dead, and only some writes since the last flush remain."""
        self.fuse, self.failing = None, 0
        for name in sorted(self._files):
            self._files[name].crash(self._rng)
        # Who still has one of them open writes to nowhere.
        self._files = self.image()

    def image(self) -> dict[str, _Content]:
        """Return a copy of everything that is durable."""
        return {name: content.copy() for name, content in self._files.items()}

    def close(self) -> None:
        """Unregister the VFS, and let everything be collected.

        SQLite's connections refer to this disk in a way that the garbage collector cannot see.
        """
        self._vfs.unregister()
        self.on_power_cut = lambda: None
        self.users.clear()

    # -- what the VFS calls -----------------------------------------------------------------------

    def open(self, name: str) -> _Content:
        """Return a file, which is created if it does not exist."""
        return self._files.setdefault(name, _Content())

    def exists(self, name: str) -> bool:
        """Report whether there is such a file."""
        return name in self._files

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._files.pop(name, None)

    def change(self) -> None:
        """Count a write or flush, which may fail or be the last one."""
        if self.failing:
            self.failing -= 1
            raise apsw.IOError("simulated I/O error")
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse <= 0:
                self.crash()
                self.on_power_cut()
                raise apsw.IOError("the machine has lost power")


class _Vfs(apsw.VFS):
    """SQLite's view of the disk."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk
        super().__init__(disk.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 - SQLite's names
        filename = name.filename() if hasattr(name, "filename") else name
        flags[1] = flags[0]
        return _File(self._disk, str(filename))

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: ARG002, N802 - SQLite's interface
        self._disk.delete(filename)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: ARG002, N802 - SQLite's interface
        return self._disk.exists(pathname)

    def xFullPathname(self, name: str) -> str:  # noqa: N802 - SQLite's interface
        return name


class _File:
    """An open file."""

    def __init__(self, disk: SimulatedDisk, name: str) -> None:
        self._disk = disk
        self._content = disk.open(name)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's interface
        return bytes(self._content.data[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's interface
        self._content.write(_Write(offset, bytes(data)))
        # After the write: at a power cut this write is one of those in doubt.
        self._disk.change()

    def xTruncate(self, size: int) -> None:  # noqa: N802 - SQLite's interface
        self._disk.change()
        self._content.write(_Write(size, None))

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802 - SQLite's interface
        self._disk.change()
        self._content.flush()

    def xFileSize(self) -> int:  # noqa: N802 - SQLite's interface
        return len(self._content.data)

    def xFileControl(self, op: int, ptr: int) -> bool:  # noqa: ARG002, N802 - SQLite's interface
        return False

    def xLock(self, level: int) -> None:  # noqa: N802 - SQLite's interface
        """One connection uses the file."""

    def xUnlock(self, level: int) -> None:  # noqa: N802 - SQLite's interface
        """One connection uses the file."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802 - SQLite's interface
        return False

    def xSectorSize(self) -> int:  # noqa: N802 - SQLite's interface
        return SECTOR

    def xDeviceCharacteristics(self) -> int:  # noqa: N802 - SQLite's interface
        return 0

    def xClose(self) -> None:  # noqa: N802 - SQLite's interface
        """Nothing to release."""
