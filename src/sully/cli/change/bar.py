"""One line on the screen that says how far evictions are, drawn again and again.

On a terminal it is a bar; in a pipe each step is a line. progress.py finds out what it shows.
"""

from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, TextIO

from sully.cli.client.calling import Session
from sully.cli.client.tables import look_of
from sully.cli.client.words import span

if TYPE_CHECKING:
    from sully.cli.change.progress import Followed

BAR = 30
SHORTEST = 5
"""A bar that is shorter than this shows nothing; a narrow terminal has none."""
AWAY = "the server does not answer; trying again"


@dataclass(frozen=True, slots=True)
class State:
    """How far rules have come together."""

    told: bool
    """Whether the status of all says anything about what they are now."""
    pending: int
    evicted: int
    paused: bool
    leaving: int = 0
    """How many of those that were evicted are still shutting down, where that is looked at."""
    rate: int | None = None
    """How many pods may leave in a second, as the rules say now; None: any number."""
    outlasting: int = 0
    """How many tolerate the taint for longer than it stays, so that they need not leave."""
    staying: int = 0
    """How many were to leave by the plan and do not, once it is over."""
    lifted: bool = False
    """Whether the rules are gone."""

    @property
    def over(self) -> bool:
        """Say whether nobody has to leave any more."""
        return self.told and not self.pending


class Bar:
    """Shows how far it is, and at the end what came of it."""

    def __init__(self, session: Session, what: "Followed", out: TextIO) -> None:
        self._clock = session.clock
        self._what = what
        self._out = out
        self._shown = ""
        # Pods that tolerate the taint leave when they do, however fast the others go.
        by_pace = _seconds_at(what.rate, len(what.pods), 0)
        paced = session.clock.now() + timedelta(seconds=by_pace + 1)
        self._tolerated = what.ends is not None and what.ends > paced

    @property
    def _width(self) -> int | None:
        """Return how wide the terminal is now: people change that while they wait."""
        return look_of(self._out).width

    def show(self, state: State) -> None:
        """Draw how far it is, if that is another than before."""
        if state.told and (state.pending or state.evicted):
            self._draw(self._text(state))

    def wait(self) -> None:
        """Say that nobody knows how far it is now."""
        self._draw(AWAY)

    def _draw(self, text: str) -> None:
        if text == self._shown:
            return
        self._shown = text
        width = self._width
        if width is None:
            print(text, file=self._out, flush=True)
        else:
            self._out.write("\r" + text[: width - 1].ljust(width - 1))
            self._out.flush()

    def end(self, text: str) -> None:
        """Leave the line as it is, and say something below it."""
        if self._width is not None and self._shown:
            self._out.write("\n")
        print(text, file=self._out, flush=True)

    def _text(self, state: State) -> str:
        total = state.pending + state.evicted
        text = f"{state.evicted}/{total} pods evicted"
        if state.paused:
            text += ", paused"
        elif state.pending:
            text += self._pace(state)
        if self._width is None or not total:
            return text
        length = min(BAR, self._width - len(text) - len("[] ") - 1)
        if length < SHORTEST:
            return text
        full = length * state.evicted // total
        return f"[{'#' * full}{'.' * (length - full)}] {text}"

    def _pace(self, state: State) -> str:
        rate, ends = state.rate, self._what.ends
        by_rate = _seconds_at(rate, state.pending, state.evicted)
        # Somebody may have given the rule another pace since; the plan knows only of the first.
        planned = rate == self._what.rate or self._tolerated
        left = (ends - self._clock.now()).total_seconds() if ends is not None else 0
        by_plan = left if planned else 0
        pace = f", {rate}/s" if rate else ""
        # In a pipe each text is a line, so one that counts down would fill it.
        if self._width is None:
            return pace
        return f"{pace}, about {span(max(1, by_rate, ceil(by_plan)))} to go"


def _seconds_at(rate: int | None, pending: int, evicted: int) -> int:
    """Return how long pods take at a pace, after those that may leave at once."""
    from sully.domain.eviction.rates import BURST

    paced = max(0, pending - max(0, BURST - evicted))
    return -(-paced // rate) if rate else 0
