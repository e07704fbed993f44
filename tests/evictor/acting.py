"""An evictor over views that a test feeds, and an API that answers its effects."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from sully.api.resource.types import DeviceTaintRule
from sully.client.transport import Key
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.eviction.judge import EvictionPolicy
from sully.domain.eviction.partial_records import PartialEvictionRecord
from sully.evictor.core import Evictor
from sully.evictor.effects import (
    CommitEviction,
    DeletePod,
    Effect,
    EvictPod,
    MarkPod,
    ReadPod,
    RecordEviction,
    Requeue,
    TryEviction,
    WithdrawRecord,
)
from sully.evictor.events import (
    CommitRejected,
    Event,
    EvictionAllowed,
    EvictionCommitted,
    EvictionRecorded,
    EvictionRefused,
    PodChanged,
    PodDeleted,
    PodMarked,
    PodNotFound,
    PodRead,
    RecordWithdrawn,
    Requeued,
)
from sully.evictor.records import RecordSources
from sully.evictor.settings import EvictionOptions
from sully.testing.builders import GPU, claim, pod, rule, select, taint
from views.feeds import Scene

OPTIONS = EvictionOptions(policy=EvictionPolicy(effects=EVICTING_EFFECTS))
KEY = Key("default", "pod")
WITHIN_BUDGET = "NoExecuteWithPodDisruptionBudget"
Failure = Callable[[], Event | None]


def hot(effect: str = "NoExecute", name: str = "r", **more: Any) -> DeviceTaintRule:
    """Return a rule that evicts from the device of the pod."""
    return rule(name, select(), taint(effect), uid=f"uid-{name}", **more)


class Line:
    """A cache that is fresh or not, as a test has it."""

    def __init__(self) -> None:
        self.confirmed = True

    def is_fresh(self, within: float) -> bool:
        return self.confirmed


class Acting:
    """One evictor, and a server with pods and records."""

    def __init__(
        self,
        options: EvictionOptions = OPTIONS,
        *,
        past: tuple[PartialEvictionRecord, ...] = (),
        totals: dict[str, int] | None = None,
    ) -> None:
        self.scene = Scene()
        self.scene.exposures.policy = options.policy
        self.line = Line()
        sources = RecordSources(lambda: past, lambda: totals or {})
        self.evictor = Evictor(self.scene.exposures, options, sources=sources, caches=[self.line])
        self.log: list[str] = []
        """The effects so far, by name."""
        self.records: set[str] = {item.metadata.name for item in past}
        self.evicted: list[str] = []
        self.marked: set[str] = set()
        self.refuses = False
        """Whether the budgets of pods refuse evictions."""
        self.before: dict[type[Effect], Failure] = {}
        """What happens before an effect is executed, once; it may be answered so, or fail."""
        self.unanswered: set[type[Effect]] = set()
        """The effects that are executed, but not answered, once."""

    def holder(self, name: str = "pod", *tolerations: Any) -> None:
        """Add a pod that holds a device."""
        device = GPU if name == "pod" else GPU._replace(device=name)
        self.scene.claims.put(claim(name, (device, tolerations), pods=(name,)))
        self.scene.pods.put(pod(name, name))

    def send(self, event: Event) -> list[Effect]:
        effects = self.evictor.step(event, self.scene.clock.now())
        self.log += [type(effect).__name__ for effect in effects]
        return effects

    def reconcile(self, name: str = "pod") -> None:
        """Let the evictor decide about a pod, and execute what it wants, with what it requeues."""
        self.run(PodChanged(Key("default", name)))

    def run(self, event: Event) -> None:
        effects = deque(self.send(event))
        while effects:
            effect = effects.popleft()
            if isinstance(effect, Requeue):
                effects.extend(self.send(Requeued(effect.key)))
                continue
            try:
                answer = self.execute(effect)
            except ConnectionError:
                # The rest is not executed, as in the controller.
                return
            if answer is not None:
                effects.extendleft(reversed(self.send(answer)))

    def execute(self, effect: Effect) -> Event | None:
        happens = self.before.pop(type(effect), None)
        answer = happens() if happens is not None else None
        if answer is None:
            if isinstance(effect, CommitEviction):
                answer = self._commit(effect)
            else:
                answer = self._answer(effect)
        if type(effect) in self.unanswered:
            self.unanswered.remove(type(effect))
            raise ConnectionError
        return answer

    def _answer(self, effect: Effect) -> Event | None:
        match effect:
            case ReadPod(key, uid):
                gone = self.scene.usage.pod(key) is None
                return PodNotFound(key) if gone else PodRead(key, marked=uid in self.marked)
            case TryEviction(key) if not self.refuses:
                return EvictionAllowed(key)
            case TryEviction(key) | EvictPod(key) if self.refuses:
                return EvictionRefused(key, {}, True)
            case RecordEviction(key, evicted):
                self.records.add(evicted.uid)
                return EvictionRecorded(key)
            case WithdrawRecord(key, uid, sent) if not (sent and key.name in self.evicted):
                self.records.discard(uid)
                return RecordWithdrawn(key, uid)
            case MarkPod(key, uid):
                self.marked.add(uid)
                return PodMarked(key)
            case DeletePod(key) | EvictPod(key):
                self.evicted.append(key.name)
                return PodDeleted(key)
            case _:
                return None

    def _commit(self, effect: CommitEviction) -> Event:
        pod = self.scene.usage.pod(effect.key)
        if pod is None or pod.metadata.resource_version != effect.resource_version:
            return CommitRejected(effect.key)
        self.records |= {effect.record.pod.uid} if effect.record is not None else set()
        self.marked.add(effect.uid)
        self.evicted.append(effect.key.name)
        return EvictionCommitted(effect.key)

    def count(self, uid: str = "uid-r") -> int:
        return self.evictor.records.evicted(uid, self.scene.clock.now())

    def steps(self) -> list[str]:
        """Return the effects that the API answered, in order."""
        quiet = ("ReportProgress", "CountEviction", "Announce", "Requeue", "RequeueAt")
        return [name for name in self.log if name not in quiet]


def failing() -> Event | None:
    """Fail, as a call does that is not answered."""
    raise ConnectionError


def slow(**changes: Any) -> EvictionOptions:
    """Return the usual options with some changed."""
    return replace(OPTIONS, **changes)
