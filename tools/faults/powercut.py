"""What a disk has after a power failure: all that was flushed, and any part of the rest.

A write that was not flushed has happened, or not, or some of its sectors, in any order. After a
flush that failed the system forgets which writes it has still to do: a later flush succeeds
without them, so they are decided at the failure.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from faults.layer import FILES

SECTOR = 512
_HEAD = struct.Struct("<BB6xQQ")
LOST, TORN = 0.4, 0.6
"""Chances: below the first a write is lost, below the second torn, otherwise it has happened."""


class Step(NamedTuple):
    """One entry of the record."""

    kind: str
    file: str
    offset: int
    data: bytes


def steps(record: bytes) -> Iterator[Step]:
    """Read a record; the last entry may be incomplete, and has not happened then."""
    at = 0
    while at + _HEAD.size <= len(record):
        kind, file, offset, length = _HEAD.unpack_from(record, at)
        at += _HEAD.size
        data = record[at : at + length] if kind == ord("W") else b""
        if kind == ord("W") and len(data) < length:
            return
        at += len(data)
        yield Step(chr(kind), FILES[file], offset, data)


@dataclass(slots=True)
class _File:
    flushed: bytearray
    exists: bool
    pending: list[Step] = field(default_factory=list)

    def take(self, step: Step, rng: random.Random) -> None:
        match step.kind:
            case "S":
                for write in self.pending:
                    self._do(write)
                self.pending.clear()
                self.exists = True
            case "F":
                self.fail(rng)
            case "U":
                self.flushed.clear()
                self.pending.clear()
                self.exists = False
            case _:
                self.pending.append(step)

    def fail(self, rng: random.Random) -> None:
        """Decide what has happened of the writes that were not flushed."""
        for write in self.pending:
            luck = rng.random()
            if luck < LOST:
                continue
            data = write.data
            if luck < TORN and len(data) > SECTOR:
                sectors = rng.randrange(1, -(-len(data) // SECTOR))
                data = data[: sectors * SECTOR]
            self._do(write._replace(data=data))
        self.pending.clear()

    def _do(self, step: Step) -> None:
        self.exists = True
        if step.kind == "T":
            del self.flushed[step.offset :]
            return
        missing = step.offset - len(self.flushed)
        if missing > 0:
            self.flushed.extend(bytes(missing))
        self.flushed[step.offset : step.offset + len(step.data)] = step.data


def after_power_cut(
    before: Mapping[str, bytes], record: bytes, rng: random.Random
) -> dict[str, bytes]:
    """Return the files after a power failure at the end of the record."""
    files = {name: _File(bytearray(before.get(name, b"")), name in before) for name in FILES}
    for step in steps(record):
        files[step.file].take(step, rng)
    for file in files.values():
        file.fail(rng)
    return {name: bytes(file.flushed) for name, file in files.items() if file.exists}
