"""Sessions of the dashboard: who may use which client, and until when.

A session begins with a one-time code, which is printed where the dashboard is started, or with a
token that is pasted. The browser has only a random secret in a cookie, and this process only its
hash; the credential itself never reaches the browser.

Browsers send a cookie to every port of a host, so also to programs of other users of this machine.
So each request has the key of the page as well, which only pages of this origin can read.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import msgspec

from sully.runtime.clock import Clock

V = TypeVar("V")


class SessionLimits(msgspec.Struct, frozen=True):
    """How long sessions and codes last, and how many there may be."""

    idle: timedelta = timedelta(hours=1)
    """Without a request or an open page."""
    longest: timedelta = timedelta(hours=12)
    code: timedelta = timedelta(minutes=30)
    per_user: int = 10
    """Beyond it the user's oldest session ends."""
    most: int = 200
    """Beyond it no session can begin; existing ones do not end."""


class TooManySessionsError(Exception):
    """No session can begin until another one ends."""


@dataclass(slots=True)
class Session(Generic[V]):
    """One browser of a viewer."""

    viewer: V
    began: datetime
    used: datetime
    key: str = field(repr=False)


class Sessions(Generic[V]):
    """The sessions of all viewers."""

    def __init__(
        self,
        clock: Clock,
        limits: SessionLimits | None = None,
        secret: Callable[[], str] = secrets.token_urlsafe,
        user_of: Callable[[V], Hashable] = lambda viewer: viewer,
    ) -> None:
        self._clock = clock
        self.limits = limits or SessionLimits()
        self._secret = secret
        self._user_of = user_of
        self._page_secret = secrets.token_bytes()
        self._codes: dict[str, datetime] = {}
        self._sessions: dict[str, Session[V]] = {}

    def new_code(self) -> str:
        """Return a code that opens one session, once."""
        code = self._secret()
        self._codes[_hashed(code)] = self._clock.now() + self.limits.code
        return code

    def redeem(self, code: str) -> bool:
        """Use a code; report whether it was valid."""
        end = self._codes.pop(_hashed(code), None)
        return end is not None and self._clock.now() < end

    def open(self, viewer: V) -> str:
        """Begin a session and return its secret; raises TooManySessionsError."""
        self._forget_ended()
        user = self._user_of(viewer)
        own = [x for x in self._sessions.values() if self._user_of(x.viewer) == user]
        if len(own) >= self.limits.per_user:
            self.close(min(own, key=lambda session: session.used))
        elif len(self._sessions) >= self.limits.most:
            raise TooManySessionsError("too many sessions are open; try again later")
        secret, now = self._secret(), self._clock.now()
        key = _hashed(secret)
        self._sessions[key] = Session(viewer, now, now, key)
        return secret

    def page_key(self, secret: str) -> str:
        """Return the key that pages send together with the secret of their session."""
        return hmac.new(self._page_secret, _encoded(secret), "sha256").hexdigest()

    def is_page_key(self, secret: str, key: str) -> bool:
        """Report whether a key belongs to a secret."""
        return hmac.compare_digest(_encoded(self.page_key(secret)), _encoded(key))

    def find(self, secret: str) -> Session[V] | None:
        """Return the session of a secret if it has not ended; it is in use now."""
        session = self._sessions.get(_hashed(secret)) if secret else None
        if session is None or not self.is_open(session):
            return None
        session.used = self._clock.now()
        return session

    def is_open(self, session: Session[V]) -> bool:
        """Report whether a session has not ended."""
        now = self._clock.now()
        return (
            session.key in self._sessions
            and now < session.used + self.limits.idle
            and now < session.began + self.limits.longest
        )

    def end_of(self, session: Session[V]) -> datetime:
        """Return when a session ends at the latest."""
        return session.began + self.limits.longest

    def close(self, session: Session[V]) -> None:
        """End a session."""
        self._sessions.pop(session.key, None)

    def close_all(self, viewer: V) -> None:
        """End the sessions of a viewer whose credential is no longer valid."""
        for session in [x for x in self._sessions.values() if x.viewer is viewer]:
            self.close(session)

    def viewers(self) -> list[V]:
        """Return who has an open session, and forget those that ended."""
        self._forget_ended()
        return [session.viewer for session in self._sessions.values()]

    def _forget_ended(self) -> None:
        now = self._clock.now()
        self._codes = {code: end for code, end in self._codes.items() if now < end}
        for session in [x for x in self._sessions.values() if not self.is_open(x)]:
            self.close(session)


def _hashed(secret: str) -> str:
    return hashlib.sha256(_encoded(secret)).hexdigest()


def _encoded(secret: str) -> bytes:
    return secret.encode("utf-8", "surrogatepass")
