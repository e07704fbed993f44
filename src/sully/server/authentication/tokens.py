"""Service account tokens as values: their claims, and their form as JSON web tokens.

Here only the signature is verified. service_accounts.py checks times, audiences and the account
each time a token is used.
"""

from typing import Any

import msgspec

from sully.server.authentication.keys import SigningKey

ISSUER = "https://kubernetes.default.svc.cluster.local"
PREFIX = "system:serviceaccount:"
MAX_LENGTH = 16 * 1024  # tokens are much shorter


class Bound(msgspec.Struct, frozen=True):
    """An object by name and identity."""

    name: str
    uid: str

    def claim(self) -> dict[str, str]:
        """Return how a token names the object."""
        return {"name": self.name, "uid": self.uid}


class Claims(msgspec.Struct, frozen=True):
    """The claims of a token. Times are seconds since 1970."""

    namespace: str
    account: Bound
    audiences: tuple[str, ...]
    issued: int
    expires: int
    id: str
    pod: Bound | None = None
    node: Bound | None = None
    secret: Bound | None = None

    @property
    def subject(self) -> str:
        """Return the user name of the token."""
        return f"{PREFIX}{self.namespace}:{self.account.name}"


def sign(claims: Claims, key: SigningKey) -> str:
    """Write a token."""
    private: dict[str, Any] = {"namespace": claims.namespace}
    for name in ("node", "pod", "secret"):
        bound: Bound | None = getattr(claims, name)
        if bound is not None:
            private[name] = bound.claim()
    private["serviceaccount"] = claims.account.claim()
    payload = {
        "aud": list(claims.audiences),
        "exp": claims.expires,
        "iat": claims.issued,
        "iss": ISSUER,
        "jti": claims.id,
        "kubernetes.io": private,
        "nbf": claims.issued,
        "sub": claims.subject,
    }
    return key.sign(payload)


def read(token: str, key: SigningKey) -> Claims | None:
    """Return the claims of a token, None if the key did not sign it.

    All tokens have the same header and no padding, and nothing else is parsed: a token cannot
    choose its algorithm, and has one encoding only.
    """
    if len(token) > MAX_LENGTH or not token.isascii() or "=" in token:
        return None
    if not token.startswith(f"{key.head}."):
        return None
    payload = key.verify(token, issuer=ISSUER)
    return None if payload is None else _claims(payload)


def _claims(payload: dict[str, Any]) -> Claims:
    private = payload["kubernetes.io"]
    bound = {
        name: Bound(private[name]["name"], private[name]["uid"])
        for name in ("pod", "node", "secret")
        if name in private
    }
    account = private["serviceaccount"]
    return Claims(
        namespace=private["namespace"],
        account=Bound(account["name"], account["uid"]),
        audiences=tuple(payload["aud"]),
        issued=payload["nbf"],
        expires=payload["exp"],
        id=payload["jti"],
        **bound,
    )
