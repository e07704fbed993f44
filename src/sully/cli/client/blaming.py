"""Which file is to blame when a command fails over what it was given.

Nobody checks objects before they are used (views/misfits.py says why), so this looks at them
afterwards, and names the file, the object and the field.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sully.cli.client.calling import CommandError, Session
from sully.cli.client.taking import read_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping


def blame(session: Session, error: Exception) -> str:
    """Say what is wrong in the files that were given; empty if they are as they should be."""
    from sully.client.transport import UnreadableError
    from sully.views.snapshot.misfits import misfit

    names = list(_files(session))
    # Letters that are none may also stand in the command itself.
    for strictly in (False,) if isinstance(error, UnicodeError) else (False, True):
        for name in names:
            for obj in _objects(session, name):
                found = misfit(obj, strictly=strictly)
                if found:
                    return f"{name}: {_named(obj)}: {found}"
    if names and isinstance(error, UnreadableError):
        return f"{', '.join(names)}: {error}"
    return ""


def _files(session: Session) -> Iterator[str]:
    yield from getattr(session.options, "snapshot", ())
    if getattr(session.options, "filename", ()):
        from sully.cli.change.manifests import files_named

        yield from files_named(session)


def _objects(session: Session, name: str) -> "Iterator[dict[str, Any]]":
    from sully.views.snapshot.documents import TextError, read_documents
    from sully.views.snapshot.file import SnapshotError, objects_in

    try:
        yield from objects_in(each for each, _ in read_documents(read_bytes(session, name)))
    except (CommandError, SnapshotError, TextError):
        return  # It is gone, or another one now.


def _named(obj: "Mapping[str, Any]") -> str:
    metadata = obj.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    parts = (known.get("namespace"), known.get("name"))
    return f"{obj['kind']} {'/'.join(str(each) for each in parts if each)}".rstrip()
