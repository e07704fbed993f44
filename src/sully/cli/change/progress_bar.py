"""How far evictions are, on the terminal: a bar that is redrawn, or a line per step in a pipe.

progress.py finds out what it shows.
"""

from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, TextIO

from sully.cli.client.session import Session
from sully.cli.output.formatting import duration
from sully.cli.output.tables import table_layout_of
from sully.cli.output.text import printable
from sully.cli.process import unguarded

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from sully.api.resource.eviction_rate import EvictionRate
    from sully.cli.change.progress import FollowedEviction

BAR = 30
SHORTEST = 5
"""A narrow terminal shows no bar rather than a shorter one."""
UNREACHABLE = "the server does not answer, retrying"


@dataclass(frozen=True, slots=True)
class BarState:
    """How far rules have come together."""

    observed: bool
    """Whether the status of all rules is up to date."""
    pending: int
    evicted: int
    paused: bool
    terminating: int = 0
    """How many evicted pods are still terminating, where that is known."""
    rate: "EvictionRate | None" = None
    """None: no limit."""
    tolerating: int = 0
    """How many pods tolerate the taint for longer than it lasts, and so are not evicted."""
    remaining: int = 0
    """How many pods of the plan were not evicted, once it is over."""
    deleted: bool = False
    """Whether the rules are deleted."""
    counted_twice: int = 0
    """How many evicted pods are still among the pending: the status may be older than records."""

    @property
    def over(self) -> bool:
        return self.observed and not self.pending


class ProgressBar:
    """Shows how far an eviction is, and finally its result."""

    def __init__(self, session: Session, eviction: "FollowedEviction", out: TextIO) -> None:
        self._clock = session.clock
        self._eviction = eviction
        self._out = out
        self._shown = ""
        self._live: Live | None = None
        # Pods that tolerate the taint are evicted later, whatever the rate is.
        by_rate = _seconds_at(eviction.rate, len(eviction.pods), 0)
        limited = session.clock.now() + timedelta(seconds=by_rate + 1)
        self._tolerated = eviction.ends is not None and eviction.ends > limited

    @property
    def _width(self) -> int | None:
        """Return the width of the terminal, which may change; None in a pipe."""
        return table_layout_of(self._out).width

    def show(self, state: BarState) -> None:
        """Draw how far it is, if that has changed."""
        if state.observed and (state.pending or state.evicted):
            self._draw(self.text(state), state)

    def wait(self) -> None:
        self._draw(UNREACHABLE)

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        if self._live is None:
            print(text, file=self._out, flush=True)
        else:
            self._live.console.print(printable(text), markup=False, soft_wrap=True)

    def finish(self, text: str) -> None:
        """Leave the bar as it is, and print a text below it."""
        self.close()
        print(text, file=self._out, flush=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self, text: str, state: BarState | None = None) -> None:
        if text == self._shown:
            return
        self._shown = text
        width = self._width
        if width is None:
            print(text, file=self._out, flush=True)
        else:
            total = self._total(state) if state is not None else 0
            self._redraw(_line(text, state, total, width), width)

    def _redraw(self, line: "RenderableType", width: int) -> None:
        # A late import: in a pipe nothing is drawn.
        from rich.console import Console
        from rich.live import Live

        if self._live is None:
            console = Console(file=unguarded(self._out), force_terminal=True, highlight=False)
            self._live = Live(
                console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
        self._live.console.width = width
        self._live.update(line, refresh=True)

    def text(self, state: BarState) -> str:
        """Return how far it is, as text."""
        total = self._total(state)
        text = f"{state.evicted}/{total} pods evicted"
        if state.paused:
            return f"{text}, paused"
        waits = state.pending and state.evicted < total
        return text + self._remaining(state) if waits else text

    def _total(self, state: BarState) -> int:
        """Return how many pods have to be evicted: those of the plan, unless there are more."""
        different = state.pending + state.evicted - state.counted_twice
        return max(different, len(self._eviction.pods))

    def _remaining(self, state: BarState) -> str:
        rate, ends = state.rate, self._eviction.ends
        by_rate = _seconds_at(rate, state.pending, state.evicted)
        # The rate of the rule may have changed since; the plan only knows the first one.
        planned = rate == self._eviction.rate or self._tolerated
        left = (ends - self._clock.now()).total_seconds() if ends is not None else 0
        by_plan = left if planned else 0
        text = f", {rate}" if rate else ""
        # In a pipe each text is a line, so a countdown would fill it.
        if self._width is None:
            return text
        return f"{text}, about {duration(max(1, by_rate, ceil(by_plan)))} left"


def _line(text: str, state: BarState | None, total: int, width: int) -> "RenderableType":
    from rich.progress_bar import ProgressBar as RichBar
    from rich.table import Table
    from rich.text import Text

    label = Text(text, no_wrap=True, overflow="crop")
    length = min(BAR, width - len(text) - 2)
    if state is None or length < SHORTEST:
        return label
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_row(RichBar(total=total, completed=state.evicted, width=length), label)
    return row


def _seconds_at(rate: "EvictionRate | None", pending: int, evicted: int) -> int:
    """Return how long evictions take at a rate, after the burst."""
    if rate is None:
        return 0
    limited = max(0, pending - max(0, rate.burst - evicted))
    return ceil(limited / rate.per_second)
