"""Credentials: fixed ones, and files that are rotated.

Exec plugins are in exec_plugin.py.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from sully.runtime.clock import Clock

REREAD_SECONDS = 60.0
"""How long a file is cached: tokens and certificates are rotated long before they expire."""


class AccessError(ValueError):
    """A server cannot be reached as configured; the message contains what to change and where."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A token or a client certificate with its key, in PEM."""

    token: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)

    @property
    def authorization(self) -> str:
        """Return the value of the Authorization header, empty for none."""
        if self.token:
            return f"Bearer {self.token}"
        if self.username:
            pair = f"{self.username}:{self.password}".encode()
            return f"Basic {b64encode(pair).decode()}"
        return ""


NO_CREDENTIAL = Credential()
"""No credential: the user is anonymous."""


class Credentials(Protocol):
    """A source of credentials that may change."""

    async def current(self) -> Credential:
        """Return the current credential."""
        ...

    def reject(self, credential: Credential) -> bool:
        """Invalidate a rejected credential; return whether another may work."""
        ...


class FixedCredentials:
    """A credential that never changes."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current(self) -> Credential:
        """Return the credential."""
        return self._credential

    def reject(self, credential: Credential) -> bool:  # noqa: ARG002 - part of the protocol
        """Return False: there is no other."""
        return False


class FileCredentials:
    """Credentials in files, read again from time to time and whenever they are rejected."""

    def __init__(
        self,
        base: Credential = NO_CREDENTIAL,
        *,
        token_file: Path | None = None,
        certificate_file: Path | None = None,
        key_file: Path | None = None,
        clock: Clock,
    ) -> None:
        self._base = base
        self._token_file = token_file
        self._certificate_file = certificate_file
        self._key_file = key_file
        self._clock = clock
        self._held: Credential | None = None
        self._read_at = 0.0

    async def current(self) -> Credential:
        """Return the content of the files, at most a minute old."""
        now = self._clock.monotonic()
        if self._held is None or now >= self._read_at + REREAD_SECONDS:
            self._renew()
        assert self._held is not None
        return self._held

    def reject(self, credential: Credential) -> bool:
        """Read the files again; a retry helps only if they changed."""
        self._renew()
        return self._held != credential

    def _renew(self) -> None:
        try:
            self._held = self._load()
        except AccessError:
            # A file may be missing for a moment while it is replaced; the old content may still be
            # valid.
            if self._held is None:
                raise
        self._read_at = self._clock.monotonic()

    def _load(self) -> Credential:
        credential = self._base
        if self._token_file:
            token = _read(self._token_file).decode(errors="replace").strip()
            if not token:
                raise AccessError(f"{self._token_file}: the token file is empty")
            credential = replace(credential, token=token)
        if self._certificate_file:
            credential = replace(credential, certificate=_read(self._certificate_file))
        if self._key_file:
            credential = replace(credential, key=_read(self._key_file))
        return credential


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AccessError(f"{path}: cannot read the credential: {error.strerror}") from error


def decode_data(text: object, what: str) -> bytes:
    """Read a base64 field of a kubeconfig."""
    try:
        return b64decode(str(text), validate=True)
    except ValueError as error:
        raise AccessError(f"{what} is not base64: {error}") from error
