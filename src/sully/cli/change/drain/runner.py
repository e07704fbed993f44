"""Runs a drain: passes events to the drain core, and executes its effects through the API."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from sully.cli.change.drain.events import DrainEvents
from sully.cli.change.drain.report import DrainBar, outcome_text
from sully.cli.change.output import text_stream
from sully.cli.change.plan.results import EXIT_EVICTION_LOOP, EXIT_UNSCHEDULABLE
from sully.cli.change.progress import POLL_SECONDS
from sully.cli.client.session import Session
from sully.cli.client.watching import watch_kinds
from sully.cli.command import CommandError
from sully.cli.output.formatting import duration
from sully.client.evictions import evict_for_drain, refusal_text
from sully.client.transport import TRANSIENT, Key
from sully.domain.devices.taints import NO_EXECUTE
from sully.domain.drain.core import Drain
from sully.domain.drain.messages import (
    RETRY,
    DrainOutcome,
    EvictDrainPod,
    EvictionsPostponed,
    PodEvicted,
    PodsChanged,
    RulesDeleted,
    StateChanged,
    Stop,
    UseNoExecute,
    WaitUntil,
)
from sully.domain.drain.rules import STATE, decode_state, encode_state
from sully.machinery.errors import Conflict, NotFound
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, RULES
from sully.views.snapshot.kinds import PODS

if TYPE_CHECKING:
    from sully.domain.drain.messages import DrainPod, Effect, Event
    from sully.machinery.meta import ObjectMeta
    from sully.planning.simulation.drain import DrainRequest
    from sully.views.watching import Caches

CONFLICT_SECONDS = 0.01
"""When to try again after another has changed the rule that carries the state."""
OUTAGE = timedelta(minutes=10)
"""How long a drain waits for a server that is unreachable."""
MAX_SAVED = 100
"""How many of the last states are stored; a watch is never that late."""


class DrainRunner:
    """Executes one drain."""

    def __init__(self, session: Session, rules: Sequence[str], request: "DrainRequest") -> None:

        self._session = session
        self._rules = sorted(rules)
        self._drained = request.drained
        self._settings = request.settings
        self._core = Drain(request.settings, session.clock.now(), request.state)
        self._version = ""
        """The newest resourceVersion of the rule that carries the state."""
        self._saved = [encode_state(request.state)]
        """The states that this run has read or written."""
        self._bar = DrainBar(session, text_stream(session))
        self._events = DrainEvents(session, self._rules)

    async def run(self) -> int:
        """Drain until the core stops; return the exit code."""

        kinds = (RULES, CLAIMS, PODS)
        stop = None
        try:
            async with watch_kinds(self._session, kinds, needed=kinds) as caches:
                usage = Usage(pods=caches.of(PODS), claims=caches.of(CLAIMS))
                stop = await self._loop(caches, usage)
        finally:
            # Also after Ctrl-C, and if the server does not answer any more.
            self._finish(outcome_text(self._session, self._core.progress(), stop))
        return _exit_code(stop)

    def _finish(self, text: str) -> None:
        try:
            self._bar.show_evicted(self._core.evicted_pods())
            self._bar.finish(text)
        except BrokenPipeError:
            # The reader of the output is gone (`| grep -m1`).
            self._session.warn(text)
            raise

    async def _loop(self, caches: "Caches", usage: "Usage") -> "Stop":

        while True:
            await self._through_outage(caches)
            self._observe(caches, usage)
            effects = self._core.decide(self._session.clock.now())
            last = effects[-1]
            if isinstance(last, Stop):
                return last
            await self._execute(effects)
            self._bar.show_evicted(self._core.evicted_pods())
            self._bar.show_drain(self._core.progress(), evicts=self._settings.evicts)
            if len(effects) == 1:
                await self._wait(last)

    async def _through_outage(self, caches: "Caches") -> None:
        """Wait while the server is unreachable: the caches do not show what happens meanwhile."""
        clock = self._session.clock
        began = clock.now()
        while caches.server_unavailable:
            if clock.now() - began >= OUTAGE:
                raise CommandError(
                    f"{self._session.server} was unreachable for {duration(OUTAGE.total_seconds())}"
                )
            await clock.sleep(POLL_SECONDS)

    def _observe(self, caches: "Caches", usage: "Usage") -> None:

        rules = {rule.metadata.name: rule for rule in caches.of(RULES).values()}
        if not rules.keys() >= set(self._rules):
            self._handle(RulesDeleted())
        else:
            self._observe_state(rules[self._rules[0]].metadata)
        pods = list(caches.of(PODS).values())
        self._handle(PodsChanged(self._drained.observe(usage, pods, self._core.workloads())))

    def _observe_state(self, metadata: "ObjectMeta") -> None:
        """Notice that another run of the same drain has saved its state; the rate is for both."""

        state = decode_state([metadata.annotations])
        text = encode_state(state)
        if text in self._saved[:-1]:
            # The watch has not delivered what this run has written.
            return
        self._version = metadata.resource_version
        if text != self._saved[-1]:
            self._saved.append(text)
            self._handle(StateChanged(state))

    def _handle(self, event: "Event") -> None:
        self._core.handle(event, self._session.clock.now())

    async def _wait(self, effect: "Effect") -> None:

        wait = POLL_SECONDS
        if isinstance(effect, WaitUntil) and effect.time is not None:
            until = (effect.time - self._session.clock.now()).total_seconds()
            wait = min(wait, max(0.0, until))
        await self._session.clock.sleep(wait)

    # -- effects ----------------------------------------------------------------------------------

    async def _execute(self, effects: "Sequence[Effect]") -> None:

        pods = [effect.pod for effect in effects if isinstance(effect, EvictDrainPod)]
        # First: a run that is killed must not be followed by one that is too fast.
        if pods and (wait := await self._save()):
            self._handle(EvictionsPostponed(tuple(pod.uid for pod in pods)))
            await self._session.clock.sleep(wait)
            return
        for pod in pods:
            answer = await self._evict(pod)
            self._handle(answer)
            if isinstance(answer, PodEvicted):
                await self._events.record(pod)
        if any(isinstance(effect, UseNoExecute) for effect in effects):
            await self._use_no_execute()

    async def _save(self) -> float:
        """Save the state; return how many seconds to wait before another try, 0 if it is saved."""

        text = encode_state(self._core.state(self._session.clock.now()))
        patch = {"metadata": {"resourceVersion": self._version, "annotations": {STATE: text}}}
        key = Key("", self._rules[0])
        try:
            saved = await self._session.transport.patch(RULES, key, patch)
        except Conflict:
            # The status has changed, or another run of the same drain has saved its state.
            return await self._read_state(key)
        except NotFound:
            self._handle(RulesDeleted())
            return CONFLICT_SECONDS
        except TRANSIENT as error:
            self._bar.show_waiting(refusal_text(error))
            return RETRY.total_seconds()
        self._version = saved.metadata.resource_version
        self._saved = [*self._saved[-MAX_SAVED:], text]
        return 0.0

    async def _read_state(self, key: "Key") -> float:
        """Read the state again, without waiting for the watch; return when to try again."""

        try:
            rule = await self._session.transport.get(RULES, key)
        except NotFound:
            return CONFLICT_SECONDS
        except TRANSIENT as error:
            self._bar.show_waiting(refusal_text(error))
            return RETRY.total_seconds()
        self._observe_state(rule.metadata)
        return CONFLICT_SECONDS

    async def _evict(self, pod: "DrainPod") -> "Event":

        return await evict_for_drain(self._session.transport, pod)

    async def _use_no_execute(self) -> None:
        """Let the eviction controller delete the pods that remain."""

        end = self._session.clock.now() + OUTAGE
        for name in self._rules:
            while not await self._let_evict(name, last=self._session.clock.now() >= end):
                await self._session.clock.sleep(RETRY.total_seconds())

    async def _let_evict(self, name: str, *, last: bool) -> bool:
        """Set the effect of a rule; report whether that is done. The last try fails."""
        change = {"spec": {"taint": {"effect": NO_EXECUTE}}}
        try:
            await self._session.transport.patch(RULES, Key("", name), change)
        except NotFound:
            self._handle(RulesDeleted())
        except TRANSIENT as error:
            if last:
                raise
            self._bar.show_waiting(refusal_text(error))
            return False
        return True


def _exit_code(stop: "Stop | None") -> int:

    if stop is None:
        return 1
    codes = {
        DrainOutcome.DONE: 0,
        DrainOutcome.REPLACEMENT_PENDING: EXIT_UNSCHEDULABLE,
        DrainOutcome.EVICTION_LOOP: EXIT_EVICTION_LOOP,
    }
    return codes.get(stop.outcome, 1)
