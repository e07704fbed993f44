"""What a DeviceTaintPolicy would do to the devices of a snapshot, if their faults last.

The decisions are those of the controller, `domain/devicepolicies`, with a virtual clock. Sources
stay as they are in the snapshot; nothing is approved or cleared.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from sully.api.resource.types import DeviceTaint, DeviceTaintRule
from sully.api.sully.types import DeviceTaintPolicy
from sully.client.transport import Key
from sully.domain.devicepolicies.decisions import PolicyContext, decide
from sully.domain.devicepolicies.rules import (
    RESUMED_AT,
    acting_states,
    desired_rules,
    policy_name,
    time_in,
)
from sully.domain.devicepolicies.settings import settings_of
from sully.domain.devicepolicies.states import DeviceState
from sully.domain.devicepolicies.suppression import (
    Suppressed,
    active,
    selects_as,
    suppressing_policy,
    suppression_rules,
)
from sully.domain.devices.device_rules import as_stored, is_current
from sully.planning.dryrun.changes import Change, Put, Remove
from sully.views.devicepolicies.facts import FactsView
from sully.views.devicepolicies.policy_devices import PolicyDevices
from sully.views.kinds import CLAIMS, DEVICE_HEALTH, DEVICE_POLICIES, POLICY_NODES, RULES
from sully.views.snapshot.snapshot import Snapshot

HORIZON: Final = timedelta(days=7)
_MAX_DECISIONS: Final = 1000


class PlannedStep(msgspec.Struct, frozen=True):
    """An effect that a device would get."""

    effect: str
    at: datetime


class PolicyForecast(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy would do."""

    policy: DeviceTaintPolicy
    selected: int
    states: dict[str, DeviceState]
    """After all steps."""
    steps: dict[str, tuple[PlannedStep, ...]]
    """What happens to each device, in order; the first may be true already."""
    problems: dict[str, str]
    suppressed: dict[str, tuple[Suppressed, ...]]
    """Taints of drivers that it would suppress, by device."""
    suppresses: bool
    """Whether that has an effect where these components act."""


def forecast(policy: DeviceTaintPolicy, snapshot: Snapshot) -> PolicyForecast:
    """Return what a policy would do with the devices as they are."""
    now = snapshot.taken
    facts = FactsView(
        inventory=snapshot.inventory,
        claims=snapshot.of(CLAIMS),
        nodes=snapshot.of(POLICY_NODES),
        health=snapshot.of(DEVICE_HEALTH),
    )
    devices = PolicyDevices(policy, facts)
    devices.update(now)
    settings = settings_of(policy)
    stored = snapshot.get(DEVICE_POLICIES, Key("", policy.metadata.name)) or policy
    # Times count since the fault was first seen, also while the policy only reported.
    before = {state.device: state for state in stored.status.devices}
    states = acting_states(before, rules_of(policy, snapshot))
    states = {device: one for device, one in states.items() if not devices.is_excluded(device)}
    if policy.spec.taint is None:
        states = {}
    steps: dict[str, list[PlannedStep]] = {}
    time, storm = now, stored.status.storm_since
    resumed = time_in(stored.metadata.annotations, RESUMED_AT)
    for _ in range(_MAX_DECISIONS):
        seen = devices.observations(states)
        groups = devices.groups({*states, *seen})
        context = PolicyContext(groups=groups, storm_since=storm, resumed_at=resumed, now=time)
        decision = decide(settings, states, seen, context)
        storm = decision.storm_since
        for device, state in decision.states.items():
            if state.effect and state.effect != getattr(states.get(device), "effect", ""):
                steps.setdefault(device, []).append(PlannedStep(state.effect, time))
        states = dict(decision.states)
        if decision.requeue_at is None or decision.requeue_at > now + HORIZON:
            break
        time = max(decision.requeue_at, time)
    return PolicyForecast(
        policy=policy,
        selected=devices.groups(()).total,
        states=states,
        steps={device: tuple(taken) for device, taken in steps.items()},
        problems=dict(devices.problems),
        suppressed=active(devices.suppressed, now),
        suppresses=snapshot.control_plane.honors_suppressions,
    )


def rules_of(policy: DeviceTaintPolicy, snapshot: Snapshot) -> Iterator[DeviceTaintRule]:
    """Yield the rules that a policy has now."""
    for rule in snapshot.of(RULES).values():
        if policy_name(rule) == policy.metadata.name:
            yield rule


def rule_changes(planned: PolicyForecast, snapshot: Snapshot) -> list[Change]:
    """Return the rules after all steps, as changes of what there is now."""
    desired = desired_rules(planned.policy, planned.states)
    current = {rule.metadata.name: rule.spec.taint for rule in rules_of(planned.policy, snapshot)}
    changes: list[Change] = [
        Put(RULES, as_stored(body, snapshot.taken))
        for body in desired.values()
        if not _is_same(body["spec"]["taint"], current.get(body["metadata"]["name"]))
    ]
    changes.extend(_suppression_changes(planned, snapshot))
    names = {body["metadata"]["name"] for body in desired.values()}
    changes.extend(
        Remove(RULES, Key("", rule.metadata.name))
        for rule in rules_of(planned.policy, snapshot)
        if rule.metadata.name not in names
    )
    return changes


def _suppression_changes(planned: PolicyForecast, snapshot: Snapshot) -> Iterator[Change]:
    policy = planned.policy
    rules = {
        rule.metadata.name: rule
        for rule in snapshot.of(RULES).values()
        if suppressing_policy(rule) == policy.metadata.name
    }
    bodies = suppression_rules(policy, planned.suppressed, snapshot.taken)
    for desired in bodies.values() if planned.suppresses else ():
        rule = rules.pop(desired["metadata"]["name"], None)
        if rule is None or not (selects_as(rule, bodies) and is_current(rule, desired)):
            yield Put(RULES, as_stored(desired, snapshot.taken))
    yield from (Remove(RULES, Key("", name)) for name in rules)


def _is_same(desired: dict[str, Any], taint: DeviceTaint | None) -> bool:
    return taint is not None and desired == {
        name: value
        for name, value in (("key", taint.key), ("value", taint.value), ("effect", taint.effect))
        if value
    }
