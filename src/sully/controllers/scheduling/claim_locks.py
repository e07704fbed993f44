"""Serializes the writes of pods that share a claim; each starts from what the last one wrote.

Each reservation updates the same object. Written concurrently, or from a cache that is behind, all
but one of them conflict and are retried, and of many pods some conflict so often that they fail.
claim_writer.py takes the lock of the claim for every reservation.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from sully.api.resource.types import ResourceClaim
from sully.views.mutation_cache import is_newer

_REMEMBERED = 256
"""Claims whose last write is known; the cache shows it long before so many are written."""


@dataclass(slots=True)
class _ClaimLock:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class ClaimLocks:
    """A lock per claim that is being written, and what was written last."""

    def __init__(self) -> None:
        self._locks: dict[str, _ClaimLock] = {}
        self._written: OrderedDict[str, ResourceClaim] = OrderedDict()

    @asynccontextmanager
    async def hold(self, known: ResourceClaim) -> AsyncIterator[ResourceClaim]:
        """Wait until no other worker writes a claim; return its newest known state."""
        uid = known.metadata.uid
        entry = self._locks.setdefault(uid, _ClaimLock())
        entry.users += 1
        try:
            async with entry.lock:
                written = self._written.get(uid)
                yield written if written is not None and is_newer(written, known) else known
        finally:
            entry.users -= 1
            if not entry.users:
                del self._locks[uid]

    def wrote(self, claim: ResourceClaim) -> None:
        """Note what the server answered to a write."""
        self._written[claim.metadata.uid] = claim
        self._written.move_to_end(claim.metadata.uid)
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)
