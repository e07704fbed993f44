"""The state of one device under one policy, and how observations change it.

The state is what must survive a restart: it is written to the annotation of the device's rule, or
to the status of the policy while there is no rule. A device has a rule exactly if its state has an
effect. Times are those of observation, so that no step is early because a clock elsewhere is wrong.
Limits and approval are in decisions.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.api.sully.types import DeviceTaintPolicyDevice as DeviceState
from sully.domain.devicepolicies.flaps import count_faults, is_declared_healthy
from sully.domain.devicepolicies.settings import CRITICAL, MAJOR, MINOR, PolicySettings
from sully.domain.proofs.outcomes import ProofOutcome
from sully.machinery.formats.timestamps import format_micro_time, later

__all__ = ["DeviceState", "Fault", "Notice", "Observation", "observe"]

_LEVELS: Final = {MINOR: "since", MAJOR: "major_since", CRITICAL: "critical_since"}


class Fault(msgspec.Struct, frozen=True):
    """A source that is active for a device."""

    source: str
    severity: int = MAJOR
    message: str = ""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a device now."""

    faults: tuple[Fault, ...] = ()
    known: bool = True
    """Whether all sources could be evaluated: without faults the device is then healthy."""
    identity: str = ""
    """The hardware; empty if it is not known."""
    approved: bool = False
    cleared_at: datetime | None = None
    """When a user declared the device healthy."""
    proof: ProofOutcome | None = None
    """What the Job of the current run has shown; None if there is none."""
    proof_problem: str = ""
    """Why there is none, although it is due."""


class Notice(msgspec.Struct, frozen=True):
    """Something that happened to a device, for an event."""

    reason: str
    message: str
    warning: bool = False


def observe(
    settings: PolicySettings, old: DeviceState, seen: Observation, now: datetime
) -> tuple[DeviceState, Notice | None]:
    """Return the state after an observation; one without times is that of a healthy device."""
    state = _not_in_future(old, now)
    if state.identity and seen.identity and state.identity != seen.identity:
        fresh, _ = observe(settings, DeviceState(device=old.device), seen, now)
        text = f"The hardware was replaced: {state.identity} is now {seen.identity}"
        return fresh, Notice("HardwareReplaced", text) if has_rule(old) else None
    if seen.faults:
        return _faulty(settings, state, seen, now), None
    if not seen.known:
        return state, None
    return _quiet(settings, state, seen, now)


def with_steps(settings: PolicySettings, state: DeviceState) -> DeviceState:
    """Return a state with the index that its effect has after the steps were changed."""
    effects = [step.effect for step in settings.steps]
    if state.step is None or effects[state.step : state.step + 1] == [state.effect]:
        return state
    return replace(state, step=effects.index(state.effect) if state.effect in effects else None)


def is_forgotten(state: DeviceState) -> bool:
    """Report whether nothing has to be recorded about a device."""
    return state.since is None and not state.fault_times and not has_rule(state)


def has_rule(state: DeviceState) -> bool:
    """Report whether the device has a rule, or would have one."""
    return bool(state.effect)


def severity(state: DeviceState) -> int:
    """Return the highest severity of the current fault."""
    return max((level for level in _LEVELS if level_since(state, level) is not None), default=MINOR)


def level_since(state: DeviceState, level: int) -> datetime | None:
    """Return when the fault first had at least a severity."""
    times: dict[int, datetime | None] = {
        MINOR: state.since,
        MAJOR: state.major_since,
        CRITICAL: state.critical_since,
    }
    return times[level]


def step_time(settings: PolicySettings, state: DeviceState, index: int) -> datetime | None:
    """Return when a step begins; None while the fault is not severe enough."""
    step = settings.steps[index]
    since = level_since(state, step.min_severity)
    return None if since is None else later(since, settings.hold_for + step.after)


def due_step(settings: PolicySettings, state: DeviceState, now: datetime) -> int | None:
    """Return the last step that has begun according to its time."""
    times = ((index, step_time(settings, state, index)) for index in range(len(settings.steps)))
    due = [index for index, time in times if time is not None and time <= now]
    return max(due, default=None)


def next_step_time(
    settings: PolicySettings, state: DeviceState, after: int | None, now: datetime
) -> datetime | None:
    """Return when the next step after one begins."""
    first = 0 if after is None else after + 1
    times = (step_time(settings, state, index) for index in range(first, len(settings.steps)))
    return min((time for time in times if time is not None and time > now), default=None)


def _not_in_future(state: DeviceState, now: datetime) -> DeviceState:
    """Bring times to the present that a clock which was set back has left in the future."""
    names = (*_LEVELS.values(), "recovered_time", "proof_failed_time")
    late = {name: now for name in names if (getattr(state, name) or now) > now}
    if any(time > now for time in state.fault_times):
        state = replace(state, fault_times=tuple(min(time, now) for time in state.fault_times))
    return replace(state, **late) if late else state


