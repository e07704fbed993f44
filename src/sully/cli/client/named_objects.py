"""Objects that a command lists and changes by name, as `sully policies` and `sully maintenance` do.

Names may be globs where several objects can be meant.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sully.cli.client.options import NAMES, TABLES
from sully.cli.client.session import Session
from sully.cli.client.snapshots import take_snapshot
from sully.cli.command import CommandError

if TYPE_CHECKING:
    from sully.cli.client.tables import Cell, Column
    from sully.client.transport import Kind

T = TypeVar("T")


class Printer(NamedTuple):
    """How objects of one kind are printed: in a table, and for programs."""

    columns: "Sequence[Column]"
    row: "Callable[[Any, datetime], Sequence[Cell | str]]"
    document: "Callable[[Any], dict[str, Any]]"


async def list_objects(session: Session, kind: "Kind[Any]", printer: Printer, noun: str) -> int:
    """Print the objects with the given names, or all; `noun` is what several are called."""
    from sully.cli.client.printers import print_document
    from sully.cli.client.tables import Table
    from sully.cli.client.text import did_you_mean

    snapshot = await take_snapshot(session, (kind,), needed=(kind,))
    known = {obj.metadata.name: obj for obj in snapshot.of(kind).values()}
    patterns, output = session.options.args, session.options.output
    shown = [known[name] for name in sorted(known) if not patterns or _fits(name, patterns)]
    if output == NAMES:
        sys.stdout.writelines(f"{full_name(kind, obj.metadata.name)}\n" for obj in shown)
    elif output not in TABLES:
        print_document({noun: [printer.document(obj) for obj in shown]}, output)
    elif shown:
        table = Table(printer.columns, titled=not session.options.no_headers)
        table.show([printer.row(obj, snapshot.taken) for obj in shown])
    elif not patterns:
        session.warn(f"No {noun} found.")
    missing = [text for text in patterns if not any(fnmatchcase(name, text) for name in known)]
    for text in missing:
        session.warn(f'error: {singular(kind)} "{text}" not found{did_you_mean(text, known)}')
    return 1 if missing else 0


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


async def find_objects(
    session: Session, kind: "Kind[T]", names: Sequence[str], *, listed_by: str
) -> list[T]:
    """Return the objects with these names, or raise an error before anything is changed."""
    from sully.cli.client.text import did_you_mean
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
    return [name for name in names if fnmatchcase(name, text) or fnmatchcase(name, f"*/{text}")]


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
