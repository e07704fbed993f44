"""Follows evictions by rules on the screen, from what the status of the rules says.

On a terminal one line is drawn again and again; in a pipe each step is a line.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


async def follow(session: Session, names: Sequence[str], rate: int | None) -> None:
    """Show how pods leave until none has to; Ctrl-C ends only the showing."""
    line = _Line(rate)
    try:
        while True:
            state = state_of(await _rules(session, names))
            line.show(state)
            if state.over:
                line.end(f"{number(state.evicted, 'pod')} evicted.")
                return
            await session.clock.sleep(LOOK_SECONDS)
    except asyncio.CancelledError:
        line.end(_still_at_work(names))
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
    first = names[0]
    more = f" (and {number(len(names) - 1, 'more rule')})" if len(names) > 1 else ""
    return (
        f"The rule {first}{more} stays, and pods go on leaving.\n"
        f"  to see it:   sully evictions --watch\n"
        f"  to stop it:  sully evictions pause {first}\n"
        f"  to go on:    sully evictions resume {first}\n"
        f"  to undo it:  kubectl delete devicetaintrule {' '.join(names)}"
    )


class _Line:
    def __init__(self, rate: int | None) -> None:
        self._rate = rate
        look = look_of(sys.stdout)
        self._width = look.width
        self._shown = ""

    def show(self, state: State) -> None:
        text = self._text(state)
        if not state.told or text == self._shown:
            return
        self._shown = text
        if self._width is None:
            print(text, flush=True)
        else:
            sys.stdout.write("\r" + text[: self._width - 1].ljust(self._width - 1))
            sys.stdout.flush()

    def end(self, text: str) -> None:
        if self._width is not None and self._shown:
            sys.stdout.write("\n")
        print(text, flush=True)

    def _text(self, state: State) -> str:
        total = state.pending + state.evicted
        left = f"{state.evicted}/{total} pods left"
        if state.paused:
            return f"{left}, paused"
        if state.pending and self._rate:
            left += f", {self._rate}/s, about {span(-(-state.pending // self._rate))} to go"
        if self._width is None or not total:
            return left
        full = BAR * state.evicted // total
        return f"[{'#' * full}{'.' * (BAR - full)}] {left}"
