"""Bounds the memory of forms that are derived from records: decoded objects, encodings.

A form is computed once and kept in the memo of its record (`sully.store.base.Derived`), so that
clients that read a write soon after it share it. Later readers are few, and a form weighs several
times as much as the stored bytes, for each of the thousands of records of the history. So only the
newest forms are kept; the others are computed again on demand.
"""

from __future__ import annotations

from collections import deque

from sully.store.base import Derived

MAX_BYTES = 16 << 20
"""The estimated size of all forms that are kept."""
DECODED = 8
"""How many times its encoding a decoded object weighs, about."""


class RecentForms:
    """The memos that have forms, oldest first, as far as they are kept."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._memos: deque[tuple[Derived, int]] = deque()
        self._size = 0

    def add_decoded(self, memo: Derived, encoded: int) -> None:
        """Keep a memo with a decoded object; `encoded` is the length of its encoding."""
        self.add(memo, DECODED * encoded)

    def add(self, memo: Derived, size: int) -> None:
        """Keep a memo that has a new form of this size, and clear those that are too old."""
        memos = self._memos
        memos.append((memo, size))
        self._size += size
        # The newest form is in use, however large it is.
        while self._size > self._max_bytes and len(memos) > 1:
            oldest, freed = memos.popleft()
            oldest.clear()
            self._size -= freed
