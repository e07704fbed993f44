"""`sully evictions --watch`: the rules that evict pods, and then each one that changes."""

from typing import Any

from sully.cli.client.inaction import warn_of_inactions
from sully.cli.client.options import NAMES, TABLES
from sully.cli.client.session import Session
from sully.cli.client.watching import (
    PendingChanges,
    acting_here,
    exposures_of,
    rest_after,
    watch_kinds,
)
from sully.cli.inspect.evictions.command import kinds_for, progress_in
from sully.cli.inspect.evictions.printer import UNRECORDED, columns, document, row
from sully.cli.output.formatting import rule_name
from sully.cli.output.printers import print_event
from sully.cli.output.tables import Table
from sully.views.evictions import EvictionProgress
from sully.views.inactions import EVICTING, inactions_in
from sully.views.kinds import RULES
from sully.views.watching import Caches

_DELETED = "deleted"
_VOLATILE = ("finishTime", "pods", "terminating", "terminatingPods")
"""Fields that change with every pod; the counts show that, too."""


async def watch(session: Session) -> int:
    async with watch_kinds(session, kinds_for(session), needed=(RULES,)) as caches:
        screen, changes = _Screen(session), changes_of(session, caches)
        plane = await acting_here(session)
        exposures = exposures_of(session, caches, plane)
        warn_of_inactions(session, inactions_in(caches, plane, EVICTING))
        while True:
            begun = session.clock.monotonic()
            screen.show(list(progress_in(session, exposures, caches, plane)))
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

    def show(self, progress: list[EvictionProgress]) -> None:
        current = {x.rule.metadata.name: _without_volatile(document(x)) for x in progress}
        changed = [
            x
            for x in progress
            if self._shown.get(x.rule.metadata.name) != current[x.rule.metadata.name]
        ]
        deleted = [name for name in self._shown if name not in current]
        self._shown = current
        if self._output in TABLES:
            self._print(changed, deleted)
            self._warn(changed)
            return
        if self._output == NAMES:
            for rule in changed:
                print(rule_name(rule.rule.metadata.name), flush=True)
            return
        for rule in changed:
            print_event(document(rule), self._output)
        for name in deleted:
            print_event({"rule": name, "state": _DELETED}, self._output)

    def _warn(self, changed: list[EvictionProgress]) -> None:
        if not self._warned and not all(x.complete or x.state == "inactive" for x in changed):
            self._warned = True
            self._session.warn(UNRECORDED)

    def _print(self, changed: list[EvictionProgress], deleted: list[str]) -> None:
        now = self._clock.now()
        rows = [row(x, now, wide=self._wide) for x in changed]
        shape = columns(wide=self._wide)
        rows += [[name, "-", _DELETED, *["-"] * (len(shape) - 3)] for name in deleted]
        if self._table is None:
            titled = not self._session.options.no_headers
            self._table = Table(shape, grows=True, titled=titled)
            self._table.show(rows)
        else:
            self._table.add(rows)


def _without_volatile(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name not in _VOLATILE}
