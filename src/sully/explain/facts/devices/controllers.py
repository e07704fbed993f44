"""What policies and maintenances currently do with a device, and what they wait for.

Their rules are not for people to delete: the controller would create them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sully.client.transport import Key
from sully.domain.devices.taints import SourcedTaint
from sully.domain.drain.rules import is_cordon
from sully.domain.tolerations import taint_text
from sully.explain.causes import Note, Source, note
from sully.explain.reader import Reader
from sully.views.kinds import DEVICE_POLICIES, MAINTENANCES, RULES


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


def removal_conditions(rules: Iterable[Source]) -> Iterator[Note]:
    """Yield what has to happen so that rules do not taint devices any more."""
    by_creator: dict[str, list[str]] = {}
    for rule in rules:
        creator = rule.by if _creator(rule)[0] else ""
        by_creator.setdefault(creator, []).append(_rule_name(rule))
    for creator, names in by_creator.items():
        noun, _, name = creator.partition(" ")
        rule_names = list(dict.fromkeys(names))
        if noun == "maintenance":
            yield note("MaintenanceCancelled", maintenance=name)
        elif noun == "policy":
            yield note("PolicyRulesDeleted", policy=name, rules=rule_names)
        else:
            yield note("RulesDeleted", rules=rule_names)


def stop_step(rule: Source) -> Note:
    """Return how to stop evictions of a rule for good."""
    noun, name = _creator(rule)
    if noun == "maintenance":
        return note("StopMaintenance", maintenance=name)
    return note("StopPolicy", policy=name) if noun == "policy" else note("StopRule")


def _creator(rule: Source) -> tuple[str, str]:
    """Return what creates a rule again when it is deleted: a policy or a maintenance, its name."""
    noun, _, name = rule.by.partition(" ")
    return (noun, name) if name and noun in ("policy", "maintenance") else ("", "")


def _rule_name(rule: Source) -> str:
    return rule.origin.partition("/")[2]


def removal_step(reader: Reader, rule: Source, device: str) -> Note:
    """Return how to remove the taint of a rule from a device."""
    noun, name = _creator(rule)
    if noun == "maintenance":
        return note("EndMaintenance", maintenance=name)
    policy = reader.snapshot.get(DEVICE_POLICIES, Key("", name))
    # A rule can outlive its policy, and then nothing creates it again.
    is_gone = policy is None and reader.snapshot.gap(DEVICE_POLICIES) is None
    if noun != "policy" or is_gone:
        tainting = reader.snapshot.get(RULES, Key("", _rule_name(rule)))
        if tainting is not None and is_cordon(tainting):
            return note("UncordonDevice", device=device)
        return note("DeleteRule", rule=_rule_name(rule))
    proof = policy.spec.proof.type if policy is not None and policy.spec.proof is not None else ""
    flapping = policy is not None and any(
        state.device == device and state.flapping for state in policy.status.devices
    )
    if policy is None or proof == "Manual" or flapping:
        return note("ClearDevice", policy=name, device=device)
    return note("ProveDevice" if proof == "Job" else "RepairDevice", policy=name)
