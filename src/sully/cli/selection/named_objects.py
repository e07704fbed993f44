"""Objects that a command lists and changes by name, as `sully policies` and `sully maintenance` do.

Names may be globs where several objects can be selected.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sully.cli.client.options import NAMES, TABLES
from sully.cli.client.session import Session
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import CommandError
from sully.cli.output.text import did_you_mean
from sully.cli.selection.files import files_hint
from sully.cli.selection.globs import any_glob_matches, glob_matches

if TYPE_CHECKING:
    from sully.cli.output.tables import Cell, Column
    from sully.client.transport import Kind
    from sully.views.snapshot.snapshot import Snapshot

T = TypeVar("T")


class Printer(NamedTuple):
    """How objects of one kind are printed: in a table, and for programs."""

    kind: "Kind[Any]"
    noun: str
    """What several are called in a document."""
    columns: "Sequence[Column]"
    row: "Callable[[Any, Snapshot], Sequence[Cell | str]]"
    document: "Callable[[Any, Snapshot], dict[str, Any]]"


async def list_objects(
    session: Session, *printers: Printer, reads: "Sequence[Kind[Any]]" = ()
) -> int:
    """Print the objects with the given names, or all, of one kind after the other.

    The server must have the first kind. `reads` are kinds that are only read.
    """

    first = printers[0]
    kinds = tuple(printer.kind for printer in printers)
    snapshot = await take_snapshot(session, (*kinds, *reads), needed=(first.kind,))
    patterns, output = session.options.args, session.options.output
    known = {printer.noun: _by_name(snapshot, printer.kind) for printer in printers}
    shown = [
        (
            printer,
            [obj for name, obj in known[printer.noun].items() if any_glob_matches(patterns, name)],
        )
        for printer in printers
    ]
    if output == NAMES:
        for printer, objects in shown:
            lines = (full_name(printer.kind, obj.metadata.name) for obj in objects)
            sys.stdout.writelines(f"{line}\n" for line in lines)
    elif output not in TABLES:
        _print_documents(session, shown, snapshot)
    elif any(objects for _, objects in shown):
        _print_tables(session, shown, snapshot)
    elif not patterns:
        session.warn(f"No {first.noun} found.")
    names = {name for objects in known.values() for name in objects}
    missing = [text for text in patterns if not any(glob_matches(text, name) for name in names)]
    for text in missing:
        session.warn(f'error: {singular(first.kind)} "{text}" not found{did_you_mean(text, names)}')
    if missing:
        session.warn(f"  list them with 'sully {session.command}'{files_hint(missing)}")
    return 1 if missing else 0


def _by_name(snapshot: "Snapshot", kind: "Kind[Any]") -> dict[str, Any]:
    objects = {obj.metadata.name: obj for obj in snapshot.of(kind).values()}
    return {name: objects[name] for name in sorted(objects)}


def _print_documents(
    session: Session, shown: Sequence[tuple[Printer, Sequence[Any]]], snapshot: "Snapshot"
) -> None:
    from sully.cli.output.printers import print_document

    documents = {
        printer.noun: [printer.document(obj, snapshot) for obj in objects]
        for printer, objects in shown
    }
    first, *others = documents
    # Programs expect the first list, also an empty one.
    print_document(
        {noun: documents[noun] for noun in (first, *(one for one in others if documents[one]))},
        session.options.output,
        tuple(documents),
        titled=not session.options.no_headers,
    )


def _print_tables(
    session: Session, shown: Sequence[tuple[Printer, Sequence[Any]]], snapshot: "Snapshot"
) -> None:
    from sully.cli.output.tables import Table

    separator = ""
    for printer, objects in shown:
        if objects:
            sys.stdout.write(separator)
            table = Table(printer.columns, titled=not session.options.no_headers)
            table.show([printer.row(obj, snapshot) for obj in objects])
            separator = "\n"


async def find_objects(
    session: Session, kind: "Kind[T]", names: Sequence[str], *, listed_by: str
) -> list[T]:
    """Return the objects with these names, or raise an error before anything is changed."""
    from sully.client.objects import key_of
    from sully.machinery.errors import NotFound
    from sully.views.snapshot.loading import list_all

    try:
        listed = await list_all(session.transport, kind)
    except NotFound as error:
        text = f"the server has no {kind.plural}.{kind.group}\n  'sully install' installs them"
        raise CommandError(text) from error
    known = {key_of(obj).name: obj for obj in listed}
    for name in names:
        if name not in known:
            raise CommandError(
                f'{singular(kind)} "{name}" not found{did_you_mean(name, known)}\n'
                f"  list them with '{listed_by}'"
            )
    return [known[name] for name in names]


def match_names(names: Iterable[str], text: str) -> list[str]:
    """Return the names of devices or nodes that a glob matches, or whose end it matches."""
    return [name for name in names if glob_matches(text, name) or glob_matches(f"*/{text}", name)]


async def annotate(
    session: Session, kind: "Kind[Any]", name: str, annotations: Mapping[str, str | None]
) -> None:
    """Set annotations of an object that has no namespace."""
    from sully.client.transport import Key

    patch = {"metadata": {"annotations": dict(annotations)}}
    await session.transport.patch(kind, Key("", name), patch)


def full_name(kind: "Kind[Any]", name: str) -> str:
    """Return the name of an object as `kubectl get -o name` prints it."""
    return f"{singular(kind)}.{kind.group}/{name}"


def singular(kind: "Kind[Any]") -> str:
    """Return what errors call one object, as those of kubectl do."""
    return kind.kind.lower()
