"""DeviceTaintPolicies: what they do with which devices, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sully.api.sully.types import DeviceTaintPolicy, DeviceTaintPolicyDevice
from sully.client.transport import Key
from sully.domain.devicepolicies.decisions import AWAITING_APPROVAL, FLAPPING, HELD_BACK
from sully.domain.devicepolicies.proofs import AWAITING_PROOF
from sully.domain.devicepolicies.settings import DRY_RUN
from sully.domain.devicepolicies.status import PROBLEM, PROOF
from sully.domain.devicepolicies.suppression import SUPPRESSED
from sully.explain.causes import DevicePolicyFacts, Finding, Note, note
from sully.explain.explanation import Table, tables
from sully.explain.reader import Reader
from sully.explain.text import time_text
from sully.machinery.meta import find_condition, is_condition_true
from sully.views.kinds import DEVICE_POLICIES


def find_device_policy(reader: Reader, key: Key) -> Finding | None:
    """Find out about a policy by what its controller reports."""
    policy = reader.snapshot.get(DEVICE_POLICIES, key)
    if policy is None:
        return None
    status = policy.status
    return Finding(
        kind=DEVICE_POLICIES.kind,
        name=key.name,
        cause=_cause(policy),
        facts=DevicePolicyFacts(
            name=key.name,
            mode=policy.spec.mode,
            taint=policy.spec.taint.key if policy.spec.taint is not None else "",
            devices=status.selected,
            faulty=status.faulty,
            unavailable=status.unavailable,
            waiting=status.phases.get(AWAITING_APPROVAL, 0),
            held=status.phases.get(HELD_BACK, 0),
            proving=status.phases.get(AWAITING_PROOF, 0),
            flapping=status.phases.get(FLAPPING, 0),
            proof=_proof(policy),
            manual=policy.spec.proof is not None and policy.spec.proof.type == "Manual",
            at=status.next_action_time,
        ),
        since=status.storm_since,
        also=tuple(_notes(policy)),
        because=tuple(f"Device/{device.device}" for device in status.devices if device.effect),
        details=tables(_steps(policy), _devices(policy, reader.now)),
    )


def _notes(policy: DeviceTaintPolicy) -> Iterator[Note]:
    """Yield what does not work, and which taints of drivers have no effect."""
    for type_ in (PROBLEM, SUPPRESSED):
        condition = find_condition(policy.status.conditions, type_)
        if condition is None:
            continue
        if condition.status == "True" or condition.reason == "NotSupported":
            yield note("PolicyProblem", message=condition.message)


def _cause(policy: DeviceTaintPolicy) -> str:
    status = policy.status
    if not status.observed_generation:
        return "NotProcessed"
    if status.storm_since is not None:
        return "StormOfFaults"
    if not status.selected:
        return "SelectsNoDevice"
    if policy.spec.mode == DRY_RUN:
        return "DryRun"
    if status.phases.get(AWAITING_APPROVAL):
        return "ApprovalNeeded"
    if status.phases.get(HELD_BACK):
        return "LimitReached"
    return _cause_of_proofs(policy)


def _cause_of_proofs(policy: DeviceTaintPolicy) -> str:
    status = policy.status
    if is_condition_true(policy.status.conditions, PROOF):
        return "ProofFailed"
    if status.phases.get(AWAITING_PROOF):
        return "ProofNeeded"
    if status.phases.get(FLAPPING):
        return "DevicesFlap"
    if status.faulty or status.unavailable:
        return "FaultsFound"
    return "NotEvaluated" if is_condition_true(policy.status.conditions, PROBLEM) else "NoFault"


def _proof(policy: DeviceTaintPolicy) -> str:
    """Return why proofs fail, or what the first of them waits for."""
    failed = find_condition(policy.status.conditions, PROOF)
    if failed is not None and failed.status == "True":
        return failed.message
    waiting = (one for one in policy.status.devices if one.phase == AWAITING_PROOF and one.message)
    return next((f"{one.device}: {one.message}" for one in waiting), "")


def _steps(policy: DeviceTaintPolicy) -> Table:
    rows = tuple(
        (step.effect, step.after or "0s", step.min_severity or "Minor")
        for step in policy.spec.steps
    )
    return Table("Steps", ("effect", "after", "minimum severity"), rows)


def _devices(policy: DeviceTaintPolicy, now: datetime) -> Table:
    rows = tuple(_row(device, now) for device in policy.status.devices)
    return Table("Devices", ("device", "phase", "effect", "next", "reason"), rows)


def _row(device: DeviceTaintPolicyDevice, now: datetime) -> tuple[str, ...]:
    next_ = device.next_action_time
    when = time_text(next_, now) if next_ is not None else ""
    return device.device, device.phase, device.effect, when, device.message
