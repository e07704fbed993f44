"""Lets pods that share a claim write it one after the other, each beginning where the last ended.

Each reservation is a change of the same object. Written at the same time, or from a cache that has
not heard of the one before, all but one of them lose and are tried again, and of many pods some
lose so often that they are refused. claims.py takes a turn for every reservation.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from sully.api.resource.claim_types import ResourceClaim
from sully.views.written import is_newer

_REMEMBERED = 256
"""Claims whose last writing is known; the cache hears of it long before so many are written."""


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    takers: int = 0


class Turns:
    """Who writes which claim, and what was written last."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}
        self._written: OrderedDict[str, ResourceClaim] = OrderedDict()

    @asynccontextmanager
    async def at(self, known: ResourceClaim) -> AsyncIterator[ResourceClaim]:
        """Wait until nobody else here writes a claim; return its newest known state."""
        uid = known.metadata.uid
        turn = self._turns.setdefault(uid, _Turn())
        turn.takers += 1
        try:
            async with turn.lock:
                written = self._written.get(uid)
                yield written if written is not None and is_newer(written, known) else known
        finally:
            turn.takers -= 1
            if not turn.takers:
                del self._turns[uid]

    def wrote(self, claim: ResourceClaim) -> None:
        """Take what the server answered to a write."""
        self._written[claim.metadata.uid] = claim
        self._written.move_to_end(claim.metadata.uid)
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)
