"""Uids and name suffixes: the only place that generates identifiers.

The source of randomness is injected, so a test that seeds it gets the same names every time.
"""

from __future__ import annotations

import os
import random
from uuid import UUID

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' letters for generated names: no vowels, so no words, and no 0/o or 1/l/i."""
_EVEN = 256 // len(ALPHABET) * len(ALPHABET)
_UNEVEN = bytes(range(_EVEN, 256))
_LETTERS = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))


class Ids:
    """Generates identifiers."""

    def __init__(self, rng: random.Random | None = None) -> None:
        # Uids must not repeat across restarts or replicas, so the default is that of the system.
        self._rng = rng or random.SystemRandom()
        self._seeded = rng is not None
        self._bytes = bytearray()

    def uid(self) -> str:
        """Return a new random (version 4) UUID, as `metadata.uid` shows it."""
        if self._seeded:
            return str(UUID(int=self._rng.getrandbits(128), version=4))
        # Read for many at a time: a system call for each costs more than the rest.
        if not self._bytes:
            self._bytes += os.urandom(16 * 64)
        raw = self._bytes[-16:]
        del self._bytes[-16:]
        raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80  # the version, and the variant
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def suffix(self, length: int = 5) -> str:
        """Return what follows `metadata.generateName`."""
        if self._seeded:
            return "".join(self._rng.choices(ALPHABET, k=length))
        # Bytes that would make some letters likelier than others are dropped.
        letters = os.urandom(length + 8).translate(_LETTERS, _UNEVEN)[:length]
        while len(letters) < length:
            letters += os.urandom(length).translate(_LETTERS, _UNEVEN)[: length - len(letters)]
        return letters.decode()
