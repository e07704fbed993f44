"""Compresses values that few read: those that a later write superseded, and current ones.

History is kept for minutes, and few read it: a watch that reconnects, a list that is continued. The
states of one object are nearly equal, and so are objects that were created alike, so a few dozen
values together take a tenth of their size. The newest superseded values stay as they are, because
watchers are still reading them.

Current values are read in any order, so each is compressed alone, with another value of its
resource as the dictionary. Caches read an object soon after it is written, so the newest stay as
they are.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache

import msgspec

from sully.store.base import Record

KEEP_VALUES = 512
KEEP_BYTES = 1 << 20
"""So many superseded values stay as they are."""
BLOCK_VALUES = 32
BLOCK_BYTES = 64 << 10
"""A block is complete with so many values or bytes: it is compressed in 0.1 ms, and others wait."""
MAX_VALUE_BYTES = 256 << 10
"""Larger values stay as they are: they would be compressed for milliseconds."""
_BLOCKS_READ = 16
KEEP_CURRENT_VALUES = 1024
KEEP_CURRENT_BYTES = 4 << 20
"""So many current values of each resource stay as they are."""
CATCH_UP = 4
"""So many are packed with each write, because after a restart all are waiting."""
_WINDOW_BITS = -15
"""The most that zlib looks back; negative for no header."""


class Block(msgspec.Struct, frozen=True, eq=False):
    """Values that are compressed together."""

    data: bytes
    lengths: tuple[int, ...]


class PackedValue(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One value of a block."""

    block: Block
    index: int

    @property
    def size(self) -> int:
        """Return the length of the value."""
        return self.block.lengths[self.index]

    def read(self) -> bytes:
        """Return the value."""
        return _values(self.block)[self.index]


# Readers of history read neighbours.
@lru_cache(maxsize=_BLOCKS_READ)
def _values(block: Block) -> list[bytes]:
    joined = zlib.decompress(block.data)
    values, start = [], 0
    for length in block.lengths:
        values.append(joined[start : start + length])
        start += length
    return values


class Packer:
    """The superseded records that are not packed yet, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[Record] = deque()
        self._size = 0

    def add(self, superseded: Record) -> None:
        """Add a record, and pack a block of the oldest if there are too many."""
        size = superseded.size
        if superseded.is_packed or size > MAX_VALUE_BYTES:
            return
        self._waiting.append(superseded)
        self._size += size
        has_block = len(self._waiting) >= KEEP_VALUES + BLOCK_VALUES
        if has_block or self._size >= KEEP_BYTES + BLOCK_BYTES:
            self._pack()

    def clear(self) -> None:
        """Forget all records."""
        self._waiting.clear()
        self._size = 0

    def _pack(self) -> None:
        records: list[Record] = []
        size = 0
        while self._waiting and len(records) < BLOCK_VALUES and size < BLOCK_BYTES:
            records.append(self._waiting.popleft())
            size += len(records[-1].value)
        self._size -= size
        values = [record.value for record in records]
        block = Block(zlib.compress(b"".join(values), 1), tuple(map(len, values)))
        for index, record in enumerate(records):
            record.pack(PackedValue(block, index))


class CompressedAlone(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One value, compressed with another one as the dictionary."""

    data: bytes
    dictionary: bytes
    size: int

    def read(self) -> bytes:
        """Return the value."""
        return zlib.decompressobj(_WINDOW_BITS, self.dictionary).decompress(self.data)


class CurrentPacker:
    """The current records of one resource that are not packed yet, oldest first."""

    def __init__(self, is_current: Callable[[Record], bool]) -> None:
        self._is_current = is_current
        self._waiting: deque[Record] = deque()
        self._size = 0
        self._dictionary = b""

    def add(self, record: Record) -> None:
        """Add a new record, and pack the oldest if there are too many."""
        self._waiting.append(record)
        self._size += record.size
        for _ in range(CATCH_UP):
            if len(self._waiting) <= KEEP_CURRENT_VALUES and self._size <= KEEP_CURRENT_BYTES:
                return
            oldest = self._waiting.popleft()
            self._size -= oldest.size
            # Others are superseded, and packed as such.
            if self._is_current(oldest) and oldest.size <= MAX_VALUE_BYTES:
                self._pack(oldest)

    def restore(self, records: Iterable[Record]) -> None:
        """Add records that are packed while new ones are added."""
        for record in records:
            self._waiting.append(record)
            self._size += record.size

    def clear(self) -> None:
        """Forget all records."""
        self._waiting.clear()
        self._size = 0

    def _pack(self, record: Record) -> None:
        value = record.value
        # Fixed codes: tables of its own take longer to read than such a short text.
        compressor = zlib.compressobj(
            3, zlib.DEFLATED, _WINDOW_BITS, strategy=zlib.Z_FIXED, zdict=self._dictionary
        )
        data = compressor.compress(value) + compressor.flush()
        if 2 * len(data) < len(value):
            record.pack(CompressedAlone(data, self._dictionary, len(value)))
        if 4 * len(data) > len(value):
            # It is not like the dictionary; the next ones may be like it.
            self._dictionary = value
