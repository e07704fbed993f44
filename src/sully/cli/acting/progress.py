"""Follows evictions by rules on the screen, from what the status of the rules says.

On a terminal one line is drawn again and again; in a pipe each step is a line.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING, TextIO

from sully.cli.client.calling import Session
from sully.cli.client.tables import look_of
from sully.cli.client.words import number, span

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.machinery.meta import Condition

LOOK_SECONDS = 0.5
"""The status is written at most once a second."""
BAR = 30


@dataclass(frozen=True, slots=True)
class State:
    """How far rules have come together."""

    told: bool
    """Whether the status of all says anything about what they are now."""
    pending: int
    evicted: int
    paused: bool

    @property
    def over(self) -> bool:
        """Say whether nobody has to leave any more."""
        return self.told and not self.pending


def state_of(rules: "Sequence[DeviceTaintRule]") -> State:
    """Read the status of rules."""
    from sully.domain.evictionstatus import CONDITION, EVICTED, PAUSED, evicted_before

    told, pending, evicted, paused = True, 0, 0, False
    for rule in rules:
        found = {each.type: each for each in rule.status.conditions}
        said = found.get(CONDITION)
        if said is None or said.observed_generation != rule.metadata.generation:
            told = False
            continue
        if said.status == "True":
            pending += evicted_before(said.message)
        evicted += _number(found.get(EVICTED))
        paused = paused or PAUSED in found
    return State(told, pending, evicted, paused)


def _number(condition: "Condition | None") -> int:
    from sully.domain.evictionstatus import evicted_before

    return evicted_before(condition.message) if condition is not None else 0


@dataclass(frozen=True, slots=True)
class Followed:
    """The rules that are followed, and what was planned for them."""

    names: Sequence[str]
    rate: int | None
    """How many pods may leave in a second; None: any number."""
    ends: datetime | None = None
    """When the last pod leaves, by the plan: pods may tolerate the taint for a while."""


async def follow(session: Session, what: Followed, out: TextIO = sys.stdout) -> None:
    """Show how pods leave until none has to; Ctrl-C ends only the showing."""
    line = _Line(session, what, out)
    try:
        while True:
            rules = await _rules(session, what.names)
            state = state_of(rules)
            line.show(state)
            if not rules:
                line.end("The rule is gone: somebody lifted it, or its time is over.")
                return
            if state.over:
                line.end(f"{number(state.evicted, 'pod')} evicted.")
                return
            await session.clock.sleep(LOOK_SECONDS)
    except asyncio.CancelledError:
        line.end(_still_at_work(what.names))
        raise


async def _rules(session: Session, names: Sequence[str]) -> "list[DeviceTaintRule]":
    from sully.client.transport import Key
    from sully.machinery.errors import NotFound
    from sully.views.kinds import RULES

    found = []
    for name in names:
        try:
            found.append(await session.transport.get(RULES, Key("", name)))
        except NotFound:
            # Somebody lifted it; it makes nobody leave any more.
            continue
    return found


def _still_at_work(names: Sequence[str]) -> str:
    several = len(names) > 1
    which = f"{len(names)} rules stay" if several else f"The rule {names[0]} stays"
    meant = _glob(names) if several else names[0]
    return (
        f"{which}, and pods go on leaving.\n"
        f"  to see it:   sully evictions --watch\n"
        f"  to stop it:  sully evictions pause {meant}\n"
        f"  to go on:    sully evictions resume {meant}\n"
        f"  to undo it:  kubectl delete devicetaintrule {' '.join(names)}"
    )


def _glob(names: Sequence[str]) -> str:
    """Return how to name rules together: those of one taint begin alike."""
    shared = {each.rpartition("-")[0] for each in names}
    return f"'{shared.pop()}-*'" if len(shared) == 1 else " ".join(names)


class _Line:
    def __init__(self, session: Session, what: Followed, out: TextIO) -> None:
        self._clock = session.clock
        self._what = what
        self._out = out
        self._width = look_of(out).width
        self._shown = ""

    def show(self, state: State) -> None:
        text = self._text(state)
        nothing = not state.pending and not state.evicted
        if not state.told or nothing or text == self._shown:
            return
        self._shown = text
        if self._width is None:
            print(text, file=self._out, flush=True)
        else:
            self._out.write("\r" + text[: self._width - 1].ljust(self._width - 1))
            self._out.flush()

    def end(self, text: str) -> None:
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
        full = BAR * state.evicted // total
        return f"[{'#' * full}{'.' * (BAR - full)}] {text}"

    def _pace(self, state: State) -> str:
        rate, ends = self._what.rate, self._what.ends
        by_rate = -(-state.pending // rate) if rate else 0
        by_plan = (ends - self._clock.now()).total_seconds() if ends is not None else 0
        pace = f", {rate}/s" if rate else ""
        # In a pipe each text is a line, so one that counts down would fill it.
        if self._width is None:
            return pace
        return f"{pace}, about {span(max(1, by_rate, ceil(by_plan)))} to go"
