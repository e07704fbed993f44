"""Compresses values that few read: superseded ones, and current ones that are not new.

History is kept for minutes, and read by a watch that reconnects or a list that is continued. Most
objects are written a few times when they are created; then caches have what they need of them. The
states of one object are nearly equal, and so are objects that were created alike, so a few dozen
values together take a tenth of their size. The newest values stay as they are, because watchers are
still reading them.
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
KEEP_CURRENT_VALUES = 1024
KEEP_CURRENT_BYTES = 4 << 20
"""So many current values of each resource stay as they are."""
BLOCK_VALUES = 32
BLOCK_BYTES = 64 << 10
"""A block is complete with so many values or bytes: it is compressed in 0.1 ms, and others wait."""
MAX_VALUE_BYTES = 256 << 10
"""Larger values stay as they are: they would be compressed for milliseconds."""
_BLOCKS_READ = 16


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


# Those who read history read neighbours.
@lru_cache(maxsize=_BLOCKS_READ)
def _values(block: Block) -> list[bytes]:
    joined = zlib.decompress(block.data)
    values, start = [], 0
    for length in block.lengths:
        values.append(joined[start : start + length])
        start += length
    return values


class Packer:
    """The records that are not packed yet, oldest first."""

    def __init__(
        self,
        *,
        keep_values: int = KEEP_VALUES,
        keep_bytes: int = KEEP_BYTES,
        is_wanted: Callable[[Record], bool] = lambda _record: True,
    ) -> None:
        self._keep_values = keep_values
        self._keep_bytes = keep_bytes
        self._is_wanted = is_wanted
        """Whether a record that is no longer new should be packed."""
        self._waiting: deque[Record] = deque()
        self._size = 0
        self._block: list[Record] = []
        """The next block."""
        self._block_size = 0

    def add(self, record: Record) -> None:
        """Add a record, and pack a block of the oldest if there are too many."""
        self.restore((record,))
        while len(self._waiting) > self._keep_values or self._size > self._keep_bytes:
            oldest = self._waiting.popleft()
            self._size -= oldest.size
            if not oldest.is_packed and self._is_wanted(oldest):
                self._block.append(oldest)
                self._block_size += oldest.size
            if len(self._block) >= BLOCK_VALUES or self._block_size >= BLOCK_BYTES:
                self._pack()
                # One at a time: after a restart all records wait.
                return

    def restore(self, records: Iterable[Record]) -> None:
        """Add records that are packed while others are added."""
        for record in records:
            if not record.is_packed and record.size <= MAX_VALUE_BYTES:
                self._waiting.append(record)
                self._size += record.size

    def clear(self) -> None:
        """Forget all records."""
        self._waiting.clear()
        self._block.clear()
        self._size = self._block_size = 0

    def _pack(self) -> None:
        # Some may have been packed as superseded ones meanwhile.
        records = [record for record in self._block if not record.is_packed]
        self._block, self._block_size = [], 0
        values = [record.value for record in records]
        block = Block(zlib.compress(b"".join(values), 1), tuple(map(len, values)))
        for index, record in enumerate(records):
            record.pack(PackedValue(block, index))
