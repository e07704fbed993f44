"""A token bucket: a rate per second, and a burst after a pause."""

from __future__ import annotations

from sully.runtime.clock import Clock


class TokenBucket:
    """Gives out tokens, which come back at a rate up to a burst."""

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._filled = clock.monotonic()

    def take(self) -> bool:
        """Take a token; False if there is none."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
