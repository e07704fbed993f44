"""Follows evictions by rules on the screen, from what the status of the rules says.

Where another controller evicts, its status is late and says less, so the pods themselves are
followed. bar.py draws it.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TextIO

from sully.cli.acting.bar import Bar, State
from sully.cli.client.calling import Session
from sully.cli.client.words import number

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.client.transport import Key
    from sully.machinery.meta import Condition
    from sully.views.exposures import Exposures

LOOK_SECONDS = 0.5
"""The status is written at most once a second."""
PATIENCE = timedelta(minutes=1)
"""How long a server may be away; one that was started anew has no more to do."""
_FEW = 3
"""So many rules are asked for one by one, more of them as a list."""


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
    pods: "Mapping[Key, str]" = field(default_factory=dict)
    """Who leaves, by the plan, and the uid of each."""


Look = Callable[[], Awaitable[State | None]]
"""Finds out how far it is; None: the rules are gone."""


async def follow(session: Session, what: Followed, out: TextIO = sys.stdout) -> None:
    """Show how pods leave until none has to; Ctrl-C ends only the showing."""
    from sully.cli.client.evictor import sully_evicts_at
    from sully.client.transport import UnreachableError
    from sully.machinery.errors import ServiceUnavailable

    line = Bar(session, what, out)
    ours = True
    try:
        ours = await sully_evicts_at(session)
        if ours:
            await watch(session, line, lambda: _by_status(session, what))
        else:
            await _by_pods(session, what, line)
    except (asyncio.CancelledError, UnreachableError, ServiceUnavailable):
        line.end(still_at_work(what.names, pausable=ours))
        raise


async def watch(session: Session, line: Bar, look: Look) -> None:
    """Show what is found out until it is over; a server may be away for a while meanwhile."""
    while True:
        state = await _patiently(session, line, look)
        if state is None:
            line.end("The rule is gone: somebody lifted it, or its time is over.")
            return
        line.show(state)
        if state.over:
            some = f", {state.leaving} still shutting down" if state.leaving else ""
            line.end(f"{number(state.evicted, 'pod')} evicted{some}.")
            return
        await session.clock.sleep(LOOK_SECONDS)


async def _patiently(session: Session, line: Bar, look: Look) -> State | None:
    from sully.client.transport import UnreachableError
    from sully.machinery.errors import ServiceUnavailable

    until = session.clock.now() + PATIENCE
    while True:
        try:
            return await look()
        except (UnreachableError, ServiceUnavailable):
            if session.clock.now() > until:
                raise
            line.wait()
            await session.clock.sleep(LOOK_SECONDS)


async def _by_status(session: Session, what: Followed) -> State | None:
    rules = await _rules(session, what.names)
    return state_of(rules) if rules else None


async def _by_pods(session: Session, what: Followed, line: Bar) -> None:
    from sully.cli.client.following import exposures_of, following
    from sully.views.kinds import CLAIMS, PODS, RULES
    from sully.views.snapshotkinds import DEVICES

    async with following(session, DEVICES, needed=(RULES,)) as caches:
        if caches.gap(PODS) is not None or caches.gap(CLAIMS) is not None:
            # Who sees no pods has nothing but the status, late as it is.
            await watch(session, line, lambda: _by_status(session, what))
            return
        leavers = Leavers(exposures_of(session, caches), what.pods)

        async def look() -> State | None:
            rules = map(leavers.exposures.inventory.rule, what.names)
            there = [each for each in rules if each is not None]
            return leavers.state(there) if there else None

        await watch(session, line, look)


class Leavers:
    """Who has had to leave since somebody looks, from the pods themselves."""

    def __init__(self, exposures: "Exposures", planned: "Mapping[Key, str]") -> None:
        self.exposures = exposures
        self._seen = {uid: key for key, uid in planned.items()}
        """By uid; also those of the plan, for an evictor may be faster than whoever looks."""

    def state(self, rules: "Iterable[DeviceTaintRule]") -> State:
        """Say how far rules have come together."""
        pending: set[Key] = set()
        for rule in rules:
            due = self.exposures.due(rule)
            pending.update(due)
            self._note((*due, *self.exposures.leaving(rule)))
        gone = leaving = 0
        for uid, key in self._seen.items():
            pod = self.exposures.usage.pod(key)
            if pod is None or pod.metadata.uid != uid:
                gone += 1
            elif pod.leaving:
                # It may have let go of its devices already.
                leaving += 1
        return State(True, len(pending), gone + leaving, False, leaving)

    def _note(self, keys: "Iterable[Key]") -> None:
        for key in keys:
            pod = self.exposures.usage.pod(key)
            if pod is not None:
                self._seen[pod.metadata.uid] = key


async def _rules(session: Session, names: Sequence[str]) -> "list[DeviceTaintRule]":
    from sully.client.transport import Key
    from sully.machinery.errors import NotFound
    from sully.views.kinds import RULES
    from sully.views.loading import list_all

    if len(names) > _FEW:
        wanted = set(names)
        rules = await list_all(session.transport, RULES)
        return [each for each in rules if each.metadata.name in wanted]
    found = []
    for name in names:
        try:
            found.append(await session.transport.get(RULES, Key("", name)))
        except NotFound:
            # Somebody lifted it; it makes nobody leave any more.
            continue
    return found


def still_at_work(names: Sequence[str], *, pausable: bool) -> str:
    """Say what goes on after Ctrl-C, and how to stop it; not every evictor heeds a pause."""
    from sully.domain.rules import TOGETHER

    several = len(names) > 1
    which = f"{len(names)} rules stay" if several else f"The rule {names[0]} stays"
    shared = _shared(names) if several else ""
    meant = f"'{shared}-*'" if shared else " ".join(names)
    rules = f"-l {TOGETHER}={shared}" if shared else " ".join(names)
    pause = (
        f"  to stop it:  sully evictions pause {meant}\n"
        f"  to go on:    sully evictions resume {meant}\n"
        if pausable
        else ""
    )
    return (
        f"{which}, and pods go on leaving.\n"
        f"  to see it:   sully evictions --watch\n"
        f"{pause}"
        f"  to {'undo' if pausable else 'stop'} it:  kubectl delete devicetaintrule {rules}"
    )


def _shared(names: Sequence[str]) -> str:
    """Return what rules were made together under; empty if they were not: those begin alike."""
    shared = {each.rpartition("-")[0] for each in names}
    return shared.pop() if len(shared) == 1 else ""
