"""The token of an etcd with authentication.

A password is exchanged for a token, which is sent with every call. etcd forgets tokens: after some
minutes without use, when a member is started again, when rights change. Then the call is rejected
before anything was done, and is made again with a new token. The password is read from its file
each time, so that it can be rotated.

`client.py` makes the calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from sully.store.errors import UnavailableError
from sully.store.etcd import messages as m
from sully.store.etcd.address import Login

Metadata = tuple[tuple[str, str], ...]
Authenticate = Callable[[m.Message], Awaitable[str]]
"""Exchanges name and password for a token; empty without authentication."""

_FORGOTTEN = (
    "invalid auth token",
    "revision of auth store is old",
    # The error without a token, where authentication was enabled just now.
    "user name is empty",
)


class Tokens:
    """Keeps one token for all calls of a client."""

    def __init__(self, login: Login, authenticate: Authenticate) -> None:
        self._login = login
        self._authenticate = authenticate
        self._token: str | None = None
        self._renewing = asyncio.Lock()

    async def metadata(self) -> Metadata:
        """Return what a call must carry."""
        if not self._login.user:
            return ()
        if self._token is None:
            # Concurrent callers share the token of the first one.
            async with self._renewing:
                if self._token is None:
                    self._token = await self._authenticate(self._request())
        return (("token", self._token),) if self._token else ()

    def forget(self, used: Metadata) -> bool:
        """Drop the token of a call; report whether a new one can be requested."""
        if not self._login.user:
            return False
        if (("token", self._token),) == used or not used:
            self._token = None
        return True

    def _request(self) -> m.Message:
        assert self._login.password is not None, "a user without a password was refused"
        try:
            password = self._login.password.read_text().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UnavailableError(f"cannot read the password for etcd: {error}") from error
        return m.AuthenticateRequest(name=self._login.user, password=password)


def is_forgotten(error: Any) -> bool:
    """Report whether a call was rejected for its token alone."""
    return error.code() in (
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.INVALID_ARGUMENT,
    ) and any(text in (error.details() or "") for text in _FORGOTTEN)
