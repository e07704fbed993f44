"""Users by client certificate: the common name is the user, organizations are the groups.

The TLS layer has verified the signature of the CA; each request of a long connection checks that
the certificate has not expired meanwhile.
"""

import hashlib
import ssl
from collections.abc import Mapping
from typing import Any

import msgspec

from sully.server.authentication.groups import with_authenticated
from sully.server.authentication.service_accounts import CREDENTIAL
from sully.server.requests import User


class Peer(msgspec.Struct, frozen=True):
    """The user of a connection, and until when the certificate is valid (seconds since 1970)."""

    user: User
    expires: float


def peer_of(certificate: Mapping[str, Any] | None, encoded: bytes | None = None) -> Peer | None:
    """Return the user of a client certificate, None without a certificate or a common name."""
    if not certificate:
        return None
    name, groups = "", []
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    if not name:
        return None
    ends = certificate.get("notAfter")
    expires = ssl.cert_time_to_seconds(ends) if ends else float("inf")
    extra = {CREDENTIAL: (f"X509SHA256={hashlib.sha256(encoded).hexdigest()}",)} if encoded else {}
    return Peer(User(name, with_authenticated(name, groups), extra=extra), expires)
