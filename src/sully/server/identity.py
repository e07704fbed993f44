"""What a control plane has from the keys in its data directory.

These are only the values. What reads and creates keys (net/issuing.py) and signs tokens
(authentication/signing.py) needs libraries that take 12 MiB, and a server needs them only when it
starts and for tokens: the certificates of clients are verified by the TLS library. So both are
imported late, and `sully up` lets another process open the identity (cli/run/up/forked.py).
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from sully.server.authentication.keys import SigningKey


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its key, both in PEM."""

    certificate: bytes
    key: bytes


class IdentityRequest(msgspec.Struct, frozen=True):
    """Where the keys are, and for whom certificates are issued."""

    folder: Path
    names: tuple[str, ...]
    """Names and addresses of the server."""
    admin: str
    groups: tuple[str, ...]
    """Groups of the admin."""
    now: datetime


class Issued(msgspec.Struct, frozen=True):
    """The certificate of the admin; that of the server is in its file."""

    login: Pair
    renew_at: datetime
    """When one of the two should be replaced."""


class Identity(msgspec.Struct, frozen=True):
    """What clients know a control plane by."""

    authority: Pair
    token_key: SigningKey
    issued: Issued
