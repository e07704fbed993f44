"""Signs and verifies tokens with a key, by the library for JSON web tokens."""

from __future__ import annotations

from typing import Any

from jwt import InvalidTokenError, PyJWT
from jwt.types import Options

from sully.server.authentication.key_files import load
from sully.server.authentication.keys import ALGORITHM

_TOKENS = PyJWT()
_OPTIONS: Options = {
    "require": ["aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"],
    "verify_aud": False,
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
}
"""service_accounts.py checks these on every use, by the clock of the server."""


class Signer:
    """Signs and verifies with one key."""

    def __init__(self, pem: bytes, key_id: str) -> None:
        self._key = load(pem)
        self._public = self._key.public_key()
        # Kubernetes names no type.
        self._head = {"typ": None, "alg": ALGORITHM, "kid": key_id}

    def sign(self, payload: dict[str, Any]) -> str:
        """Write a JSON web token."""
        return _TOKENS.encode(payload, self._key, algorithm=ALGORITHM, headers=self._head)

    def verify(self, token: str, *, issuer: str) -> dict[str, Any] | None:
        """Return the payload of a token that this key signed, None of another one."""
        try:
            return _TOKENS.decode(
                token, self._public, algorithms=[ALGORITHM], issuer=issuer, options=_OPTIONS
            )
        except InvalidTokenError:
            return None
