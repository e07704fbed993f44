"""The user of a request: a certificate first, then a bearer token, else anonymous.

The certificate was read when the connection was opened (net/listen.py); tokens are checked by
service_accounts.py. A request with a bad token is rejected, even for public pages.
"""

import math
from collections.abc import Mapping
from typing import Any

from sully.machinery.errors import Unauthorized
from sully.runtime.clock import Clock
from sully.server.authentication.certificates import Peer, peer_of
from sully.server.authentication.groups import ANONYMOUS
from sully.server.authentication.service_accounts import TokenAuthenticator, TokenError
from sully.server.requests import User


class Authenticator:
    """Authenticates requests."""

    def __init__(self, clock: Clock, accounts: TokenAuthenticator | None = None) -> None:
        self._clock = clock
        self._accounts = accounts

    def authenticate(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> User:
        """Return the user of a request; raises Unauthorized."""
        peer = _peer(scope)
        if peer is not None:
            if self._clock.now().timestamp() > peer.expires:
                raise Unauthorized("Unauthorized")
            return peer.user
        token = bearer(headers.get("authorization", ""))
        return self._by_token(token) if token else ANONYMOUS

    def seconds_left(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> float:
        """Return how long the credentials of a request remain valid, unless they are revoked."""
        peer = _peer(scope)
        token = bearer(headers.get("authorization", ""))
        if peer is not None:
            expires = peer.expires
        elif token and self._accounts is not None:
            expires = self._accounts.expires(token)
        else:
            return math.inf
        return expires - self._clock.now().timestamp()

    def _by_token(self, token: str) -> User:
        if self._accounts is None:
            raise Unauthorized("Unauthorized")
        try:
            return self._accounts.check(token).user
        except TokenError:
            # The reason is not disclosed to a client without a valid token.
            raise Unauthorized("Unauthorized") from None


def bearer(header: str) -> str:
    """Return the token of an Authorization header, empty if it has none."""
    parts = header.strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""


def _peer(scope: Mapping[str, Any]) -> Peer | None:
    tls = scope.get("extensions", {}).get("sully.tls")
    if tls is None:
        return None
    peer: Peer | None = tls.get("user")
    return peer if peer is not None else peer_of(tls.get("peer"))
