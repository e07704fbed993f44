"""The key that signs service-account tokens, and what others need to check them.

It lies in the data directory as `sa.key`, readable by its owner only: whoever has it can become
any service account. tokens.py says what is signed.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from sully.machinery.strategy import Obj
from sully.runtime.files import write_private

ALGORITHM = "ES256"
_SCHEME = ec.ECDSA(hashes.SHA256())
_HALF = 32  # bytes of each of the two numbers of a signature


class KeyFileError(OSError):
    """The file of the key holds something else."""


class SigningKey:
    """An elliptic key on P-256 with the name that tokens call it by."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self._public = key.public_key()
        spki = self._public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.id = encode(hashlib.sha256(spki).digest())

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
        made = cls.new()
        write_private(path, made.pem())
        return made

    def pem(self) -> bytes:
        """Return the private key as its file holds it."""
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def sign(self, data: bytes) -> bytes:
        """Return the signature in the form of JSON web tokens: two numbers side by side."""
        first, second = utils.decode_dss_signature(self._key.sign(data, _SCHEME))
        return first.to_bytes(_HALF) + second.to_bytes(_HALF)

    def verifies(self, data: bytes, signature: bytes) -> bool:
        """Say whether this key made a signature."""
        if len(signature) != 2 * _HALF:
            return False
        numbers = int.from_bytes(signature[:_HALF]), int.from_bytes(signature[_HALF:])
        try:
            self._public.verify(utils.encode_dss_signature(*numbers), data, _SCHEME)
        except InvalidSignature:
            return False
        return True

    def jwk(self) -> Obj:
        """Return the public half as a JSON web key."""
        numbers = self._public.public_numbers()
        return {
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": encode(numbers.x.to_bytes(_HALF)),
            "y": encode(numbers.y.to_bytes(_HALF)),
        }


def _load(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except ValueError as error:
        raise KeyFileError(f"{path} holds no key that can be read: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise KeyFileError(f"{path} holds a key that cannot sign {ALGORITHM} tokens")
    return key


def encode(data: bytes) -> str:
    """Write bytes as tokens do: base64 for URLs, without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Read what `encode` wrote; raises ValueError for anything else."""
    data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if encode(data) != text:
        # The decoder passes over what it does not know; a token shall have one spelling only.
        raise ValueError("not in the one spelling that tokens have")
    return data
