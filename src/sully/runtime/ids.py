"""Uids and name suffixes: the only place that makes up identifiers.

The source of chance is injected, so a test that seeds it gets the same names every time.
"""

from __future__ import annotations

import os
import random
from uuid import UUID

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' letters for generated names: no vowels, so no words, and no 0/o or 1/l/i."""


class Ids:
    """Makes identifiers."""

    def __init__(self, chance: random.Random | None = None) -> None:
        # Uids must not repeat across restarts or replicas, so the default asks the system.
        self._chance = chance or random.SystemRandom()
        self._seeded = chance is not None
        self._bytes = bytearray()

    def uid(self) -> str:
        """Return a new random (version 4) UUID, as `metadata.uid` shows it."""
        if self._seeded:
            return str(UUID(int=self._chance.getrandbits(128), version=4))
        # The system is asked for many at a time: a call for each costs more than the rest of it.
        if not self._bytes:
            self._bytes += os.urandom(16 * 64)
        raw = bytes(self._bytes[-16:])
        del self._bytes[-16:]
        return str(UUID(bytes=raw, version=4))

    def suffix(self, length: int = 5) -> str:
        """Return what follows `metadata.generateName`."""
        return "".join(self._chance.choices(ALPHABET, k=length))
