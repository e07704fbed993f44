"""Snapshots of a server or of files, from which commands are answered.

A kind that may not be listed is reported once; a kind that is required is an error.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sully.cli.client.session import Session
from sully.cli.command import CommandError
from sully.cli.output.spinner import spinner
from sully.cli.output.text import printable

if TYPE_CHECKING:
    from sully.client.transport import Kind
    from sully.views.snapshot.snapshot import Gap, Snapshot

_OURS = "sully.dev"


async def take_snapshot(
    session: Session,
    kinds: Iterable["Kind[Any]"],
    *,
    needed: Sequence["Kind[Any]"] = (),
    in_files: Sequence["Kind[Any]"] = (),
    namespace: str = "",
    gates: bool = False,
) -> "Snapshot":
    """Return a snapshot of these kinds: of the server, or from --snapshot.

    The `needed` kinds are required; the user is warned about others that may not be listed, unless
    none may. A file may lack a kind, because kubectl writes nothing for a kind without objects,
    unless it is in `in_files`. With `gates`, feature gates are read in any case.
    """
    from sully.views.snapshot.loading import ControlPlaneQuery, load

    if getattr(session.options, "snapshot", ()):
        with spinner(lambda: f"Reading {', '.join(session.options.snapshot)}"):
            snapshot = read_files(session)
        _refuse_gaps(session, snapshot, in_files)
        return snapshot
    kinds = tuple(kinds)
    with spinner(lambda: "Reading the cluster"):
        snapshot = await load(
            session.transport,
            kinds,
            now=session.clock.now(),
            namespace=namespace,
            at_least=session.namespace,
            acting=ControlPlaneQuery(session.transport, gates),
        )
    _refuse_gaps(session, snapshot, needed)
    if len(snapshot.gaps) < len(kinds):
        warn_of_hidden(session, snapshot.gaps)
    return snapshot


def is_known(gap: "Gap | None") -> bool:
    """Report whether a kind could be listed, or as much of it as is needed.

    A file may lack it because there are no objects.
    """
    return gap is None or gap.reason != "not allowed" or bool(gap.only_namespace)


def _refuse_gaps(session: Session, snapshot: "Snapshot", needed: Sequence["Kind[Any]"]) -> None:
    for gap in filter(None, map(snapshot.gap, needed)):
        if gap.only_namespace:
            continue
        files = ", ".join(getattr(session.options, "snapshot", ()))
        raise missing_kind(gap, f"{files}: no {gap.kind.kind} found")


def missing_kind(gap: "Gap", text: str = "") -> CommandError:
    help_ = ""
    if gap.reason == "not allowed":
        help_ = "; ask an administrator for a role that allows listing them"
    elif gap.reason == "not served" and gap.kind.group == _OURS:
        help_ = "; 'sully install' adds them to a cluster"
    return CommandError(
        f"{printable(gap.message or text)}\n  {gap.kind.plural} are required here{help_}"
    )


def warn_of_hidden(session: Session, gaps: Iterable["Gap"]) -> None:
    hidden = [gap.kind for gap in gaps if gap.reason == "not allowed" and not gap.only_namespace]
    if not hidden:
        return
    names = ", ".join(sorted(kind.plural for kind in hidden))
    what = "file" if session.command == "snapshot" else "output"
    text = f"warning: not allowed to list {names}; the {what} does not include them"
    if any(kind.namespaced for kind in hidden) and not session.namespace:
        text += "\n  use -n NAMESPACE if you may list them in one namespace"
    session.warn(text)


def read_files(session: Session) -> "Snapshot":
    """Return the snapshot in the files of --snapshot; `-` is standard input."""
    from sully.views.snapshot.file import SnapshotError, documents_in, from_documents

    documents: list[Any] = []
    names = session.options.snapshot
    for name in names:
        try:
            documents += documents_in(read_bytes(session, name))
        except SnapshotError as error:
            raise CommandError(f"{name}: {error}") from error
    try:
        return from_documents(documents, now=session.clock.now())
    except SnapshotError as error:
        raise CommandError(f"{', '.join(names)}: {error}") from error


def read_bytes(session: Session, name: str, code: int = 1) -> bytes:
    """Return the contents of a file, or raise an error that names it."""
    try:
        if name != "-":
            return Path(name).read_bytes()
        if name not in session.stdin:
            session.stdin[name] = sys.stdin.buffer.read()
        return session.stdin[name]
    except OSError as error:
        raise CommandError(f"{name}: {(error.strerror or str(error)).lower()}", code) from error
