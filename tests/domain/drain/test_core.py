"""The drain core: whom it evicts, what it waits for, when it stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from property_examples import examples
from sully.api.resource.eviction_rate import EvictionRate
from sully.domain.drain.core import Drain
from sully.domain.drain.messages import (
    DrainEvictionRefused,
    DrainOutcome,
    DrainPod,
    DrainPodNotFound,
    DrainSettings,
    DrainState,
    Effect,
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

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def on_device(name: str, workload: str = "team/Deployment/web", **fields: bool) -> DrainPod:
    return DrainPod(
        namespace="team",
        name=name,
        uid=name,
        workload=workload,
        **{"awaited": bool(workload), "on_devices": True, "ready": True, **fields},
    )


def elsewhere(name: str, workload: str = "team/Deployment/web", **fields: bool) -> DrainPod:
    return on_device(name, workload, on_devices=False, **fields)


@dataclass
class World:
    """A cluster that does what a drain asks for, on a virtual clock."""

    pods: dict[str, DrainPod]
    settings: DrainSettings
    blocked: set[str] = field(default_factory=set)
    """Pods whose eviction is refused."""
    ready_after: timedelta = timedelta()
    """How long a replacement takes to become Ready."""
    terminates_after: timedelta = timedelta()
    unschedulable: bool = False
    """Whether replacements are unschedulable."""
    returns: bool = False
    """Whether replacements use the same devices."""
    state: DrainState | None = None
    now: datetime = NOON
    evicted: list[tuple[datetime, str]] = field(default_factory=list)
    timers: list[tuple[datetime, str, DrainPod | None]] = field(default_factory=list)
    most_unavailable: int = 0
    no_execute_at: datetime | None = None
    count: int = 0

    def __post_init__(self) -> None:
        self.drain = Drain(self.settings, self.now, self.state)
        self.observe()

    def observe(self) -> None:
        self.drain.handle(PodsChanged(tuple(self.pods.values())), self.now)

    def run(self, until: timedelta = timedelta(days=1)) -> Stop | None:
        """Execute effects until the drain stops, or until a time."""
        end = self.now + until
        while self.now < end:
            effects, wake = self.drain.decide(self.now), None
            for effect in effects:
                if isinstance(effect, Stop):
                    return effect
                wake = self.execute(effect) or wake
            self.observe()
            self.most_unavailable = max(self.most_unavailable, self.unavailable())
            if not any(isinstance(effect, EvictDrainPod) for effect in effects):
                # An answer may allow more immediately.
                self.advance(wake, end)
        return None

    def execute(self, effect: Effect) -> datetime | None:
        match effect:
            case EvictDrainPod(pod):
                self.evict(pod)
            case UseNoExecute():
                self.no_execute_at = self.now
                for pod in [pod for pod in self.pods.values() if pod.on_devices]:
                    self.delete(pod)
            case WaitUntil(time):
                return time
        return None

    def evict(self, pod: DrainPod) -> None:
        if pod.uid not in self.pods:
            self.drain.handle(DrainPodNotFound(pod.uid), self.now)
        elif pod.uid in self.blocked:
            self.drain.handle(DrainEvictionRefused(pod.uid, "the budget allows none"), self.now)
        else:
            self.evicted.append((self.now, pod.uid))
            self.drain.handle(PodEvicted(pod.uid), self.now)
            self.delete(pod)

    def delete(self, pod: DrainPod) -> None:
        self.pods[pod.uid] = replace(pod, terminating=True, ready=False)
        self.timers.append((self.now + self.terminates_after, pod.uid, None))
        if pod.workload:
            self.count += 1
            new = elsewhere(f"{pod.name}-{self.count}", pod.workload, ready=False)
            if self.returns:
                new = replace(new, on_devices=True, tolerates=pod.tolerates)
            new = replace(new, unschedulable=self.unschedulable)
            self.timers.append((self.now, new.uid, new))
            if not self.unschedulable:
                ready = replace(new, ready=True)
                self.timers.append((self.now + self.ready_after, new.uid, ready))

    def advance(self, wake: datetime | None, end: datetime) -> None:
        """Let time pass until something happens."""
        times = [time for time, _, _ in self.timers]
        if wake is not None:
            times.append(wake)
        self.now = min(end, max(self.now, min(times, default=end)))
        due = [timer for timer in self.timers if timer[0] <= self.now]
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        for _, uid, pod in due:
            if pod is None:
                self.pods.pop(uid, None)
            else:
                self.pods[uid] = pod
        self.observe()

    def unavailable(self) -> int:
        """Return how many evicted pods have no Ready replacement."""
        ready = sum(1 for pod in self.pods.values() if "-" in pod.name and pod.ready)
        return len(self.evicted) - ready


def world(count: int = 3, settings: DrainSettings | None = None, **fields: object) -> World:
    pods = [on_device(f"web{number:02}") for number in range(count)]
    return World({pod.uid: pod for pod in pods}, settings or DrainSettings(), **fields)  # type: ignore[arg-type] # fields of World by name


# -- what is evicted, and when --------------------------------------------------------------------


def test_all_pods_are_evicted_and_have_ready_replacements() -> None:
    cluster = world(3, ready_after=30 * SECOND, terminates_after=5 * SECOND)

    assert cluster.run() == Stop(DrainOutcome.DONE)

    assert [uid for _, uid in cluster.evicted] == ["web00", "web01", "web02"]
    assert cluster.drain.progress().ready == 3
    assert cluster.now == NOON + 30 * SECOND


@dataclass(frozen=True)
class RateCase:
    rate: EvictionRate
    want: list[float]


RATES = {
    "one per second": RateCase(EvictionRate(1, burst=1), [0, 1, 2, 3]),
    "two per second": RateCase(EvictionRate(2, burst=1), [0, 0.5, 1, 1.5]),
    "burst of two": RateCase(EvictionRate(1, burst=2), [0, 0, 1, 2]),
    "one in five minutes": RateCase(EvictionRate(1, 5 * MINUTE, 1), [0, 300, 600, 900]),
    "three per minute": RateCase(EvictionRate(3, MINUTE, burst=3), [0, 0, 0, 20]),
}


@pytest.mark.parametrize("case", RATES.values(), ids=RATES.keys())
def test_the_rate_is_exact(case: RateCase) -> None:
    cluster = world(4, DrainSettings(rate=case.rate))

    assert cluster.run() == Stop(DrainOutcome.DONE)

    assert [(time - NOON).total_seconds() for time, _ in cluster.evicted] == case.want


def test_another_run_has_no_new_burst() -> None:
    rate = EvictionRate(1, 5 * MINUTE, burst=2)
    first = world(4, DrainSettings(rate=rate))
    first.run(until=MINUTE)
    state = first.drain.state(first.now)

    second = World(first.pods, first.settings, state=state, now=NOON + MINUTE)
    second.run()

    assert [time - NOON for time, _ in second.evicted] == [5 * MINUTE, 10 * MINUTE]
    assert second.drain.state(second.now).evicted == 4


def test_an_eviction_counts_from_its_answer_on() -> None:
    drain = Drain(DrainSettings(rate=EvictionRate(1, 2 * SECOND, burst=2)), NOON)
    drain.handle(PodsChanged(tuple(on_device(f"web{number}") for number in range(5))), NOON)
    drain.decide(NOON)
    answered = NOON + MINUTE

    # The server did not answer for a minute, and then executed both.
    for uid in ("web0", "web1"):
        drain.handle(PodEvicted(uid), answered)

    assert drain.decide(answered) == (WaitUntil(answered + 2 * SECOND),)
    assert len(drain.decide(answered + 2 * SECOND)) == 2


@pytest.mark.parametrize("answered", [True, False])
def test_an_eviction_without_an_answer_may_have_happened(*, answered: bool) -> None:
    drain = Drain(DrainSettings(rate=EvictionRate(1, MINUTE, burst=1)), NOON)
    drain.handle(PodsChanged((on_device("web0"), on_device("web1"))), NOON)
    drain.decide(NOON)

    drain.handle(DrainEvictionRefused("web0", "timed out", answered), NOON)

    evictions = [x.pod.uid for x in drain.decide(NOON) if isinstance(x, EvictDrainPod)]
    assert evictions == (["web1"] if answered else [])


def test_the_rate_is_shared_with_another_run() -> None:
    rate = EvictionRate(1, MINUTE, burst=1)
    drain = Drain(DrainSettings(rate=rate), NOON)
    drain.handle(PodsChanged((on_device("web"),)), NOON)

    drain.handle(StateChanged(DrainState(full_at=NOON + MINUTE)), NOON)

    assert drain.decide(NOON) == (WaitUntil(NOON + MINUTE),)
    assert drain.decide(NOON + MINUTE)[0] == EvictDrainPod(on_device("web"))
    drain.handle(EvictionsPostponed(("web",)), NOON + MINUTE)
    assert drain.decide(NOON + MINUTE)[0] == EvictDrainPod(on_device("web"))


def test_a_refused_eviction_takes_no_token_and_is_tried_again() -> None:
    cluster = world(2, DrainSettings(rate=EvictionRate(1, burst=1)), blocked={"web00"})

    cluster.run(until=12 * SECOND)

    assert cluster.evicted == [(NOON, "web01")]
    assert cluster.drain.progress().refused == {"web00": "the budget allows none"}
    cluster.blocked.clear()
    assert cluster.run() == Stop(DrainOutcome.DONE)
    assert cluster.evicted[1] == (NOON + 15 * SECOND, "web00")


def test_one_at_a_time_waits_until_the_replacement_is_ready() -> None:
    cluster = world(3, DrainSettings(max_unavailable=1), ready_after=7 * SECOND)

    assert cluster.run() == Stop(DrainOutcome.DONE)

    assert [(time - NOON).seconds for time, _ in cluster.evicted] == [0, 7, 14]


@dataclass(frozen=True)
class ShareCase:
    share: int | str
    pods: int
    want: int
    """How many pods are evicted before a replacement is Ready."""
    before: int = 0
    """How many an earlier run evicted."""


SHARES = {
    "a quarter of eight": ShareCase("25%", 8, 2),
    "a quarter of six rounds up": ShareCase("25%", 6, 2),
    "a quarter of four": ShareCase("25%", 4, 1),
    "a hundredth of three is one": ShareCase("1%", 3, 1),
    "all": ShareCase("100%", 3, 3),
    "of those of an earlier run, too": ShareCase("50%", 2, 2, before=2),
    "a number": ShareCase(3, 8, 3),
}


@pytest.mark.parametrize("case", SHARES.values(), ids=SHARES.keys())
def test_how_many_may_be_unavailable(case: ShareCase) -> None:
    cluster = world(
        case.pods,
        DrainSettings(max_unavailable=case.share),
        ready_after=MINUTE,
        state=DrainState(evicted=case.before),
    )

    cluster.run(until=SECOND)
    assert len(cluster.evicted) == case.want

    # What remains counts less, and what was evicted counts on.
    assert cluster.run() == Stop(DrainOutcome.DONE)
    assert cluster.most_unavailable == case.want


def test_when_idle_evicts_nobody() -> None:
    cluster = world(2, DrainSettings(evicts=False))

    assert cluster.run(until=MINUTE) is None
    cluster.pods.clear()
    cluster.observe()

    assert cluster.run() == Stop(DrainOutcome.DONE)
    assert cluster.evicted == []


def test_terminating_pods_of_others_are_not_waited_for() -> None:
    terminating_pod = on_device("terminating_pod", terminating=True)
    cluster = World({"terminating_pod": terminating_pod}, DrainSettings())

    assert cluster.run() == Stop(DrainOutcome.DONE)


# -- why it stops ---------------------------------------------------------------------------------


def test_it_stops_when_a_replacement_stays_pending() -> None:
    cluster = world(3, DrainSettings(rate=EvictionRate(1, burst=1)), unschedulable=True)

    stop = cluster.run()

    # The second pod is not evicted once the replacement of the first is known to be unschedulable.
    assert isinstance(stop, Stop)
    assert stop.outcome is DrainOutcome.REPLACEMENT_PENDING
    assert [uid for _, uid in cluster.evicted] == ["web00"]
    assert cluster.now == NOON + MINUTE


def test_it_stops_when_a_replacement_is_not_ready_in_time() -> None:
    settings = DrainSettings(max_unavailable=1, wait_ready=2 * MINUTE)
    cluster = world(2, settings, ready_after=timedelta(hours=1))

    stop = cluster.run()

    assert isinstance(stop, Stop)
    assert stop.outcome is DrainOutcome.REPLACEMENT_NOT_READY
    assert [str(pod) for pod in stop.pods] == ["team/web00-1"]
    assert cluster.now == NOON + 2 * MINUTE


def test_replacements_need_not_be_waited_for() -> None:
    cluster = world(2, DrainSettings(wait_ready=None), unschedulable=True)

    assert cluster.run() == Stop(DrainOutcome.DONE)
    assert len(cluster.evicted) == 2


def test_a_pod_that_nothing_recreates_is_not_waited_for() -> None:
    cluster = World({"alone": on_device("alone", "")}, DrainSettings(max_unavailable=1))

    assert cluster.run() == Stop(DrainOutcome.DONE)


def test_it_stops_when_a_workload_does_not_recreate_its_pod() -> None:
    pod = on_device("web")
    drain = Drain(DrainSettings(wait_ready=MINUTE), NOON)
    drain.handle(PodsChanged((pod,)), NOON)
    drain.decide(NOON)
    drain.handle(PodEvicted("web"), NOON)
    drain.handle(PodsChanged(()), NOON)

    assert drain.decide(NOON) == (WaitUntil(NOON + MINUTE),)
    assert drain.decide(NOON + MINUTE) == (
        Stop(DrainOutcome.NOT_RECREATED, workload="team/Deployment/web"),
    )


def test_it_stops_when_a_pod_that_tolerates_the_taint_returns() -> None:
    cluster = World({"web": on_device("web", tolerates=True)}, DrainSettings(), returns=True)

    stop = cluster.run()

    assert isinstance(stop, Stop)
    assert stop.outcome is DrainOutcome.EVICTION_LOOP
    assert len(cluster.evicted) == 1


def test_a_pod_that_returns_once_is_evicted_again_and_then_it_stops() -> None:
    cluster = world(1, returns=True)

    stop = cluster.run()

    assert isinstance(stop, Stop)
    assert stop.outcome is DrainOutcome.EVICTION_LOOP
    assert len(cluster.evicted) == 2


def test_it_stops_when_a_user_removes_the_cordon() -> None:
    cluster = world(2, blocked={"web00", "web01"})
    cluster.drain.handle(RulesDeleted(), NOON)

    stop = cluster.run()

    assert isinstance(stop, Stop)
    assert stop.outcome is DrainOutcome.UNCORDONED
    assert len(stop.pods) == 2


def test_after_the_timeout_it_fails() -> None:
    cluster = world(2, DrainSettings(timeout=MINUTE), blocked={"web01"})

    stop = cluster.run()

    assert isinstance(stop, Stop)
    assert (stop.outcome, [pod.name for pod in stop.pods]) == (DrainOutcome.TIMED_OUT, ["web01"])
    assert cluster.now == NOON + MINUTE


def test_after_the_timeout_it_uses_no_execute() -> None:
    settings = DrainSettings(timeout=MINUTE, use_no_execute=True)
    cluster = world(2, settings, blocked={"web00", "web01"}, ready_after=SECOND)

    assert cluster.run() == Stop(DrainOutcome.DONE)

    assert cluster.no_execute_at == NOON + MINUTE
    assert cluster.evicted == []
    assert cluster.drain.progress().ready == 2


def test_another_run_waits_for_replacements_of_the_first() -> None:
    settings = DrainSettings(max_unavailable=1)
    first = world(2, settings, ready_after=MINUTE)
    first.run(until=SECOND)
    state = first.drain.state(first.now)
    assert state.workloads == ("team/Deployment/web",)

    second = World(first.pods, settings, state=state, now=NOON + SECOND)
    second.timers = first.timers
    second.run()

    assert [time - NOON for time, _ in second.evicted] == [MINUTE]


# -- properties -----------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(
    count=st.integers(1, 8),
    per_minute=st.integers(4, 240),
    burst=st.integers(1, 5),
    most=st.integers(1, 4),
    ready=st.integers(0, 60),
    stops=st.integers(0, 60),
    blocked=st.sets(st.integers(0, 7), max_size=2),
)
def test_never_faster_than_the_rate_and_never_more_unavailable(
    count: int, per_minute: int, burst: int, most: int, ready: int, stops: int, blocked: set[int]
) -> None:
    rate = EvictionRate(per_minute, MINUTE, burst)
    limits = DrainSettings(rate=rate, max_unavailable=most, timeout=20 * MINUTE)
    cluster = world(
        count,
        limits,
        ready_after=ready * SECOND,
        terminates_after=stops * SECOND,
        blocked={f"web{number:02}" for number in blocked},
    )

    cluster.run()

    times = [time for time, _ in cluster.evicted]
    assert len(times) == sum(1 for number in range(count) if number not in blocked)
    assert cluster.most_unavailable <= most
    for first, start in enumerate(times):
        for last in range(first, len(times)):
            allowed = burst + (times[last] - start) / rate.interval
            assert last - first + 1 <= allowed + 1e-6
