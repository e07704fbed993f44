"""Validates service account tokens: the account and the bound object must exist.

A signature is verified once and cached; whether the account exists is looked up on every use,
so a deleted account is rejected immediately. token_requests.py issues the tokens.
"""

import hashlib
from collections.abc import Callable, Sequence
from datetime import timedelta

import msgspec

from sully.machinery.formats.timestamps import parse_time
from sully.machinery.serialization.gotext import quote
from sully.machinery.strategy import Obj
from sully.runtime.clock import Clock
from sully.server.authentication import tokens
from sully.server.authentication.keys import SigningKey
from sully.server.authentication.tokens import Bound, Claims
from sully.server.requests import User

# (resource, namespace, name) → the object, or None.
Lookup = Callable[[str, str, str], Obj | None]

AUDIENCES = (tokens.ISSUER,)
CREDENTIAL = "authentication.kubernetes.io/credential-id"
GRACE = timedelta(seconds=60)
"""How long tokens outlive the deletionTimestamp of their object, for graceful termination."""
CACHE_SIZE = 4096
_INVALIDATED = "service account token has been invalidated"


class TokenError(Exception):
    """An invalid token. The text is for reviews; clients only get `Unauthorized`."""


class AuthenticatedToken(msgspec.Struct, frozen=True):
    """The user of a valid token, and which of the requested audiences it has."""

    user: User
    audiences: tuple[str, ...]


class TokenAuthenticator:
    """Validates tokens against the objects of one API server."""

    def __init__(
        self,
        key: SigningKey,
        lookup: Lookup,
        clock: Clock,
        *,
        cache_size: int = CACHE_SIZE,
    ) -> None:
        self._key = key
        self._cache_size = cache_size
        self._lookup = lookup
        self._clock = clock
        # Hashes, so that memory holds no tokens; oldest first.
        self._cache: dict[bytes, tuple[Claims, User]] = {}

    def check(self, token: str, audiences: Sequence[str] = AUDIENCES) -> AuthenticatedToken:
        """Return the user of a token; raises TokenError."""
        cached = self._read_token(token)
        if cached is None:
            raise TokenError("invalid bearer token")
        claims, user = cached
        accepted = tuple(name for name in claims.audiences if name in audiences)
        if not accepted:
            raise _invalid_token(
                f"token audiences {_quoted(claims.audiences)} is invalid for the target audiences"
                f" {_quoted(audiences)}"
            )
        self._check_time(claims)
        self._check_account(claims)
        self._check_bound(claims)
        return AuthenticatedToken(user, accepted)

    def expires(self, token: str) -> float:
        """Return when a token expires, in seconds since 1970; an invalid one has expired."""
        cached = self._read_token(token)
        return 0.0 if cached is None else cached[0].expires

    def _read_token(self, token: str) -> tuple[Claims, User] | None:
        digest = hashlib.sha256(token.encode("utf-8", errors="surrogatepass")).digest()
        cached = self._cache.get(digest)
        if cached is None:
            claims = tokens.read(token, self._key)
            if claims is None:
                return None
            if len(self._cache) >= self._cache_size:
                del self._cache[next(iter(self._cache))]
            cached = self._cache[digest] = claims, user_of(claims)
        return cached

    def _check_time(self, claims: Claims) -> None:
        now = self._clock.now().timestamp()
        if now >= claims.expires:
            raise _invalid_token("service account token has expired")
        # Clocks that were set back a little must not lock out all users.
        if now < claims.issued - GRACE.total_seconds():
            raise _invalid_token("service account token is not valid yet")

    def _check_account(self, claims: Claims) -> None:
        name = claims.account.name
        account = self._lookup("serviceaccounts", claims.namespace, name)
        if account is None:
            raise _invalid_token(f"serviceaccounts {quote(name)} not found")
        if self._is_deleted(account):
            raise _invalid_token(f"service account {claims.namespace}/{name} has been deleted")
        uid = account["metadata"]["uid"]
        if uid != claims.account.uid:
            raise _invalid_token(
                f"service account UID ({uid}) does not match claim ({claims.account.uid})"
            )

    def _check_bound(self, claims: Claims) -> None:
        if claims.secret is not None:
            self._check_object("secrets", "secret", claims.namespace, claims.secret)
        if claims.pod is not None:
            self._check_object("pods", "pod", claims.namespace, claims.pod)
        elif claims.node is not None:
            # With a pod the node is informational; without one the token is bound to the node.
            self._check_object("nodes", "node", "", claims.node)

    def _check_object(self, resource: str, kind: str, namespace: str, bound: Bound) -> None:
        obj = self._lookup(resource, namespace, bound.name)
        if obj is None or self._is_deleted(obj):
            raise _invalid_token(_INVALIDATED)
        uid = obj["metadata"]["uid"]
        if uid != bound.uid:
            raise _invalid_token(
                f"{kind} UID ({uid}) does not match service account {kind} ref claim ({bound.uid})"
            )

    def _is_deleted(self, obj: Obj) -> bool:
        stamp = obj["metadata"].get("deletionTimestamp")
        return stamp is not None and parse_time(stamp) + GRACE < self._clock.now()


def user_of(claims: Claims) -> User:
    """Return the user of a token that is not validated yet."""
    extra = {CREDENTIAL: (f"JTI={claims.id}",)}
    for kind in ("node", "pod"):
        bound: Bound | None = getattr(claims, kind)
        if bound is not None:
            extra[f"authentication.kubernetes.io/{kind}-name"] = (bound.name,)
            extra[f"authentication.kubernetes.io/{kind}-uid"] = (bound.uid,)
    groups = (*account_groups(claims.namespace), "system:authenticated")
    return User(claims.subject, groups, claims.account.uid, extra)


def account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of every service account of a namespace."""
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def split_account(user: str) -> tuple[str, str] | None:
    """Return namespace and name of a service account by its user name, None for other users."""
    parts = user.removeprefix(tokens.PREFIX).split(":")
    if not user.startswith(tokens.PREFIX) or len(parts) != 2 or not all(parts):
        return None
    return parts[0], parts[1]


def _invalid_token(reason: str) -> TokenError:
    return TokenError(f"[invalid bearer token, {reason}]")


def _quoted(names: Sequence[str]) -> str:
    return f"[{' '.join(quote(name) for name in names)}]"