def _faulty(
    settings: PolicySettings, state: DeviceState, seen: Observation, now: datetime
) -> DeviceState:
    times = state.fault_times
    if state.recovered_time is not None:
        times = (*times, now)
        state = replace(_without_proofs(state), recovered_time=None)
    highest = max(fault.severity for fault in seen.faults)
    # The severity only increases: a mild fault that follows a severe one changes nothing.
    reached = {
        name: now
        for level, name in _LEVELS.items()
        if level <= highest and getattr(state, name) is None
    }
    state = replace(
        state,
        **reached,
        identity=state.identity or seen.identity,
        sources=tuple(sorted({fault.source for fault in seen.faults})),
    )
    assert state.since is not None
    is_held = now < later(state.since, settings.hold_for)
    if not is_held and not has_rule(state) and state.since not in times:
        times = (*times, state.since)
    return _with_faults(settings, state, times, now)


def _with_faults(
    settings: PolicySettings, state: DeviceState, times: Iterable[datetime], now: datetime
) -> DeviceState:
    """Keep the faults that count as flaps; a device that is flapping stays so until cleared."""
    recent, flapping = count_faults(
        settings.flaps, times, now, flapping=state.flapping, faulty=state.since is not None
    )
    return replace(state, fault_times=recent, flapping=flapping)


def _quiet(
    settings: PolicySettings, state: DeviceState, seen: Observation, now: datetime
) -> tuple[DeviceState, Notice | None]:
    if not has_rule(state):
        # It ended before the taint: only the flaps are recorded.
        idle = DeviceState(device=state.device, fault_times=state.fault_times)
        return _with_faults(settings, idle, state.fault_times, now), None
    if state.recovered_time is None:
        state = replace(_without_proofs(state), recovered_time=now)
    if is_clear(settings, state, seen, now):
        times = () if state.flapping else state.fault_times
        idle = DeviceState(device=state.device, fault_times=times)
        proof = _proof_text(state, seen, now)
        text = f"Sources quiet since {state.recovered_time:%Y-%m-%dT%H:%M:%SZ}{proof}"
        return _with_faults(settings, idle, times, now), Notice("TaintCleared", text)
    return _after_proof(settings, state, seen, now)


def proof_run(state: DeviceState) -> str:
    """Return which proof a device needs next; another one after each failure and recovery."""
    assert state.recovered_time is not None
    return f"{format_micro_time(state.recovered_time)}/{state.proof_failures + 1}"


def last_proof_run(state: DeviceState) -> str:
    """Return the proof that failed last; empty if none has."""
    if state.recovered_time is None or not state.proof_failures:
        return ""
    return f"{format_micro_time(state.recovered_time)}/{state.proof_failures}"


def is_proven(settings: PolicySettings, state: DeviceState, seen: Observation) -> bool:
    """Report whether a Job proved the device healthy since it recovered."""
    proof = seen.proof
    if settings.proof_job is None or proof is None or not proof.succeeded:
        return False
    return state.recovered_time is not None and proof.run == proof_run(state)


def _after_proof(
    settings: PolicySettings, state: DeviceState, seen: Observation, now: datetime
) -> tuple[DeviceState, Notice | None]:
    """Count a proof that failed."""
    proof = seen.proof
    if settings.proof_job is None or proof is None or proof.run != proof_run(state):
        return state, None
    if not proof.finished or proof.succeeded:
        return state, None
    failures = state.proof_failures + 1
    failed = replace(
        state, proof_failures=failures, proof_failed_time=now, proof_message=proof.message
    )
    text = f"{proof.message} (attempt {failures} of {settings.proof_job.attempts})"
    return failed, Notice("ProofFailed", text, warning=True)


def _without_proofs(state: DeviceState) -> DeviceState:
    return replace(state, proof_failures=0, proof_failed_time=None, proof_message="")


def _proof_text(state: DeviceState, seen: Observation, now: datetime) -> str:
    if is_cleared(state, seen, now):
        return ", and declared healthy"
    return f", and {seen.proof.message}" if seen.proof is not None else ""


def is_clear(
    settings: PolicySettings, state: DeviceState, seen: Observation, now: datetime
) -> bool:
    """Report whether the taint of a recovered device may be removed."""
    recovered = state.recovered_time
    if recovered is None or now < later(recovered, settings.clear_after):
        return False
    if is_cleared(state, seen, now):
        return True
    # Flapping devices pass tests, too: people have to decide.
    if state.flapping:
        return False
    return is_proven(settings, state, seen) or not settings.needs_proof


def is_cleared(state: DeviceState, seen: Observation, now: datetime) -> bool:
    """Report whether a user declared the device healthy since it recovered."""
    return is_declared_healthy(state.recovered_time, seen.cleared_at, now)
