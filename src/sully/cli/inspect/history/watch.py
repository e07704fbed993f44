"""`sully history --watch`: the records, and then each new one."""

from typing import Any

from sully.cli.client.options import TABLES
from sully.cli.client.session import Session
from sully.cli.client.watching import (
    PendingChanges,
    acting_here,
    rest_after,
    snapshot_of,
    watch_kinds,
)
from sully.cli.inspect.history.command import entries_in, kinds_for, refuse_missing_records
from sully.cli.inspect.history.printer import columns, document, row
from sully.cli.output.printers import print_event
from sully.cli.output.tables import Table
from sully.views.history import HistoryEntry

_VOLATILE = ("evicted", "evictedAtLeast", "mayInclude")
"""Fields of an entry that change after it was printed."""


async def watch(session: Session) -> int:
    kinds = kinds_for(session)
    async with watch_kinds(session, kinds) as caches:
        refuse_missing_records(session, caches.gap, kinds)
        screen, changes, plane = _Screen(session), PendingChanges(), await acting_here(session)
        for kind in kinds:
            caches.of(kind).on_change(lambda *_: changes.add("something"))
        while True:
            begun = session.clock.monotonic()
            screen.show(await entries_in(session, snapshot_of(session, caches, kinds, plane)))
            # All records are read again.
            await changes.wait(session, caches, rest_after(session.clock.monotonic() - begun))


class _Screen:
    """Prints entries that were not printed before."""

    def __init__(self, session: Session) -> None:
        self._output = session.options.output
        self._wide = self._output == "wide"
        titled = not session.options.no_headers
        self._table = Table(columns(wide=self._wide), grows=True, titled=titled)
        self._shown: set[str] = set()
        self._begun = False

    def show(self, entries: list[HistoryEntry]) -> None:
        new = [entry for entry in entries if _identity(document(entry)) not in self._shown]
        self._shown.update(_identity(document(entry)) for entry in new)
        if self._output not in TABLES:
            for entry in new:
                print_event(document(entry), self._output)
            return
        rows = [row(entry, wide=self._wide) for entry in new]
        if self._begun:
            self._table.add(rows)
        else:
            self._table.show(rows)
            self._begun = True


def _identity(shown: dict[str, Any]) -> str:
    return repr({name: value for name, value in shown.items() if name not in _VOLATILE})
