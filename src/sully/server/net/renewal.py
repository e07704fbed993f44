"""Certificates that a running server replaces before they end: its own, and the admin's.

New connections get the new certificate from the same TLS context; nothing restarts. The authority
itself lives for ten years and is not replaced: every client would have to learn the new one.
"""

import ssl
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

from sully.runtime.clock import Clock
from sully.runtime.files import write_private
from sully.runtime.log import get_logger
from sully.server.net.tls import Authority, Pair, belong_together, expires_soon, names_of

_log = get_logger("server")
CHECK_INTERVAL = timedelta(hours=1)


class ServerCertificate:
    """The server's certificate in a data directory, with its subject names."""

    def __init__(self, folder: Path, authority: Authority, names: Iterable[str]) -> None:
        self.certificate = folder / "server.crt"
        self.key = folder / "server.key"
        self._authority = authority
        self._names = sorted(set(names))

    def ensure(self, clock: Clock) -> bool:
        """Issue a new certificate if there is no valid one; report whether it was issued."""
        if self.certificate.exists() and self.key.exists():
            pair = Pair(self.certificate.read_bytes(), self.key.read_bytes())
            if belong_together(pair) and self._is_valid(pair, clock):
                return False
        pair = self._authority.server(self._names, clock.now())
        write_private(self.key, pair.key)
        write_private(self.certificate, pair.certificate)
        return True

    def _is_valid(self, pair: Pair, clock: Clock) -> bool:
        if expires_soon(pair, clock.now()) or not self._authority.signed(pair):
            return False
        return set(self._names) <= names_of(pair)


class Renewal:
    """Renews certificates before they expire."""

    def __init__(
        self,
        serving: ServerCertificate | None,
        context: ssl.SSLContext,
        clock: Clock,
        renew_login: Callable[[], None],
    ) -> None:
        self._serving = serving
        self._context = context
        self._clock = clock
        self._renew_login = renew_login

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await self._clock.sleep(CHECK_INTERVAL.total_seconds())
            try:
                self.renew_due()
            except OSError as error:
                # The current certificates are valid for weeks: retry.
                _log.error("failed to renew certificate", error=str(error))

    def renew_due(self) -> None:
        """Renew what expires soon."""
        if self._serving is not None and self._serving.ensure(self._clock):
            self._context.load_cert_chain(self._serving.certificate, self._serving.key)
            _log.info("server certificate renewed", file=str(self._serving.certificate))
        self._renew_login()
