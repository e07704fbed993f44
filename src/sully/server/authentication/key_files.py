"""Creates P-256 keys and reads them, without the library that signs tokens with them."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sully.server.authentication.keys import ALGORITHM, PublicKey

_BYTES = 32
"""Of a coordinate."""


def generate() -> bytes:
    """Return a new key in PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def load(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Return a key; raises ValueError if it is none, and TypeError if it is of another kind."""
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise TypeError("not a P-256 key")
    return key


def public_key(pem: bytes) -> PublicKey:
    """Return the public form of a key; raises as `load`."""
    public = load(pem).public_key()
    spki = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    key_id = _text(hashlib.sha256(spki).digest())
    numbers = public.public_numbers()
    jwk = {
        "use": "sig",
        "kty": "EC",
        "kid": key_id,
        "crv": "P-256",
        "alg": ALGORITHM,
        "x": _text(numbers.x.to_bytes(_BYTES)),
        "y": _text(numbers.y.to_bytes(_BYTES)),
    }
    return PublicKey(key_id, jwk)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
