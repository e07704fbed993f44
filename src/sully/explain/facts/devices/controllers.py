"""What policies and maintenances currently do with a device, and what they wait for.

Their rules are not for people to delete: the controller would create them again.
"""

from __future__ import annotations

from collections.abc import Iterator

from sully.client.transport import Key
from sully.domain.devices.taints import SourcedTaint
from sully.domain.tolerations import taint_text
from sully.explain.causes import Note, Source, note
from sully.explain.reader import Reader
from sully.views.kinds import DEVICE_POLICIES, MAINTENANCES


def controller_notes(reader: Reader, device: str) -> Iterator[Note]:
    """Yield what policies and maintenances report on a device."""
    for policy in sorted(
        reader.snapshot.of(DEVICE_POLICIES).values(), key=lambda one: one.metadata.name
    ):
        for state in policy.status.devices:
            if state.device == device and state.message:
                yield note(
                    "PolicyState",
                    policy=policy.metadata.name,
                    phase=state.phase,
                    message=state.message,
                    at=state.next_action_time,
                )
    for maintenance in sorted(
        reader.snapshot.of(MAINTENANCES).values(), key=lambda one: one.metadata.name
    ):
        for unit in maintenance.status.units:
            if device in unit.devices and unit.message:
                yield note(
                    "MaintenanceState",
                    maintenance=maintenance.metadata.name,
                    phase=unit.phase,
                    message=unit.message,
                    at=unit.next_action_time,
                )


def suppression_notes(taints: tuple[SourcedTaint, ...]) -> Iterator[Note]:
    """Yield which taints of the driver have no effect, and why."""
    for taint in taints:
        if (suppression := taint.suppression) is not None:
            yield note(
                "SuppressedTaint",
                taint=taint_text(taint.taint),
                effect=suppression.effect,
                by=suppression.by or f"rule {suppression.rule}",
                until=suppression.until,
            )


def removal_step(reader: Reader, rule: Source, device: str) -> Note:
    """Return how to remove the taint of a rule from a device."""
    noun, _, name = rule.by.partition(" ")
    if noun == "maintenance":
        return note("EndMaintenance", maintenance=name)
    if noun != "policy":
        return note("DeleteRule", rule=rule.origin.partition("/")[2])
    policy = reader.snapshot.get(DEVICE_POLICIES, Key("", name))
    proof = policy.spec.proof.type if policy is not None and policy.spec.proof is not None else ""
    flapping = policy is not None and any(
        state.device == device and state.flapping for state in policy.status.devices
    )
    if policy is None or proof == "Manual" or flapping:
        return note("ClearDevice", policy=name, device=device)
    return note("ProveDevice" if proof == "Job" else "RepairDevice", policy=name)
