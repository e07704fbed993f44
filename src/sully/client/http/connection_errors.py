"""Why no answer came, in words that people understand.

aiohttp tells of sockets and encodings, by their objects, and of some things twice. What was tried
is known to whoever asks; here is only what went wrong.
"""

from __future__ import annotations

import os
import ssl

UNTRUSTED = "its certificate is not accepted"
"""How the text begins where another server may have answered than the one that was meant."""


def describe_connection_error(error: Exception) -> str:
    """Say what went wrong."""
    import aiohttp

    texts: dict[type[Exception], str] = {
        TimeoutError: "no answer in time",
        aiohttp.ClientConnectorSSLError: "nobody there speaks TLS as we do",
        aiohttp.ServerDisconnectedError: "the server hung up",
        aiohttp.ClientPayloadError: "the answer broke off",
    }
    for kind, text in texts.items():
        if isinstance(error, kind):
            return text
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _untrusted(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name {error.host} cannot be found"
    return _system(error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error)


def _untrusted(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_message:
        return f"{UNTRUSTED}: {error.verify_message}"
    return UNTRUSTED


def _system(error: Exception) -> str:
    """Say what the system says; a library may have put a text of its own in its place."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__
