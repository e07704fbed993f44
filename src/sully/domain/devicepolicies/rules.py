"""The DeviceTaintRules of a policy: one for each device with an effect.

Label and owner reference name the policy; the annotation has the state of the device, so that a
controller that restarts continues where it was. With `onDelete: Keep` there is no owner reference,
so that the rules outlive the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from sully.api.resource.annotations import DESCRIPTION, POLICY_NAME
from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import DEVICE_POLICY_KIND, DeviceTaintPolicy
from sully.domain.devicepolicies.decisions import TAINTED
from sully.domain.devicepolicies.states import DeviceState, has_rule
from sully.domain.devices.device_rules import (
    build_device_rule,
    device_of,
    label_value,
    owner_reference,
    rule_name,
    shortened_description,
)
from sully.machinery.formats.timestamps import TimeError, parse_time
from sully.machinery.serialization.notes import have_zones, read_note

Obj = dict[str, Any]

POLICY: Final = "sully.dev/policy"
"""The label of rules with the name of their policy, or its digest if that is too long."""
STATE: Final = "sully.dev/policy-state"
APPROVED: Final = "sully.dev/approved"
RESUMED_AT: Final = "sully.dev/resumed-at"


def policy_name(rule: DeviceTaintRule) -> str:
    """Return the name of the policy that a rule is of; empty if it is of none."""
    metadata = rule.metadata
    return metadata.annotations.get(POLICY_NAME, "") if POLICY in metadata.labels else ""


def build_rule(policy: DeviceTaintPolicy, state: DeviceState) -> Obj:
    """Return the rule of a device."""
    name, taint = policy.metadata.name, policy.spec.taint
    # Only steps give a device an effect, and steps need a taint.
    assert taint is not None
    annotations = {POLICY_NAME: name, STATE: encode_state(state)}
    if state.phase == TAINTED:
        # Why the device has the taint; what it waits for is not the reason.
        annotations[DESCRIPTION] = shortened_description(state.message)
    value = {"value": taint.value} if taint.value else {}
    remaining = policy.spec.on_delete == "Keep"
    return build_device_rule(
        state.device,
        {"key": taint.key, "effect": state.effect, **value},
        name=rule_name(name, state.device),
        labels={POLICY: label_value(name)},
        annotations=annotations,
        owners=[] if remaining else [owner_reference(DEVICE_POLICY_KIND, policy.metadata)],
    )


def desired_rules(policy: DeviceTaintPolicy, states: Mapping[str, DeviceState]) -> dict[str, Obj]:
    """Return the rules of the devices with an effect, by device."""
    return {
        device: build_rule(policy, state) for device, state in states.items() if has_rule(state)
    }


def encode_state(state: DeviceState) -> str:
    """Return a state as the value of an annotation: without what follows from the rest."""
    remaining = msgspec.structs.replace(state, phase="", message="", next_action_time=None)
    return msgspec.json.encode(_without_empty(msgspec.to_builtins(remaining))).decode()


def _without_empty(fields: Obj) -> Obj:
    return {
        name: value
        for name, value in sorted(fields.items())
        if value not in (None, "", ()) and (name, value) != ("proofFailures", 0)
    }


def _times(state: DeviceState) -> Iterator[datetime]:
    values = (*msgspec.structs.astuple(state), *state.fault_times)
    return (value for value in values if isinstance(value, datetime))


def decode_state(rule: DeviceTaintRule) -> DeviceState:
    """Return the state of the device of a rule; the effect is that of the rule.

    A rule whose annotation was damaged keeps its taint, and its times start again.
    """
    device = device_of(rule)
    state = read_note(rule.metadata.annotations.get(STATE, ""), DeviceState)
    if state is None or not have_zones(_times(state)):
        state = DeviceState(device=device, since=rule.spec.taint.time_added)
    effect = rule.spec.taint.effect
    step = state.step if state.effect == effect else None
    return msgspec.structs.replace(state, device=device, effect=effect, step=step)


def acting_states(
    states: Mapping[str, DeviceState], rules: Iterable[DeviceTaintRule]
) -> dict[str, DeviceState]:
    """Return the states of a policy that begins to act: since when, but only rules are taints."""
    ready = {
        device: msgspec.structs.replace(state, effect="", step=None)
        for device, state in states.items()
    }
    return ready | {state.device: state for state in map(decode_state, rules)}


def time_in(annotations: Mapping[str, str], name: str) -> datetime | None:
    """Return the time in an annotation; an invalid one does not count."""
    try:
        return parse_time(annotations.get(name, ""))
    except TimeError:
        return None


def is_approved(annotations: Mapping[str, str]) -> bool:
    """Report whether a user approved the rule."""
    return annotations.get(APPROVED, "").strip().lower() == "true"
