"""Follows evictions by rules on the screen, from what the status of the rules says.

Where another controller evicts, its status is late and says less, so the pods themselves are
followed. bar.py draws it.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TextIO

from sully.cli.change.bar import Bar, State
from sully.cli.client.calling import Session
from sully.cli.client.words import number

if TYPE_CHECKING:
    from sully.api.resource.types import DeviceTaintRule
    from sully.client.transport import Key
    from sully.machinery.meta import Condition
    from sully.views.devices.exposures import Exposures

LOOK_SECONDS = 0.5
"""The status is written at most once a second."""
PATIENCE = timedelta(minutes=1)
"""How long a server may be away; one that was started anew has no more to do."""
_FEW = 3
"""So many rules are asked for one by one, more of them as a list."""


def state_of(rules: "Sequence[DeviceTaintRule]", before: int = 0) -> State:
    """Read the status of rules; of those that left so many did `before` anybody looks."""
    from sully.domain.eviction.status import CONDITION, EVICTED, PAUSED, evicted_before

    told, pending, evicted, paused = True, 0, 0, False
    rate = rules[0].spec.taint.evictions_per_second if rules else None
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
    return State(told, pending, max(0, evicted - before), paused, rate=rate, lifted=not rules)


def _number(condition: "Condition | None") -> int:
    from sully.domain.eviction.status import evicted_before

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
    group: str = ""
    """The label that they have in common and no other rule has; empty if there is none."""
    before: int = 0
    """How many pods had left because of the rules when they were changed."""
    expires: bool = False
    """Whether the rules end by themselves, and the plan knows of every pod."""


Look = Callable[[], Awaitable[State]]
"""Finds out how far it is."""


async def follow(session: Session, what: Followed, out: TextIO = sys.stdout) -> bool:
    """Show how pods leave until none has to; say whether all left that were to.

    Ctrl-C ends only the showing.
    """
    from sully.cli.client.evictor import sully_evicts_at
    from sully.client.transport import UnreachableError
    from sully.machinery.errors import ServiceUnavailable

    line = Bar(session, what, out)
    ours = True
    try:
        ours = await sully_evicts_at(session)
        if ours:
            return await watch(session, line, lambda: _by_status(session, what))
        return await _by_pods(session, what, line)
    except (asyncio.CancelledError, UnreachableError, ServiceUnavailable):
        line.end(still_at_work(what.names, what.group, pausable=ours))
        raise


async def watch(session: Session, line: Bar, look: Look) -> bool:
    """Show what is found out until it is over; say whether all left that were to.

    A server may be away for a while meanwhile.
    """
    while True:
        state = await _patiently(session, line, look)
        line.show(state)
        if state.over:
            line.end(outcome(state))
            return not state.staying
        await session.clock.sleep(LOOK_SECONDS)


def outcome(state: State) -> str:
    """Say what came of it in the end."""
    some = f", {state.leaving} still shutting down" if state.leaving else ""
    stay = f"; {number(state.staying, 'pod')} did not leave" if state.staying else ""
    if state.lifted:
        return f"The rule is gone: somebody lifted it, or its time is over{stay}."
    if state.outlasting:
        pods = number(state.outlasting, "pod")
        stay += f"; {pods} may stay: tolerations last longer than the taint"
    return f"{number(state.evicted, 'pod')} evicted{some}{stay}."


async def _patiently(session: Session, line: Bar, look: Look) -> State:
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


async def _by_status(session: Session, what: Followed) -> State:
    state = measured(state_of(await _rules(session, what.names), what.before), what)
    return await with_stragglers(session, what, state)


def measured(state: State, what: Followed) -> State:
    """Return how far rules have come with what was planned for them.

    Who tolerates the taint for longer than it stays has to leave by the status, and never will.
    """
    left = state.told and not state.paused and state.evicted >= len(what.pods)
    outlasting = state.pending if what.expires and left else 0
    return replace(state, pending=state.pending - outlasting, outlasting=outlasting)


async def with_stragglers(session: Session, what: Followed, state: State) -> State:
    """Find out, when it is over, who of those that were to leave is still there."""
    from sully.machinery.errors import Forbidden
    from sully.views.kinds import PODS
    from sully.views.snapshot.loading import list_all

    if not state.over:
        return state
    namespaces = sorted({each.namespace for each in what.pods})
    try:
        pods = [pod for each in namespaces for pod in await list_all(session.transport, PODS, each)]
    except Forbidden:
        return state
    uids = set(what.pods.values())
    there = [each for each in pods if each.metadata.uid in uids and not each.finished]
    leaving = sum(each.leaving for each in there)
    staying = len(there) - leaving
    if staying and state.outlasting:
        # Others left in their stead, so it is not over.
        return replace(state, pending=state.outlasting, outlasting=0)
    return replace(state, leaving=max(state.leaving, leaving), staying=staying)


async def _by_pods(session: Session, what: Followed, line: Bar) -> bool:
    from sully.cli.client.following import exposures_of, following
    from sully.views.kinds import CLAIMS, PODS, RULES
    from sully.views.snapshot.kinds import DEVICES

    async with following(session, DEVICES, needed=(RULES,)) as caches:
        if caches.gap(PODS) is not None or caches.gap(CLAIMS) is not None:
            # Who sees no pods has nothing but the status, late as it is.
            return await watch(session, line, lambda: _by_status(session, what))
        leavers = Leavers(exposures_of(session, caches), what.pods)

        async def look() -> State:
            rules = map(leavers.exposures.inventory.rule, what.names)
            there = [each for each in rules if each is not None]
            return await with_stragglers(session, what, measured(leavers.state(there), what))

        return await watch(session, line, look)


class Leavers:
    """Who has had to leave since somebody looks, from the pods themselves."""

    def __init__(self, exposures: "Exposures", planned: "Mapping[Key, str]") -> None:
        self.exposures = exposures
        self._seen = {uid: key for key, uid in planned.items()}
        """By uid; also those of the plan, for an evictor may be faster than whoever looks."""

    def state(self, rules: "Sequence[DeviceTaintRule]") -> State:
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
        rate = rules[0].spec.taint.evictions_per_second if rules else None
        return State(
            True, len(pending), gone + leaving, False, leaving, rate=rate, lifted=not rules
        )

    def _note(self, keys: "Iterable[Key]") -> None:
        for key in keys:
            pod = self.exposures.usage.pod(key)
            if pod is not None:
                self._seen[pod.metadata.uid] = key


async def _rules(session: Session, names: Sequence[str]) -> "list[DeviceTaintRule]":
    from sully.client.transport import Key
    from sully.machinery.errors import NotFound
    from sully.views.kinds import RULES
    from sully.views.snapshot.loading import list_all

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


def still_at_work(names: Sequence[str], group: str = "", *, pausable: bool) -> str:
    """Say what goes on after Ctrl-C, and how to stop it; not every evictor heeds a pause."""
    from sully.domain.devices.rules import TOGETHER

    which = f"{len(names)} rules stay" if len(names) > 1 else f"The rule {names[0]} stays"
    rules = f"-l {TOGETHER}={group}" if group else " ".join(names)
    pause = (
        f"  to stop it:  sully evictions pause {rules}\n"
        f"  to go on:    sully evictions resume {rules}\n"
        if pausable
        else ""
    )
    return (
        f"{which}, and pods go on leaving.\n"
        f"  to see it:   sully evictions --watch\n"
        f"{pause}"
        f"  to {'undo' if pausable else 'stop'} it:  kubectl delete devicetaintrule {rules}"
    )
