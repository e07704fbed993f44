"""Random histories: what holds for every policy, whatever happens and in whatever order."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from domain.devicepolicies.histories import History, name
from property_examples import examples
from sully.domain.devicepolicies.settings import (
    CRITICAL,
    ENFORCE,
    MINOR,
    REQUIRE_APPROVAL,
    Flaps,
    Limit,
    PolicySettings,
    Step,
    StormLimit,
)
from sully.domain.devicepolicies.states import DeviceState, proof_run
from sully.domain.proofs.outcomes import ProofOutcome
from sully.domain.proofs.requests import ProofSettings
from sully.domain.workloads.percentages import scaled

pytestmark = pytest.mark.slow

DEVICES = 6
EFFECTS = ("None", "NoSchedule", "NoExecute")
durations = st.integers(0, 90).map(lambda seconds: timedelta(seconds=seconds))


@st.composite
def steps(draw: st.DrawFn) -> tuple[Step, ...]:
    effects = [effect for effect in EFFECTS if draw(st.booleans())] or ["NoExecute"]
    after = sorted(draw(st.lists(durations, min_size=len(effects), max_size=len(effects))))
    severities = sorted(
        draw(st.lists(st.integers(MINOR, CRITICAL), min_size=len(effects), max_size=len(effects)))
    )
    return tuple(map(Step, effects, after, severities))


jobs = st.builds(
    ProofSettings,
    namespace=st.just("tests"),
    device_class=st.just("gpu"),
    template=st.just({}),
    timeout=durations,
    retry_after=durations,
    attempts=st.integers(1, 3),
    parallelism=st.integers(1, 3),
)


def with_proof(policy: PolicySettings, job: ProofSettings | None) -> PolicySettings:
    return policy if job is None else replace(policy, needs_proof=True, proof_job=job)


manual = st.builds(
    PolicySettings,
    steps=steps(),
    mode=st.sampled_from([ENFORCE, REQUIRE_APPROVAL]),
    hold_for=durations,
    clear_after=durations,
    flaps=st.none() | st.builds(Flaps, st.integers(2, 4), durations),
    needs_proof=st.booleans(),
    limits=st.lists(
        st.builds(
            Limit,
            st.sampled_from(["Fleet", "Pool"]),
            st.integers(0, 3) | st.sampled_from(["20%", "50%"]),
        ),
        max_size=2,
    ).map(tuple),
    storm=st.none() | st.builds(StormLimit, st.integers(2, 4), durations),
)
policies = st.builds(with_proof, manual, st.none() | jobs)
HAPPENINGS = (
    "fail",
    "recover",
    "unknown",
    "clear",
    "approve",
    "swap",
    "vanish",
    "resume",
    "back",
    "prove",
    "disprove",
)
events = st.tuples(
    st.sampled_from(HAPPENINGS),
    st.integers(0, DEVICES - 1),
    st.integers(MINOR, CRITICAL),
    st.integers(0, 120),
)


def strength(state: DeviceState | None) -> int:
    return EFFECTS.index(state.effect) if state is not None and state.effect else -1


class Witness:
    """Follows one history, with its own account of when faults and recoveries were seen."""

    def __init__(self, policy: PolicySettings) -> None:
        self.history = History(policy, devices=DEVICES)
        self.faulty_since: dict[str, datetime] = {}
        self.identity = {name(number): 0 for number in range(DEVICES)}

    def happen(self, what: str, device: str, severity: int, seconds: int) -> None:
        self.apply(what, device, severity)
        self.step()
        self.history.now += timedelta(seconds=seconds)
        self.step()

    def apply(self, what: str, device: str, severity: int) -> None:
        history = self.history
        match what:
            case "fail":
                history.fail(device, severity)
                history.observe(device, identity=str(self.identity[device]))
            case "recover":
                history.recover(device)
                history.observe(device, identity=str(self.identity[device]))
            case "unknown":
                history.observe(device, faults=(), known=False)
            case "clear":
                history.clear(device)
            case "approve":
                history.observe(device, approved=True)
            case "swap":
                self.identity[device] += 1
                history.observe(device, identity=str(self.identity[device]))
            case "vanish":
                history.seen.pop(device, None)
            case "resume":
                history.resumed_at = history.now
            case "prove" | "disprove":
                self.finish(device, succeeded=what == "prove")

    def finish(self, device: str, *, succeeded: bool) -> None:
        """Let the Job of a device end; the outcome of an earlier run may stay in sight."""
        history, state = self.history, self.history.states.get(device)
        last = history.last
        if state is not None and last is not None and device in last.proofs:
            outcome = ProofOutcome(
                run=proof_run(state), finished=True, succeeded=succeeded, message="it ended"
            )
            history.observe(device, proof=outcome)

    def step(self) -> None:
        """Decide, and check what changed."""
        history = self.history
        for device, seen in history.seen.items():
            if seen.faults:
                self.faulty_since.setdefault(device, history.now)
        before = dict(history.states)
        blocked = set(history.unavailable())
        storm = history.storm_since is not None
        history.decide()
        self.check_limits(blocked)
        self.check_steps(before, storm=storm and history.storm_since is not None)
        self.check_cleared(before)
        self.check_proofs()
        for device in list(self.faulty_since):
            state = history.states.get(device)
            if state is None or state.since is None:
                del self.faulty_since[device]

    def check_limits(self, blocked: set[str]) -> None:
        history, groups = self.history, self.history.groups()
        unavailable = set(history.unavailable())
        for group, size in groups.sizes.items():
            limit = history.settings.limits[group.limit]
            most = scaled(limit.max_unavailable, size, up=True)
            members = {device for device in unavailable if group in groups.of[device]}
            # A pool that shrinks may leave more than a percentage of it.
            assert len(members) <= most or members <= blocked

    def check_steps(self, before: dict[str, DeviceState], *, storm: bool) -> None:
        policy, now = self.history.settings, self.history.now
        for device, state in self.history.states.items():
            was = strength(before.get(device))
            if state.step is None or strength(state) <= was:
                continue
            assert not storm
            wait = policy.hold_for + policy.steps[state.step].after
            assert now - self.faulty_since[device] >= wait
            if policy.mode == REQUIRE_APPROVAL and strength(state) > 0 >= was:
                assert self.history.seen[device].approved

    def check_cleared(self, before: dict[str, DeviceState]) -> None:
        history = self.history
        for device, old in before.items():
            if not old.effect:
                continue
            state = history.states.get(device)
            if state is not None and state.effect:
                continue
            seen = history.seen[device]
            if old.identity and seen.identity != old.identity:
                continue
            assert not seen.faults
            assert seen.known
            recovered = old.recovered_time or history.now
            assert history.now - recovered >= history.settings.clear_after
            if history.settings.needs_proof or old.flapping:
                assert self.is_declared(device, recovered) or self.is_proven(device, old)

    def is_declared(self, device: str, recovered: datetime) -> bool:
        cleared = self.history.seen[device].cleared_at
        return cleared is not None and cleared >= recovered

    def is_proven(self, device: str, old: DeviceState) -> bool:
        """Report whether a Job of exactly this recovery succeeded."""
        proof = self.history.seen[device].proof
        if self.history.settings.proof_job is None or proof is None or old.flapping:
            return False
        return proof.succeeded and proof.run == proof_run(old)

    def check_proofs(self) -> None:
        """Check that Jobs run only for recovered devices, and not too many."""
        history, last = self.history, self.history.last
        assert last is not None
        job = history.settings.proof_job
        assert len(last.proofs) <= (job.parallelism if job is not None else 0)
        for device in last.proofs:
            state = history.states[device]
            assert state.recovered_time is not None
            assert history.now - state.recovered_time >= history.settings.clear_after
            assert not state.flapping
            assert job is not None
            assert state.proof_failures < job.attempts


@settings(max_examples=examples(1000))
@given(policies, st.lists(events, max_size=30))
def test_whatever_happens(
    policy: PolicySettings, happened: list[tuple[str, int, int, int]]
) -> None:
    """Never over a limit, never cleared without proof, never a step before its time."""
    witness = Witness(policy)
    for what, number, severity, seconds in happened:
        if what != "back":
            witness.happen(what, name(number), severity, seconds)


@settings(max_examples=examples(800))
@given(policies, st.lists(events, max_size=30))
def test_it_comes_to_rest_after_the_last_fault(
    policy: PolicySettings, happened: list[tuple[str, int, int, int]]
) -> None:
    """Also with a clock that is set back."""
    witness = Witness(policy)
    history = witness.history
    for what, number, severity, seconds in happened:
        witness.apply(what, name(number), severity)
        history.now += timedelta(seconds=-seconds if what == "back" else seconds)
        history.decide()
    for number in range(DEVICES):
        history.recover(name(number))
    history.wait(1)
    for number in range(DEVICES):
        history.clear(name(number))
    history.wait(600)

    assert history.states == {}


@settings(max_examples=examples(300))
@given(manual, jobs, st.lists(events, max_size=20))
def test_jobs_alone_give_all_devices_back(
    policy: PolicySettings, job: ProofSettings, happened: list[tuple[str, int, int, int]]
) -> None:
    """If every Job succeeds, all devices that are not flapping are given back."""
    witness = Witness(replace(policy, needs_proof=True, proof_job=job, flaps=None))
    for what, number, severity, seconds in happened:
        if what not in ("back", "disprove"):
            witness.happen(what, name(number), severity, seconds)
    history = witness.history
    for number in range(DEVICES):
        history.recover(name(number))
    history.wait(1)
    for _ in range(DEVICES + 1):
        history.wait(120)
        assert history.last is not None
        for device in history.last.proofs:
            witness.finish(device, succeeded=True)
    history.wait(1)

    assert history.states == {}


@settings(max_examples=examples(200))
@given(policies, st.lists(events, max_size=20), st.randoms())
def test_the_order_of_devices_does_not_matter(
    policy: PolicySettings, happened: list[tuple[str, int, int, int]], random: object
) -> None:
    one, other = History(policy, devices=DEVICES), History(policy, devices=DEVICES)
    for what, number, severity, seconds in happened:
        for history in (one, other):
            if what == "fail":
                history.fail(name(number), severity)
            elif what == "recover":
                history.recover(name(number))
            history.now += timedelta(seconds=seconds)
        shuffled = list(other.seen)
        random.shuffle(shuffled)  # type: ignore[attr-defined]  # of hypothesis
        one.decide()
        other.decide(shuffled)

    assert one.states == other.states
