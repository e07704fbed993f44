"""Opens or creates the keys of a data directory, and issues the certificates of a start.

The authority itself lives for ten years and is not replaced: every client would have to learn the
new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from sully.runtime.files import write_private
from sully.server.authentication.keys import SigningKey
from sully.server.identity import Identity, IdentityRequest, Issued, Pair
from sully.server.net.tls import (
    RENEW_BEFORE,
    Authority,
    belong_together,
    end_of,
    expires_soon,
    names_of,
)


def open_identity(request: IdentityRequest) -> Identity:
    """Return the identity of a control plane; what is missing is created."""
    authority = Authority.open(request.folder, request.now)
    key = SigningKey.open(request.folder)
    return Identity(authority.pair, key, _issue(authority, request))


def issue(authority: Pair, request: IdentityRequest) -> Issued:
    """Issue certificates for an authority: the admin's, and the server's if it needs another."""
    return _issue(Authority(authority), request)


def _issue(authority: Authority, request: IdentityRequest) -> Issued:
    serving = ServerCertificate(request.folder, authority, request.names)
    serving.ensure(request.now)
    login = authority.client(request.admin, list(request.groups), request.now)
    ends = min(end_of(login), end_of(serving.pair()))
    return Issued(login, ends - RENEW_BEFORE)


class ServerCertificate:
    """The server's certificate in a data directory, with its subject names."""

    def __init__(self, folder: Path, authority: Authority, names: Iterable[str]) -> None:
        self.certificate = folder / "server.crt"
        self.key = folder / "server.key"
        self._authority = authority
        self._names = sorted(set(names))

    def pair(self) -> Pair:
        """Return what is in the files."""
        return Pair(self.certificate.read_bytes(), self.key.read_bytes())

    def ensure(self, now: datetime) -> bool:
        """Issue a new certificate if there is no valid one; report whether it was issued."""
        if self.certificate.exists() and self.key.exists():
            pair = self.pair()
            if belong_together(pair) and self._is_valid(pair, now):
                return False
        pair = self._authority.server(self._names, now)
        write_private(self.key, pair.key)
        write_private(self.certificate, pair.certificate)
        return True

    def _is_valid(self, pair: Pair, now: datetime) -> bool:
        if expires_soon(pair, now) or not self._authority.signed(pair):
            return False
        return set(self._names) <= names_of(pair)
