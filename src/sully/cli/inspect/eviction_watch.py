"""`sully evictions --watch`: the rules that evict pods, and then each one that changes."""

from typing import Any

from sully.cli.client.options import NAMES, TABLES
from sully.cli.client.printers import print_event
from sully.cli.client.session import Session
from sully.cli.client.tables import Table
from sully.cli.client.watching import (
    Caches,
    PendingChanges,
    eviction_here,
    exposures_of,
    rest_after,
    watch_kinds,
)
from sully.cli.inspect.eviction_printer import UNRECORDED, columns, document, row
from sully.cli.inspect.evictions import full_name, kinds_for, progress_in
from sully.views.evictions import Progress
from sully.views.kinds import RULES

_DELETED = "deleted"
_DELETED_STATE = "lifted"
"""The same in documents, where it is promised to scripts."""
_MOVING = ("finishTime", "pods", "leaving", "leavingPods")
"""What changes with every pod; the counts show it, too."""


async def watch(session: Session) -> int:
    async with watch_kinds(session, kinds_for(session), needed=(RULES,)) as caches:
        screen, changes = _Screen(session), changes_of(session, caches)
        exposures = exposures_of(session, caches, await eviction_here(session))
        while True:
            begun = session.clock.monotonic()
            screen.show(list(progress_in(session, exposures, caches)))
            # Every rule is computed again.
            rest = rest_after(session.clock.monotonic() - begun)
            await changes.wait(session, caches, rest)


def changes_of(session: Session, caches: Caches) -> PendingChanges:
    changes = PendingChanges()
    for kind in kinds_for(session):
        caches.of(kind).on_change(lambda *_: changes.add("something"))
    return changes


class _Screen:
    """Prints rules that differ from what was printed last."""

    def __init__(self, session: Session) -> None:
        self._clock = session.clock
        self._output = session.options.output
        self._wide = self._output == "wide"
        self._table: Table | None = None
        self._shown: dict[str, dict[str, Any]] = {}
        self._session = session
        self._warned = False

    def show(self, progress: list[Progress]) -> None:
        found = {each.rule.metadata.name: _lasting(document(each)) for each in progress}
        changed = [
            each
            for each in progress
            if self._shown.get(each.rule.metadata.name) != found[each.rule.metadata.name]
        ]
        gone = [name for name in self._shown if name not in found]
        self._shown = found
        if self._output in TABLES:
            self._print(changed, gone)
            self._warn(changed)
            return
        if self._output == NAMES:
            for each in changed:
                print(full_name(each), flush=True)
            return
        for each in changed:
            print_event(document(each), self._output)
        for name in gone:
            print_event({"rule": name, "state": _DELETED_STATE}, self._output)

    def _warn(self, changed: list[Progress]) -> None:
        if not self._warned and not all(each.complete for each in changed):
            self._warned = True
            self._session.warn(UNRECORDED)

    def _print(self, changed: list[Progress], gone: list[str]) -> None:
        now = self._clock.now()
        rows = [row(each, now, wide=self._wide) for each in changed]
        shape = columns(wide=self._wide)
        rows += [[name, "-", _DELETED, *["-"] * (len(shape) - 3)] for name in gone]
        if self._table is None:
            titled = not self._session.options.no_headers
            self._table = Table(shape, grows=True, titled=titled)
            self._table.show(rows)
        else:
            self._table.add(rows)


def _lasting(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name not in _MOVING}
