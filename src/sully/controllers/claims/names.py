"""The names of claims that are made for pods.

They look as if the server had made them up, but they follow from the pod and its claim. So a claim
cannot be made twice, whatever a cache has missed and however often the controller is restarted: the
second attempt finds that the name is taken, and by whom.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from sully.domain.claims.lifecycle import ClaimToCreate, name_prefix
from sully.runtime.ids import ALPHABET

TRIES = 8
"""How many names to try; someone else's claim has the first about once in 14 million."""
_LENGTH = 5


def names_for(wanted: ClaimToCreate) -> Iterator[str]:
    """Yield the names a claim may have, the usual one first."""
    prefix = name_prefix(wanted.pod, wanted.claim)
    for attempt in range(TRIES):
        yield prefix + _suffix(f"{wanted.uid}/{wanted.claim}/{attempt}")


def _suffix(seed: str) -> str:
    value = int.from_bytes(sha256(seed.encode()).digest())
    letters = []
    for _ in range(_LENGTH):
        value, letter = divmod(value, len(ALPHABET))
        letters.append(ALPHABET[letter])
    return "".join(letters)
