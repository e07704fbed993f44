"""`sully evictions --watch`: the rules at work, and then each one that came further."""

from typing import Any

from sully.cli.client.calling import Session
from sully.cli.client.documents import show_line
from sully.cli.client.flags import NAMES, TABLES
from sully.cli.client.following import Caches, News, exposures_of, following, rest_after
from sully.cli.client.tables import Table
from sully.cli.inspect.evictionrows import UNRECORDED, columns, document, row
from sully.cli.inspect.evictions import full_name, kinds_for, progress_in
from sully.views.evictions import Progress
from sully.views.kinds import RULES

_LIFTED = "lifted"
_MOVING = ("finishTime", "pods", "leaving", "leavingPods")
"""What changes with every pod; the counts say it, too."""


async def watch(session: Session) -> int:
    """Show evictions until interrupted."""
    async with following(session, kinds_for(session), needed=(RULES,)) as caches:
        screen, news = _Screen(session), news_of(session, caches)
        exposures = exposures_of(session, caches)
        while True:
            begun = session.clock.monotonic()
            screen.show(list(progress_in(session, exposures, caches)))
            # Of each rule all is worked out anew.
            rest = rest_after(session.clock.monotonic() - begun)
            await news.take(session, caches, rest)


def news_of(session: Session, caches: Caches) -> News:
    """Return what tells that something may be different."""
    news = News()
    for kind in kinds_for(session):
        caches.of(kind).on_change(lambda *_: news.add("something"))
    return news


class _Screen:
    """Prints rules, and remembers how each was printed last."""

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
            show_line(document(each), self._output)
        for name in gone:
            show_line({"rule": name, "state": _LIFTED}, self._output)

    def _warn(self, changed: list[Progress]) -> None:
        if not self._warned and not all(each.complete for each in changed):
            self._warned = True
            self._session.warn(UNRECORDED)

    def _print(self, changed: list[Progress], gone: list[str]) -> None:
        now = self._clock.now()
        rows = [row(each, now, wide=self._wide) for each in changed]
        shape = columns(wide=self._wide)
        rows += [[name, "-", _LIFTED, *["-"] * (len(shape) - 3)] for name in gone]
        if self._table is None:
            titled = not self._session.options.no_headers
            self._table = Table(shape, grows=True, titled=titled)
            self._table.show(rows)
        else:
            self._table.add(rows)


def _lasting(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name not in _MOVING}
