"""Certificates that a running server replaces before they end: its own, and the admin's.

New connections get the new certificate from the same TLS context; nothing restarts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sully.runtime.clock import Clock
from sully.runtime.log import get_logger

_log = get_logger("server")
CHECK_INTERVAL = timedelta(hours=1)


class Renewal:
    """Renews certificates before they expire."""

    def __init__(self, renew_at: datetime, renew: Callable[[], datetime], clock: Clock) -> None:
        """`renew` returns when to renew the new ones."""
        self._renew_at = renew_at
        self._renew = renew
        self._clock = clock

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await self._clock.sleep(CHECK_INTERVAL.total_seconds())
            if self._clock.now() < self._renew_at:
                continue
            try:
                self._renew_at = self._renew()
            except OSError as error:
                # The current certificates are valid for weeks: retry.
                _log.error("failed to renew certificate", error=str(error))
            else:
                _log.info("certificates renewed", renew_at=self._renew_at.isoformat())
