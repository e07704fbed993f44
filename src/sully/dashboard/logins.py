"""What a sign-in sends, and how often it may fail from one address."""

from __future__ import annotations

from collections import deque
from math import ceil

import msgspec

from sully.dashboard.http import HttpError
from sully.runtime.clock import Clock

MAX_BODY = 1 << 15
MAX_TOKEN = 1 << 14
MAX_FAILURES = 10
"""Within `WINDOW_SECONDS`."""
WINDOW_SECONDS = 60.0
MAX_ADDRESSES = 1024


class Login(msgspec.Struct, frozen=True):
    """A one-time code, or a token."""

    code: str = ""
    token: str = ""

    def __repr__(self) -> str:
        """Return nothing that is secret."""
        return "Login()"


class Failures:
    """When sign-ins have failed, by address; at most a fixed number of addresses is known."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[str, deque[float]] = {}

    def add(self, address: str) -> None:
        """Record a failure; the address that failed the longest ago is forgotten."""
        times = self._times.pop(address, None) or deque(maxlen=MAX_FAILURES)
        times.append(self._clock.monotonic())
        self._times[address] = times
        if len(self._times) > MAX_ADDRESSES:
            del self._times[next(iter(self._times))]

    def check(self, address: str) -> None:
        """Raise HttpError if an address has failed too often."""
        times = self._times.get(address)
        if times is None or len(times) < MAX_FAILURES:
            return
        left = times[0] + WINDOW_SECONDS - self._clock.monotonic()
        if left > 0:
            message = "too many attempts to sign in have failed; try again in a minute"
            raise HttpError(429, message, retry_after=ceil(left))
