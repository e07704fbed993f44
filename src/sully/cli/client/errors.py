"""Errors between a command and its server, or in the files that it reads, with what to do next."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from sully.cli.client.certificates import validity
from sully.cli.client.session import Session
from sully.cli.client.snapshots import read_bytes
from sully.cli.command import CommandError
from sully.cli.output.text import printable
from sully.client.kubeconfig.kubeconfig import NotConfiguredError
from sully.client.transport import UnreadableError, UntrustedServerError
from sully.machinery.errors import Forbidden

if TYPE_CHECKING:
    from sully.client.kubeconfig.access import Access

_STARTED = ("data/kubeconfig", "data/demo/kubeconfig")
"""What `make up` and `make demo` write, relative to where they run."""


def api_error_text(error: Any) -> str:
    """Return the message of an API error, and what to do about it."""

    # On one line: what follows below it is ours.
    text = printable(error.message)
    if isinstance(error, Forbidden):
        return f"{text}\n  ask an administrator for a role that allows this"
    return text


def no_access_text(error: Exception) -> str:
    """Return why there is no server to talk to, and suggest one that was started here."""

    started = [path for path in map(Path, _STARTED) if path.exists()]
    if not isinstance(error, NotConfiguredError) or not started:
        return str(error)
    last = max(started, key=lambda path: path.stat().st_mtime).resolve()
    return f"{error}\n  a server was started here: export KUBECONFIG={quote(str(last))}"


def unreadable_text(error: Exception) -> str:
    """Return what could not be read of a response, and what to check."""
    return f"{error}\n  check that this is a Kubernetes API server, and the right kubeconfig for it"


async def unauthorized_text(error: Any, access: "Access", now: datetime) -> str:
    """Return which server rejected which credentials, and why if that is known."""
    text = f"{printable(error.message)}: {access.server} rejected the credentials of"
    text = f"{text} {access.origin or 'the kubeconfig'}"
    expired = expired_text((await access.credentials.current()).certificate, now)
    return f"{text}\n  {expired or 'renew them, or select another context with --context'}"


def expired_text(certificate: bytes, now: datetime) -> str:
    """Return since when a client certificate is no longer valid; empty if it is."""
    valid = validity(certificate)
    if valid is None or valid[1] >= now:
        return ""
    return (
        "the client certificate in the kubeconfig expired at"
        f" {valid[1]:%Y-%m-%dT%H:%M:%SZ}; renew it"
    )


async def unreachable_text(error: Exception, access: "Access", now: datetime) -> str:
    """Return why the server did not answer, as far as the client can know."""

    text = str(error)
    # Servers just close the connection where the certificate has expired.
    expired = expired_text((await access.credentials.current()).certificate, now)
    if expired:
        return f"{text}\n  {expired}"
    if isinstance(error, UntrustedServerError):
        return f"{text}\n  check that this is the right server, and the right kubeconfig for it"
    return f"{text}\n  check that the server is running, and that this is the right kubeconfig"


# -- files ----------------------------------------------------------------------------------------


def invalid_file_text(session: Session, error: Exception) -> str:
    """Return which object in the given files is invalid; empty if all are valid.

    Objects are not validated when they are read (views/snapshot/type_check.py), so this looks at
    them after a failure.
    """
    from sully.views.snapshot.type_check import type_error

    names = list(_files(session))
    # Invalid characters may also be in the command line itself.
    for strictly in (False,) if isinstance(error, UnicodeError) else (False, True):
        for name in names:
            for obj in _objects(session, name):
                problem = type_error(obj, strict=strictly)
                if problem:
                    return f"{name}: {_object_name(obj)}: {problem}"
    if names and isinstance(error, UnreadableError):
        return f"{', '.join(names)}: {error}"
    return ""


def _files(session: Session) -> Iterator[str]:
    yield from getattr(session.options, "snapshot", ())
    if getattr(session.options, "filename", ()):
        from sully.cli.change.plan.manifests import files_named

        yield from files_named(session)


def _objects(session: Session, name: str) -> "Iterator[dict[str, Any]]":
    from sully.views.snapshot.documents import TextError, read_documents
    from sully.views.snapshot.file import SnapshotError, objects_in

    try:
        yield from objects_in(document for document, _ in read_documents(read_bytes(session, name)))
    except (CommandError, SnapshotError, TextError):
        return  # It has changed since.


def _object_name(obj: Mapping[str, Any]) -> str:
    metadata = obj.get("metadata")
    fields = metadata if isinstance(metadata, dict) else {}
    parts = (fields.get("namespace"), fields.get("name"))
    return f"{obj['kind']} {'/'.join(str(part) for part in parts if part)}".rstrip()
