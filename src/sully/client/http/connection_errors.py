"""Describes connection errors of aiohttp for people.

aiohttp describes sockets by their repr, and some errors twice. The caller knows what was tried;
here is only what failed.
"""

from __future__ import annotations

import os
import ssl

from sully.client.http.resolver import RefusedAddressError
from sully.client.transport import UnreachableError, UntrustedServerError

_UNTRUSTED = "its certificate is not trusted"


def unreachable(error: Exception, url: str) -> UnreachableError:
    """Return the error that callers get."""
    import aiohttp

    untrusted = isinstance(error, aiohttp.ClientConnectorCertificateError)
    kind = UntrustedServerError if untrusted else UnreachableError
    return kind(describe_connection_error(error), url)


def describe_connection_error(error: Exception) -> str:
    """Return what failed."""
    import aiohttp

    texts: dict[type[Exception], str] = {
        TimeoutError: "timed out",
        aiohttp.ClientConnectorSSLError: "TLS handshake failed",
        aiohttp.ServerDisconnectedError: "the server closed the connection",
        aiohttp.ClientPayloadError: "the response was incomplete",
    }
    for kind, text in texts.items():
        if isinstance(error, kind):
            return text
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _untrusted(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorDNSError) and not isinstance(
        error.os_error, RefusedAddressError
    ):
        return f"host {error.host} not found"
    return _system(error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error)


def _untrusted(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_message:
        return f"{_UNTRUSTED}: {error.verify_message}"
    return _UNTRUSTED


def _system(error: Exception) -> str:
    """Return the text of the operating system, which a library may have replaced."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__
