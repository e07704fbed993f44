"""The DeviceTaintRules of a policy: one for each device with an effect.

Label and owner reference name the policy; the annotation has the state of the device, so that a
controller that restarts continues where it was. With `onDelete: Keep` there is no owner reference,
so that the rules outlive the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from sully.api.resource.annotations import DESCRIPTION, DESCRIPTION_MAX, POLICY_NAME
from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import (
    DEVICE_POLICY_KIND,
    GROUP,
    VERSION,
    DeviceTaintPolicy,
    DeviceTaintPolicyTaint,
)
from sully.domain.devicepolicies.decisions import TAINTED
from sully.domain.devicepolicies.states import DeviceState
from sully.domain.devices.pools import DeviceId
from sully.machinery.timestamps import TimeError, parse_time

Obj = dict[str, Any]

POLICY: Final = "sully.dev/policy"
"""The label of rules with the name of their policy, or its digest if that is too long."""
STATE: Final = "sully.dev/policy-state"
APPROVED: Final = "sully.dev/approved"
RESUMED_AT: Final = "sully.dev/resumed-at"
_LABEL_MAX: Final = 63
_NAME_MAX: Final = 200


def device_id(text: str) -> DeviceId:
    """Return a device that is written `driver/pool/device`; a pool may have slashes itself."""
    driver, _, rest = text.partition("/")
    pool, _, name = rest.rpartition("/")
    return DeviceId(driver, pool, name)


def policy_label(policy: str) -> str:
    """Return the label value of the rules of a policy."""
    return policy if len(policy) <= _LABEL_MAX else f"{policy[:46]}.{_digest(policy)}"


def policy_name(rule: DeviceTaintRule) -> str:
    """Return the name of the policy that a rule is of; empty if it is of none."""
    metadata = rule.metadata
    return metadata.annotations.get(POLICY_NAME, "") if POLICY in metadata.labels else ""


def rule_name(policy: str, device: str) -> str:
    """Return the name of the rule of a device."""
    return f"{policy[:_NAME_MAX].rstrip('.-')}-{_digest(device)}"


def build_rule(policy: DeviceTaintPolicy, state: DeviceState) -> Obj:
    """Return the rule of a device."""
    name, device = policy.metadata.name, device_id(state.device)
    wanted = _taint(policy)
    taint: Obj = {"key": wanted.key, "effect": state.effect}
    if wanted.value:
        taint["value"] = wanted.value
    return {
        "metadata": {
            "name": rule_name(name, state.device),
            "labels": {POLICY: policy_label(name)},
            "annotations": annotations_of(policy, state) | description_of(state),
            "ownerReferences": owner_references(policy),
        },
        "spec": {
            "deviceSelector": {
                "driver": device.driver,
                "pool": device.pool,
                "device": device.device,
            },
            "taint": taint,
        },
    }


def _taint(policy: DeviceTaintPolicy) -> DeviceTaintPolicyTaint:
    taint = policy.spec.taint
    # Only steps give a device an effect, and steps need a taint.
    assert taint is not None
    return taint


def owner_references(policy: DeviceTaintPolicy) -> list[Obj]:
    """Return the policy as the owner of its rules, if they are deleted with it."""
    return [] if policy.spec.on_delete == "Keep" else [owner_reference(policy)]


def owner_reference(policy: DeviceTaintPolicy) -> Obj:
    """Return the policy as an owner."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": DEVICE_POLICY_KIND,
        "name": policy.metadata.name,
        "uid": policy.metadata.uid,
        "controller": True,
    }


def annotations_of(policy: DeviceTaintPolicy, state: DeviceState) -> dict[str, str]:
    """Return what the annotations of a rule say about its device."""
    return {POLICY_NAME: policy.metadata.name, STATE: encode_state(state)}


def description_of(state: DeviceState) -> dict[str, str]:
    """Return why the device has the taint; what it waits for is no reason for that."""
    text = state.message.encode()[:DESCRIPTION_MAX].decode(errors="ignore")
    return {DESCRIPTION: text} if state.phase == TAINTED else {}


def is_current(policy: DeviceTaintPolicy, state: DeviceState, rule: DeviceTaintRule) -> bool:
    """Report whether a rule is as it should be."""
    taint, wanted = rule.spec.taint, _taint(policy)
    if (taint.key, taint.value, taint.effect) != (wanted.key, wanted.value, state.effect):
        return False
    owners = {owner.uid for owner in rule.metadata.owner_references}
    if owners != {owner["uid"] for owner in owner_references(policy)}:
        return False
    annotations = annotations_of(policy, state) | description_of(state)
    return all(rule.metadata.annotations.get(name) == text for name, text in annotations.items())


def encode_state(state: DeviceState) -> str:
    """Return a state as the value of an annotation: without what follows from the rest."""
    kept = msgspec.structs.replace(state, phase="", message="", next_action_time=None)
    return msgspec.json.encode(_without_empty(msgspec.to_builtins(kept))).decode()


def _without_empty(fields: Obj) -> Obj:
    return {
        name: value
        for name, value in sorted(fields.items())
        if value not in (None, "", ()) and (name, value) != ("proofFailures", 0)
    }


def decode_state(rule: DeviceTaintRule) -> DeviceState:
    """Return the state of the device of a rule; the effect is that of the rule.

    A rule whose annotation was damaged keeps its taint, and its times start again.
    """
    selector = rule.spec.device_selector
    names = (selector.driver, selector.pool, selector.device) if selector is not None else ()
    device = "/".join(name or "" for name in names)
    try:
        state = msgspec.json.decode(rule.metadata.annotations.get(STATE, ""), type=DeviceState)
    except msgspec.MsgspecError:
        state = DeviceState(device=device, since=rule.spec.taint.time_added)
    effect = rule.spec.taint.effect
    step = state.step if state.effect == effect else None
    return msgspec.structs.replace(state, device=device, effect=effect, step=step)


def time_in(annotations: Mapping[str, str], name: str) -> datetime | None:
    """Return the time in an annotation; an invalid one does not count."""
    try:
        return parse_time(annotations.get(name, ""))
    except TimeError:
        return None


def is_approved(annotations: Mapping[str, str]) -> bool:
    """Report whether somebody approved what a rule is to do."""
    return annotations.get(APPROVED, "").strip().lower() == "true"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
