"""The key that signs service account tokens, and its public form.

It is `sa.key` in the data directory, readable by its owner only: who has it can impersonate
any service account. tokens.py decides what is signed.
"""

import hashlib
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt import PyJWT
from jwt.algorithms import ECAlgorithm
from jwt.types import Options
from jwt.utils import base64url_encode

from sully.machinery.strategy import Obj
from sully.runtime.files import write_private

ALGORITHM = "ES256"
_TOKENS = PyJWT()


class KeyFileError(OSError):
    """The key file has other content."""


class SigningKey:
    """A P-256 key with its key id."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self._public = key.public_key()
        spki = self._public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.id = base64url_encode(hashlib.sha256(spki).digest()).decode()
        # Kubernetes names no type.
        self._head = {"typ": None, "alg": ALGORITHM, "kid": self.id}
        self.head = self.sign({}).partition(".")[0]
        """The first part of every token that this key signs."""

    @classmethod
    def new(cls) -> "SigningKey":
        """Make a key."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def open(cls, folder: Path) -> "SigningKey":
        """Load the key of a data directory, or make it."""
        path = folder / "sa.key"
        if path.exists():
            return cls(_load(path))
        generated = cls.new()
        write_private(path, generated.pem())
        return generated

    def pem(self) -> bytes:
        """Return the private key as its file holds it."""
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def sign(self, payload: dict[str, Any]) -> str:
        """Write a JSON web token."""
        return _TOKENS.encode(payload, self._key, algorithm=ALGORITHM, headers=self._head)

    def verify(self, token: str, *, issuer: str, options: Options) -> dict[str, Any]:
        """Return the payload of a token that this key signed; raises jwt.InvalidTokenError."""
        return _TOKENS.decode(
            token, self._public, algorithms=[ALGORITHM], issuer=issuer, options=options
        )

    def jwk(self) -> Obj:
        """Return the public half as a JSON web key."""
        shown = ECAlgorithm.to_jwk(self._public, as_dict=True)
        return {
            "use": "sig",
            "kty": shown["kty"],
            "kid": self.id,
            "crv": shown["crv"],
            "alg": ALGORITHM,
            "x": shown["x"],
            "y": shown["y"],
        }


def _load(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except ValueError as error:
        raise KeyFileError(f"{path} has no readable key: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise KeyFileError(f"the key in {path} cannot sign {ALGORITHM} tokens")
    return key
