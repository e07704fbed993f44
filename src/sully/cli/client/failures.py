"""What went wrong between a command and its server, in words that say what to do."""

from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sully.client.kubeconfig.access import Access

_STARTED = ("data/kubeconfig", "data/demo/kubeconfig")
"""What `make up` and `make demo` write, as seen from where they are typed."""


def refused(error: Any) -> str:
    """Say what a server's refusal means."""
    from sully.cli.client.texts import printable
    from sully.machinery.errors import Forbidden, Unauthorized

    # On one line: what follows below it is said by us.
    text = printable(error.message)
    if isinstance(error, Unauthorized):
        return f"{text}\n  the kubeconfig's credentials are not accepted; get new ones"
    if isinstance(error, Forbidden):
        return f"{text}\n  ask an admin for a role that allows it"
    return text


def inaccessible(error: Exception) -> str:
    """Say why no server can be asked, and which one may be meant."""
    from sully.client.kubeconfig.kubeconfig import NotConfiguredError

    found = [each for each in map(Path, _STARTED) if each.exists()]
    if not isinstance(error, NotConfiguredError) or not found:
        return str(error)
    last = max(found, key=lambda each: each.stat().st_mtime).resolve()
    return f"{error}\n  one was started here: export KUBECONFIG={quote(str(last))}"


async def unreachable(error: Exception, access: "Access", now: datetime) -> str:
    """Say why no answer came, as far as can be told from here."""
    from sully.client.http.connection_errors import UNTRUSTED

    text = str(error)
    ended = _end((await access.credentials.current()).certificate)
    if ended is not None and ended < now:
        # Servers just hang up then.
        return (
            f"{text}\n  the client certificate in the kubeconfig was good until"
            f" {ended:%Y-%m-%dT%H:%M:%SZ}; get a new one"
        )
    if UNTRUSTED in text:
        return f"{text}\n  is this the right server, and the right kubeconfig for it?"
    return f"{text}\n  is the server running, and is this the right kubeconfig?"


def _end(certificate: bytes) -> datetime | None:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except ValueError:
        return None
