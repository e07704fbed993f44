"""The status of a policy: counts, devices and conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from sully.api.sully.conditions import APPLIED
from sully.api.sully.types import DeviceTaintPolicy
from sully.domain.devicepolicies.decisions import (
    HELD_BACK,
    PHASES,
    PolicyDecision,
    unavailable_devices,
)
from sully.domain.devicepolicies.limits import Groups
from sully.domain.devicepolicies.settings import DRY_RUN, settings_of
from sully.domain.devicepolicies.states import DeviceState, has_rule
from sully.domain.placement.results.conditions import PlacementCondition
from sully.machinery.formats.timestamps import format_micro_time, format_time

Obj = dict[str, Any]

DEVICES_MAX: Final = 256
STORM: Final = "sully.dev/Storm"
HELD: Final = "sully.dev/HeldBack"
PROBLEM: Final = "sully.dev/SourceProblem"
PROOF: Final = "sully.dev/ProofFailed"
_NO_FAILURE: Final = ("proofFailures", 0)


def status_fields(policy: DeviceTaintPolicy, decision: PolicyDecision, groups: Groups) -> Obj:
    """Return the status of a policy without its conditions; None removes a field."""
    states = decision.states.values()
    next_action, storm = decision.next_action_time, decision.storm_since
    return {
        "observedGeneration": policy.metadata.generation,
        "selected": groups.total,
        "faulty": sum(is_faulty(state) for state in states),
        "unavailable": len(unavailable_devices(states)),
        "phases": _phases(states),
        "devices": [encode(state) for state in listed(states)] or None,
        "nextActionTime": format_time(next_action) if next_action is not None else None,
        "stormSince": format_micro_time(storm) if storm is not None else None,
    }


def _phases(states: Collection[DeviceState]) -> Obj:
    """Count the phases; a merge patch removes those that are None."""
    counts = Counter(state.phase for state in states)
    return {phase: counts.get(phase) for phase in PHASES}


def is_faulty(state: DeviceState) -> bool:
    """Report whether a device has a fault now."""
    return state.since is not None and state.recovered_time is None


def listed(states: Iterable[DeviceState]) -> list[DeviceState]:
    """Return the devices that the status has room for.

    First those without a rule, whose state is nowhere else.
    """
    return sorted(states, key=lambda state: (has_rule(state), state.device))[:DEVICES_MAX]


def encode(state: DeviceState) -> Obj:
    """Return the JSON form of a device."""
    fields: Obj = msgspec.to_builtins(state) | {"sources": list(state.sources)}
    times = {
        "since": state.since,
        "majorSince": state.major_since,
        "criticalSince": state.critical_since,
        "recoveredTime": state.recovered_time,
        "proofFailedTime": state.proof_failed_time,
    }
    fields |= {name: format_micro_time(time) for name, time in times.items() if time is not None}
    fields["faultTimes"] = [format_micro_time(time) for time in state.fault_times]
    if state.next_action_time is not None:
        fields["nextActionTime"] = format_time(state.next_action_time)
    return {
        name: value
        for name, value in fields.items()
        if value not in (None, "", []) and value is not False and (name, value) != _NO_FAILURE
    }


def findings(
    policy: DeviceTaintPolicy, decision: PolicyDecision, groups: Groups, problems: Mapping[str, str]
) -> list[PlacementCondition]:
    """Return the conditions of a policy."""
    return [
        _applied(policy, decision, groups),
        _storm(decision),
        _held(decision),
        _problem(problems),
    ]


def _applied(
    policy: DeviceTaintPolicy, decision: PolicyDecision, groups: Groups
) -> PlacementCondition:
    count = len(unavailable_devices(decision.states.values()))
    text = f"{groups.total} devices selected, {count} unavailable."
    if settings_of(policy).mode == DRY_RUN:
        text = f"{groups.total} devices selected, {count} would be unavailable."
        return PlacementCondition(APPLIED, "False", "DryRun", text)
    if not groups.total:
        return PlacementCondition(APPLIED, "False", "NoDevice", text)
    return PlacementCondition(APPLIED, "True", "Applied", text)


def _storm(decision: PolicyDecision) -> PlacementCondition:
    if decision.storm_since is None:
        return PlacementCondition(STORM, "False", "NoStorm", "")
    text = "Many devices have new faults: no further step begins until the policy is resumed."
    return PlacementCondition(STORM, "True", "TooManyFaults", text)


def _held(decision: PolicyDecision) -> PlacementCondition:
    held = [state for state in decision.states.values() if state.phase == HELD_BACK]
    if not held:
        return PlacementCondition(HELD, "False", "WithinLimits", "")
    text = f"{len(held)} devices wait, for instance {held[0].device}: {held[0].message}."
    return PlacementCondition(HELD, "True", "LimitReached", text)


def _problem(problems: Mapping[str, str]) -> PlacementCondition:
    if not problems:
        return PlacementCondition(PROBLEM, "False", "NoProblem", "")
    device = min(problems)
    text = f"Cannot be evaluated for {len(problems)} devices, for instance {device}: "
    return PlacementCondition(PROBLEM, "True", "EvaluationFailed", f"{text}{problems[device]}")


def proof_finding(decision: PolicyDecision, problems: Mapping[str, str]) -> PlacementCondition:
    """Return the condition about Jobs that prove devices healthy."""
    if problems:
        device = min(problems)
        text = f"No Job can be created for {len(problems)} devices, for instance {device}: "
        return PlacementCondition(PROOF, "True", "CannotStart", f"{text}{problems[device]}")
    failed = [state for state in decision.states.values() if state.proof_failures]
    if not failed:
        return PlacementCondition(PROOF, "False", "NoFailure", "")
    text = f"{len(failed)} devices failed, for instance {failed[0].device}: "
    return PlacementCondition(PROOF, "True", "JobFailed", f"{text}{failed[0].proof_message}")
