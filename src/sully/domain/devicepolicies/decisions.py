"""What a policy does now with each device: which step, or what it waits for, and why.

`decide` is the whole state machine: it brings the states of devices up to date with observations
(states.py), then lets steps begin as far as mode, approval, limits and storms allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from sully.domain.devicepolicies.limits import Groups, UnavailabilityBudget, storm_start
from sully.domain.devicepolicies.proofs import (
    AWAITING_PROOF,
    next_proof_time,
    proof_message,
    proofs_to_run,
)
from sully.domain.devicepolicies.settings import DRY_RUN, REQUIRE_APPROVAL, PolicySettings
from sully.domain.devicepolicies.states import (
    DeviceState,
    Notice,
    Observation,
    due_step,
    has_rule,
    is_cleared,
    is_forgotten,
    next_step_time,
    observe,
    severity,
    with_steps,
)
from sully.domain.devices.taints import BLOCKING_EFFECTS, NONE
from sully.machinery.formats.timestamps import later

PENDING: Final = "Pending"
TAINTED: Final = "Tainted"
HELD_BACK: Final = "HeldBack"
AWAITING_APPROVAL: Final = "AwaitingApproval"
RECOVERING: Final = "Recovering"
FLAPPING: Final = "Flapping"
UNKNOWN: Final = "Unknown"
HEALTHY: Final = "Healthy"
PHASES: Final = (
    PENDING,
    TAINTED,
    HELD_BACK,
    AWAITING_APPROVAL,
    RECOVERING,
    AWAITING_PROOF,
    FLAPPING,
    UNKNOWN,
    HEALTHY,
)
STORM: Final = "a storm of faults: find the cause, then run 'sully policies resume NAME'"
NOT_SEEN: Final = Observation(known=False)


class PolicyDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The states of all devices that have one, and when to decide again."""

    states: Mapping[str, DeviceState]
    """By device, written `driver/pool/device`."""
    notices: Mapping[str, Notice]
    storm_since: datetime | None = None
    requeue_at: datetime | None = None
    """When something changes by itself."""
    proofs: tuple[str, ...] = ()
    """The devices that a Job is to prove healthy now."""

    @property
    def next_action_time(self) -> datetime | None:
        """Return when the policy changes a taint next."""
        times = (state.next_action_time for state in self.states.values())
        return min((time for time in times if time is not None), default=None)


class PolicyContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision depends on in addition to the devices."""

    groups: Groups
    storm_since: datetime | None = None
    resumed_at: datetime | None = None
    now: datetime


def decide(
    settings: PolicySettings,
    states: Mapping[str, DeviceState],
    seen: Mapping[str, Observation],
    context: PolicyContext,
) -> PolicyDecision:
    """Return the new states. Of a device that is not in `seen`, only the rule is kept.

    The result does not depend on the order of the mappings.
    """
    now, notices = context.now, {}
    observed: dict[str, DeviceState] = {}
    for device in sorted({*states, *seen}):
        old = with_steps(settings, states.get(device) or DeviceState(device=device))
        if device not in seen and not has_rule(old):
            continue
        state, notice = observe(settings, old, seen.get(device, NOT_SEEN), now)
        if notice is not None:
            notices[device] = notice
        if not is_forgotten(state):
            observed[device] = state
    storm = _storm(settings, observed, context)
    budget = UnavailabilityBudget(
        settings.limits, context.groups, unavailable_devices(observed.values())
    )
    decided: dict[str, DeviceState] = {}
    for device in sorted(observed, key=lambda device: _urgency(observed[device])):
        gate = _Gate(settings, budget, storm=storm is not None, now=now)
        decided[device] = gate.advance(observed[device], seen.get(device, NOT_SEEN))
    times = [time for state in decided.values() for time in _looks(settings, state, now)]
    # What people declare by a clock that is ahead of ours counts when it is time.
    declared = [context.resumed_at, *(one.cleared_at for one in seen.values())]
    times += [time for time in declared if time is not None and time > now]
    return PolicyDecision(
        states={device: decided[device] for device in sorted(decided)},
        notices=notices,
        storm_since=storm,
        requeue_at=min(times, default=None),
        proofs=proofs_to_run(settings, decided, seen, now),
    )


def unavailable_devices(states: Iterable[DeviceState]) -> list[str]:
    """Return the devices that a policy makes unavailable."""
    return [state.device for state in states if state.effect in BLOCKING_EFFECTS]


def _storm(
    settings: PolicySettings, states: Mapping[str, DeviceState], context: PolicyContext
) -> datetime | None:
    """Return since when there is a storm; it lasts until a user resumes the policy."""
    since, resumed = context.storm_since, context.resumed_at
    if resumed is not None and resumed > context.now:
        # Until then it would hide every storm.
        resumed = None
    if settings.storm is not None and since is not None and (resumed is None or resumed < since):
        return since
    return storm_start(settings, states.values(), context.groups, resumed, context.now)


def _urgency(state: DeviceState) -> tuple[int, float, str]:
    since = state.since.timestamp() if state.since is not None else 0.0
    return -severity(state), since, state.device


def _looks(settings: PolicySettings, state: DeviceState, now: datetime) -> Iterable[datetime]:
    if state.next_action_time is not None:
        yield state.next_action_time
    if state.recovered_time is not None:
        clears_at = later(state.recovered_time, settings.clear_after)
        if now < clears_at:
            # Also without proof: then it is reported that it is needed.
            yield clears_at
    retry = next_proof_time(settings, state)
    if retry is not None and now < retry:
        yield retry
    if state.since is None and state.fault_times and settings.flaps is not None:
        # When it is forgotten.
        yield later(max(state.fault_times), settings.flaps.within)
    if state.since is not None and state.recovered_time is None and not has_rule(state):
        hold_ends = later(state.since, settings.hold_for)
        if hold_ends > now:
            yield hold_ends


class _Gate(msgspec.Struct, frozen=True):
    """Lets steps begin, one device after the other."""

    settings: PolicySettings
    budget: UnavailabilityBudget
    storm: bool
    now: datetime

    def advance(self, state: DeviceState, seen: Observation) -> DeviceState:
        """Return the state with the step that begins now, and what it waits for."""
        if state.since is None:
            return replace(state, phase=HEALTHY, message="recorded because of recent faults")
        if state.recovered_time is not None:
            return self._recovering(state, seen)
        if not seen.faults:
            text = "sources cannot be evaluated, so nothing changes"
            return replace(state, phase=UNKNOWN, message=text, next_action_time=None)
        return self._faulty(state, seen)

    def _recovering(self, state: DeviceState, seen: Observation) -> DeviceState:
        assert state.recovered_time is not None
        clears_at = later(state.recovered_time, self.settings.clear_after)
        if self.now < clears_at:
            return replace(
                state,
                phase=RECOVERING,
                message="sources are quiet",
                next_action_time=clears_at if self._clears(state, seen) else None,
            )
        if state.flapping:
            text = f"failed {len(state.fault_times)} times: needs 'sully policies clear'"
            return replace(state, phase=FLAPPING, message=text, next_action_time=None)
        text = f"sources are quiet: {proof_message(self.settings, state, seen)}"
        return replace(state, phase=AWAITING_PROOF, message=text, next_action_time=None)

    def _clears(self, state: DeviceState, seen: Observation) -> bool:
        needed = self.settings.needs_proof or state.flapping
        return not needed or is_cleared(state, seen, self.now)

    def _faulty(self, state: DeviceState, seen: Observation) -> DeviceState:
        desired = due_step(self.settings, state, self.now)
        if desired is not None and state.step is not None:
            desired = max(desired, state.step)
        message = "; ".join(fault.message or fault.source for fault in seen.faults)
        if desired is None:
            later = next_step_time(self.settings, state, None, self.now)
            return replace(state, phase=PENDING, message=message, next_action_time=later)
        return self._step(state, seen, desired, message)

    def _step(
        self, state: DeviceState, seen: Observation, desired: int, message: str
    ) -> DeviceState:
        steps = self.settings.steps
        effect = steps[desired].effect
        later = next_step_time(self.settings, state, desired, self.now)
        phase, refusal = self._refusal(state, seen, desired)
        if not phase:
            return replace(
                state,
                phase=TAINTED,
                step=desired,
                effect=effect,
                message=message,
                next_action_time=later,
            )
        if not self.storm and state.effect not in BLOCKING_EFFECTS:
            # What has no consequences may begin.
            harmless = [at for at in range(desired) if steps[at].effect not in BLOCKING_EFFECTS]
            if harmless:
                state = replace(state, step=max(harmless), effect=steps[max(harmless)].effect)
            elif phase == AWAITING_APPROVAL:
                # The rule is what is approved.
                state = replace(state, effect=NONE)
        text = f"{effect} waits: {refusal}"
        return replace(state, phase=phase, message=text, next_action_time=None)

    def _refusal(self, state: DeviceState, seen: Observation, desired: int) -> tuple[str, str]:
        """Return the phase and the reason if a step must not begin; empty if it may."""
        effect = self.settings.steps[desired].effect
        if state.step is not None and desired <= state.step:
            return "", ""
        if self.storm:
            return HELD_BACK, STORM
        if effect not in BLOCKING_EFFECTS or state.effect in BLOCKING_EFFECTS:
            return "", ""
        if self.settings.mode == REQUIRE_APPROVAL and not seen.approved:
            return AWAITING_APPROVAL, "needs 'sully policies approve'"
        reached = self.budget.spend(state.device)
        return (HELD_BACK, reached) if reached else ("", "")


def transition(old: DeviceState | None, new: DeviceState | None, mode: str) -> Notice | None:
    """Return what a change of a state means for people; None if nothing they have to know."""
    if new is None or not new.phase:
        return None
    before = old.effect if old is not None else ""
    if new.effect != before and new.effect and new.phase == TAINTED:
        reason, verb = ("WouldTaint", "Would set") if mode == DRY_RUN else ("TaintSet", "Set")
        return Notice(reason, f"{verb} {new.effect}: {new.message}", warning=True)
    phase = old.phase if old is not None else ""
    if phase == new.phase or new.phase not in _ANNOUNCED:
        return None
    return Notice(new.phase, new.message, warning=True)


_ANNOUNCED: Final = frozenset((HELD_BACK, AWAITING_APPROVAL, AWAITING_PROOF, FLAPPING))
