"""Authorizes requests for metrics, and of senders of signals, by asking the API server.

As in controller-runtime, the bearer token of a request is sent in a TokenReview, and the user it
stands for in a SubjectAccessReview for the path. Results are cached for a minute, so that a
scrape costs the API server next to nothing; while it is unreachable, cached results stay valid.
"""

from __future__ import annotations

import asyncio
import hashlib

import msgspec

from sully.client.reviews import may, user_of_token
from sully.client.transport import Transport, UnreachableError, UnreadableError
from sully.machinery.errors import ApiError
from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

_log = get_logger("metrics")
OK, UNAUTHENTICATED, FORBIDDEN, UNKNOWN = 200, 401, 403, 503
CACHE_SECONDS = 60.0
_MOST_CACHED = 64
_MOST_REQUESTS = 4
_MOST_TOKEN = 16 * 1024


class _CachedResult(msgspec.Struct, frozen=True):
    code: int
    until: float


class MetricsAuthorizer:
    """Checks bearer tokens."""

    def __init__(self, transport: Transport, clock: Clock, *, verb: str = "get") -> None:
        self._transport = transport
        self._verb = verb
        self._clock = clock
        # By hash, so that memory holds no tokens; oldest first.
        self._results: dict[bytes, _CachedResult] = {}
        # Made-up tokens must not overload the API server.
        self._requests = asyncio.Semaphore(_MOST_REQUESTS)

    async def check(self, authorization: str, path: str) -> int:
        """Return 200 for a request that is allowed for a path, else the code of the answer."""
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != "bearer" or not token or len(token) > _MOST_TOKEN:
            return UNAUTHENTICATED
        key = hashlib.sha256(f"{path} {token}".encode("utf-8", "surrogatepass")).digest()
        known = self._results.get(key)
        if known is not None and self._clock.monotonic() < known.until:
            return known.code
        try:
            async with self._requests:
                code = await self._review(token, path)
        except (ApiError, UnreachableError, UnreadableError) as error:
            _log.warning("failed to authorize a request", path=path, error=str(error))
            return known.code if known is not None else UNKNOWN
        self._cache(key, code)
        return code

    async def _review(self, token: str, path: str) -> int:
        user = await user_of_token(self._transport, token)
        if user is None:
            return UNAUTHENTICATED
        attributes = {"path": path, "verb": self._verb}
        return OK if await may(self._transport, attributes, user) else FORBIDDEN

    def _cache(self, key: bytes, code: int) -> None:
        self._results.pop(key, None)
        if len(self._results) >= _MOST_CACHED:
            del self._results[self._evictable()]
        self._results[key] = _CachedResult(code, self._clock.monotonic() + CACHE_SECONDS)

    def _evictable(self) -> bytes:
        """Return the oldest result, a rejection if there is one."""
        rejected = (key for key, result in self._results.items() if result.code != OK)
        return next(rejected, next(iter(self._results)))
