"""Eviction in a rehearsal: who must leave, when, and at which pace.

The judge is `views.exposures`, the pace is the pacer of the real controller; the order of steps
follows `controllers/eviction/controller.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sully.client.transport import Key
from sully.controllers.eviction.kept import Lines
from sully.controllers.eviction.pacer import NOT_YET, Pacer
from sully.domain.eviction.judge import KEEP, Evict, Hold, Reason, Verdict, Wait, needs_budget
from sully.domain.eviction.rates import Limit, Source, limits
from sully.domain.planning.objects import PlannedPod
from sully.planning.budgets import Budgets
from sully.planning.world import World


class _NothingBefore:
    """A pacer's memory that is empty: a plan begins with full buckets."""

    def times(self, source: Source | None = None) -> Iterable[datetime]:  # noqa: ARG002 - the pacer asks any past so
        return ()


@dataclass(slots=True)
class Left:
    """A pod that was made to leave."""

    pod: PlannedPod
    at: datetime
    because: tuple[Reason, ...]


@dataclass(slots=True)
class _Decided:
    """What was decided of a pod that must leave: true until something about the pod changes.

    Time alone takes no reason away; it only makes more of them due.
    """

    verdict: Evict
    due: tuple[Reason, ...]
    pace: tuple[Limit, ...]

    @property
    def is_final(self) -> bool:
        """Say whether all reasons are due, so that time makes no difference any more."""
        return len(self.due) == len(self.verdict.because)


@dataclass(slots=True)
class Standing:
    """Why a pod that must leave is still there at the end."""

    pod: PlannedPod
    why: str
    because: tuple[Reason, ...] = field(default=())


class Departing:
    """Makes pods leave."""

    def __init__(self, world: World, on_leave: Callable[[Left], None]) -> None:
        self._world = world
        self._on_leave = on_leave
        self.budgets = Budgets(world.budgets.values())
        self._ready: deque[Key] = deque()
        self._queued: set[Key] = set()
        self._decided: dict[Key, _Decided] = {}
        self._asked: set[Key] = set()
        """Whom the pacer or the lines before budgets may know: few of those who are looked at."""
        self._pacer = Pacer(
            self._line_up, past=_NothingBefore(), max_per_minute=world.settings.max_per_minute
        )
        self._kept = Lines(self._line_up)
        self.budgets.on_open = self._kept.open
        self.standing: dict[Key, Standing] = {}
        self.frozen: set[str] = set()
        """Pods, by uid, that are left alone although they must leave: their story was told."""
        self.on_frozen: Callable[[PlannedPod, tuple[Reason, ...]], None] = lambda _, __: None

    def wake(self, key: Key) -> None:
        """Have a pod judged that something happened to, after those that are in line already."""
        self._decided.pop(key, None)
        pod = self._world.pods.get(key)
        if pod is not None and not pod.leaving:
            self._line_up(key)
        else:
            # Nobody judges it any more: two looks less for each pod that leaves and is then gone.
            self._stays(key)

    def start_with(self, keys: Iterable[Key]) -> None:
        """Have these pods looked at, in this order, and no others."""
        self._ready.clear()
        self._queued.clear()
        for key in keys:
            self.wake(key)

    def _line_up(self, key: Key) -> None:
        """Have a pod looked at whose turn may have come."""
        if key not in self._queued:
            self._queued.add(key)
            self._ready.append(key)

    def settle(self) -> bool:
        """Look at all pods that are to be looked at; say whether there were any."""
        any_ready = bool(self._ready)
        while self._ready:
            key = self._ready.popleft()
            self._queued.discard(key)
            self._look(key)
        return any_ready

    def verdict(self, pod: PlannedPod) -> Verdict:
        """Return whether and when a pod must leave."""
        return KEEP if pod.leaving else self._world.exposures.judge(pod)

    def _look(self, key: Key) -> None:
        pod = self._world.pods.get(key)
        self.standing.pop(key, None)
        decided = self._decided.get(key)
        if pod is not None and decided is not None:
            self._evict(key, pod, self._as_of_now(decided))
            return
        verdict = self.verdict(pod) if pod is not None else KEEP
        if pod is None or not isinstance(verdict, Evict):
            self._stays(key)
        match verdict:
            case Hold(because) if pod is not None:
                self.standing[key] = Standing(pod, _paused(because), because)
            case Wait(until):
                self._world.timeline.at(until, lambda: self._line_up(key))
            case Evict() if pod is not None:
                self._evict(key, pod, self._as_of_now(_Decided(verdict, (), ())))

    def _stays(self, key: Key) -> None:
        self.standing.pop(key, None)
        if key in self._asked:
            self._asked.discard(key)
            self._pacer.stays(key)
            self._kept.stays(key)

    def _as_of_now(self, decided: _Decided) -> _Decided:
        """Return a decision with all that is due by now."""
        if decided.is_final:
            return decided
        due = decided.verdict.due(self._world.timeline.now())
        default = self._world.settings.default_per_second
        return _Decided(decided.verdict, due, limits((each.taint for each in due), default=default))

    def _evict(self, key: Key, pod: PlannedPod, decided: _Decided) -> None:
        verdict, now = decided.verdict, self._world.timeline.now()
        if pod.metadata.uid in self.frozen:
            self.on_frozen(pod, verdict.because)
            return
        self._decided[key] = decided
        self._asked.add(key)
        wait = self._pacer.ask(key, decided.pace, now)
        if wait == NOT_YET:
            return
        if wait:
            self._world.timeline.at(now + wait, lambda: self._line_up(key))
            return
        refusal = self.budgets.refuses(pod) if needs_budget(decided.due) else ""
        if refusal:
            self._refused(key, pod, refusal, decided)
        else:
            self._leave(key, pod, verdict)

    def _refused(self, key: Key, pod: PlannedPod, why: str, decided: _Decided) -> None:
        """Let others go first, and ask again when there may be room, or no need to ask."""
        self._pacer.stays(key)
        verdict, gate = decided.verdict, self.budgets.gate(pod)
        self.standing[key] = Standing(pod, why, verdict.because)
        dues = (each.due for each in verdict.because if each not in decided.due)
        later = min(filter(None, dues), default=None)
        if gate is not None:
            self._kept.add(key, (gate,))
        if later is not None:
            self._world.timeline.at(later, lambda: self._line_up(key))

    def _leave(self, key: Key, pod: PlannedPod, verdict: Evict) -> None:
        now = self._world.timeline.now()
        self._asked.discard(key)
        self._pacer.left(key)
        self._kept.left(key)
        self._world.exposures.departed(pod.metadata.uid)
        self.budgets.left(pod)
        deadline = now + timedelta(seconds=self._stops_after(pod))
        self._decided.pop(key, None)
        leaving = self._world.mark_leaving(pod, deadline)
        self._on_leave(Left(leaving, now, verdict.because))

    def _stops_after(self, pod: PlannedPod) -> float:
        most = self._world.settings.stop_seconds
        return pod.grace if most is None else min(most, pod.grace)


def _paused(because: Iterable[Reason]) -> str:
    names = sorted({str(each.taint.origin) for each in because})
    return f"paused: {', '.join(names)}"
