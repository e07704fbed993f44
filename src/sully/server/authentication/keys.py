"""The key that signs service account tokens, and its public form.

It is `sa.key` in the data directory, readable by its owner only: a user who has it can impersonate
any service account. tokens.py decides what is signed. signing.py does it and is imported with the
first token: its libraries take much memory, and nothing else needs them (../identity.py).
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sully.machinery.strategy import Obj
from sully.runtime.files import write_private

if TYPE_CHECKING:
    from sully.server.authentication.signing import Signer

ALGORITHM = "ES256"


class KeyFileError(OSError):
    """The key file has other content."""


class PublicKey(msgspec.Struct, frozen=True):
    """The public form of a key."""

    id: str
    jwk: Obj
    """The key as a JSON web key."""


class SigningKey:
    """A P-256 key; `pem` is the private key as its file holds it."""

    def __init__(self, pem: bytes, public: PublicKey) -> None:
        self.pem = pem
        self.public = public

    @classmethod
    def new(cls) -> SigningKey:
        """Make a key."""
        from sully.server.authentication.key_files import generate, public_key

        pem = generate()
        return cls(pem, public_key(pem))

    @classmethod
    def open(cls, folder: Path) -> SigningKey:
        """Load the key of a data directory, or make it."""
        path = folder / "sa.key"
        if path.exists():
            return cls(pem := path.read_bytes(), _public(pem, path))
        generated = cls.new()
        write_private(path, generated.pem)
        return generated

    def sign(self, payload: dict[str, Any]) -> str:
        """Write a JSON web token."""
        return self._signer.sign(payload)

    def verify(self, token: str, *, issuer: str) -> dict[str, Any] | None:
        """Return the payload of a token that this key signed, None of another one."""
        return self._signer.verify(token, issuer=issuer)

    @cached_property
    def head(self) -> str:
        """The first part of every token that this key signs."""
        return self.sign({}).partition(".")[0]

    @cached_property
    def _signer(self) -> Signer:
        from sully.server.authentication.signing import Signer

        return Signer(self.pem, self.public.id)


def _public(pem: bytes, path: Path) -> PublicKey:
    from sully.server.authentication.key_files import public_key

    try:
        return public_key(pem)
    except ValueError as error:
        raise KeyFileError(f"{path} has no readable key: {error}") from None
    except TypeError:
        raise KeyFileError(f"the key in {path} cannot sign {ALGORITHM} tokens") from None
