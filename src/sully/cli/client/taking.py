"""What a command is answered from: a snapshot of the server, or one from files.

What may not be seen is said once, and briefly; what an answer cannot do without ends the command.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sully.cli.client.calling import CommandError, Session
from sully.cli.client.patience import patience
from sully.cli.client.texts import printable

if TYPE_CHECKING:
    from sully.client.transport import Kind
    from sully.views.snapshot.snapshot import Gap, Snapshot


async def take(
    session: Session,
    kinds: Iterable["Kind[Any]"],
    *,
    needed: Sequence["Kind[Any]"] = (),
    in_files: Sequence["Kind[Any]"] = (),
    namespace: str = "",
) -> "Snapshot":
    """Return a snapshot of these kinds: of the server, or from the files that the user named.

    Without the `needed` kinds there is no answer; what else may not be seen is warned of, unless
    that is everything. A file may lack them, for kubectl writes nothing of a kind without objects,
    unless they are `in_files`.
    """
    from sully.views.snapshot.loading import load

    if getattr(session.options, "snapshot", ()):
        with patience(lambda: f"{session.command}: reading {', '.join(session.options.snapshot)}"):
            found = read_files(session)
        _refuse_gaps(session, found, in_files)
        return found
    kinds = tuple(kinds)
    with patience(lambda: f"{session.command}: reading the cluster"):
        found = await load(
            session.transport,
            kinds,
            now=session.clock.now(),
            namespace=namespace,
            at_least=session.namespace,
        )
    _refuse_gaps(session, found, needed)
    if len(found.gaps) < len(kinds):
        warn_of_hidden(session, found.gaps)
    return found


def is_known(gap: "Gap | None") -> bool:
    """Say whether a kind is there to be looked at, or as much of it as was asked for.

    A file may lack it because there are none.
    """
    return gap is None or gap.why != "not allowed" or bool(gap.but)


def _refuse_gaps(session: Session, found: "Snapshot", needed: Sequence["Kind[Any]"]) -> None:
    for gap in filter(None, map(found.gap, needed)):
        if gap.but:
            continue
        files = ", ".join(getattr(session.options, "snapshot", ()))
        raise no_answer(gap, f"{files}: it has no {gap.kind.kind}")


def no_answer(gap: "Gap", text: str = "") -> CommandError:
    """Say that nothing can be said without a kind, and what to do about it."""
    hidden = gap.why == "not allowed"
    help_ = "; ask an admin for a role that allows to list them" if hidden else ""
    return CommandError(
        f"{printable(gap.message or text)}\n  without {gap.kind.plural} there is no answer{help_}"
    )


def warn_of_hidden(session: Session, gaps: Iterable["Gap"]) -> None:
    """Say what may not be seen."""
    hidden = [gap.kind for gap in gaps if gap.why == "not allowed" and not gap.but]
    if not hidden:
        return
    names = ", ".join(sorted(each.plural for each in hidden))
    what = "file" if session.command == "snapshot" else "answer"
    text = f"warning: you may not list {names}; the {what} goes without them"
    if any(each.namespaced for each in hidden) and not session.namespace:
        text += "\n  -n NAMESPACE takes what is in one namespace, where you may list that"
    session.warn(text)


def read_files(session: Session) -> "Snapshot":
    """Return the snapshot in the files that were named; `-` is the standard input."""
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
    """Return what a file holds, or say in words why that cannot be read."""
    try:
        if name != "-":
            return Path(name).read_bytes()
        if name not in session.kept:
            session.kept[name] = sys.stdin.buffer.read()
        return session.kept[name]
    except OSError as error:
        raise CommandError(f"{name}: {(error.strerror or str(error)).lower()}", code) from error
