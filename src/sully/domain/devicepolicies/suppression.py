"""Which taints of drivers a policy suppresses, as rules.

One rule for all devices of the policy, if a rule can select them: so a taint never has an effect,
not even before the controller has seen it. For what a rule cannot express (identities, labels of
nodes, details of taints) one rule for each device that has such a taint.

The rules have a label of their own, because they are not the taints of the policy. They always have
the policy as their owner, and expire: what is no longer maintained must not hide faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from sully.api.resource.annotations import (
    DESCRIPTION,
    EXPIRES_AT,
    POLICY_NAME,
    SUPPRESSES,
)
from sully.api.resource.types import DeviceTaint, DeviceTaintRule, DeviceTaintSelector
from sully.api.sully.types import (
    DEVICE_POLICY_KIND,
    DeviceTaintPolicy,
    DeviceTaintPolicySuppression,
)
from sully.domain.devicepolicies.selection import names_of
from sully.domain.devicepolicies.settings import DRY_RUN, ENFORCE, settings_of
from sully.domain.devicepolicies.sources.evaluation import SourceProblem, taint_matches
from sully.domain.devices.device_rules import (
    build_device_rule,
    device_of,
    label_value,
    owner_reference,
    rule_name,
    shortened_description,
)
from sully.domain.devices.pools import device_id
from sully.domain.devices.suppression import SuppressedTaint, encode, named
from sully.domain.devices.taints import NONE
from sully.domain.placement.results.conditions import PlacementCondition
from sully.machinery.formats.timestamps import format_time

Obj = dict[str, Any]

SUPPRESSION: Final = "sully.dev/suppression"
"""The label of rules that suppress taints of drivers, with the name of their policy."""
SUPPRESSED: Final = "sully.dev/Suppressed"
TAINT_KEY: Final = "sully.dev/suppressed"
UNSUPPORTED: Final = (
    "kube-scheduler and Kubernetes' evictor honor taints of drivers regardless of policies:"
    " suppression works only where Sully schedules and evicts"
)


class Suppressed(msgspec.Struct, frozen=True):
    """A taint of a device that a policy suppresses, until when and why."""

    taint: SuppressedTaint
    until: datetime
    reason: str = ""
    pattern: SuppressedTaint | None = None
    """By what the policy selects it; None if by details."""


def find_suppressed(
    suppressions: Iterable[DeviceTaintPolicySuppression], taints: Iterable[DeviceTaint]
) -> tuple[tuple[Suppressed, ...], tuple[str, ...]]:
    """Return the taints of a device to suppress, and why some could not be judged."""
    suppressed: list[Suppressed] = []
    problems: list[str] = []
    desired = tuple(suppressions)
    for taint in taints:
        for suppression in desired if taint.effect != NONE else ():
            try:
                if taint_matches(suppression, taint):
                    pattern = None if suppression.expression else _pattern(suppression)
                    one = Suppressed(named(taint), suppression.until, suppression.reason, pattern)
                    suppressed.append(one)
            except SourceProblem as problem:
                # It may be a fault: it keeps its effect.
                problems.append(f"suppress {suppression.key}: {problem}")
    return tuple(suppressed), tuple(problems)


def is_enforced(policy: DeviceTaintPolicy) -> bool:
    """Report whether a policy may suppress taints, as far as its mode decides that."""
    return settings_of(policy).mode == ENFORCE


def active(
    suppressed: Mapping[str, tuple[Suppressed, ...]], now: datetime
) -> dict[str, tuple[Suppressed, ...]]:
    """Return what is suppressed now, by device."""
    current = {
        device: tuple(taint for taint in taints if taint.until > now)
        for device, taints in suppressed.items()
    }
    return {device: taints for device, taints in current.items() if taints}


def next_end(policy: DeviceTaintPolicy, now: datetime) -> datetime | None:
    """Return when a suppression ends next."""
    times = (one.until for one in policy.spec.suppress)
    return min((time for time in times if time > now), default=None)


def suppression_rules(
    policy: DeviceTaintPolicy,
    suppressed: Mapping[str, tuple[Suppressed, ...]],
    now: datetime,
    *,
    rule_selectors: bool = True,
) -> dict[str, Obj]:
    """Return the rules that suppress taints now, by device; a name that is left out is empty.

    `rule_selectors`: whether rules may select by classes and expressions.
    """
    desired: dict[str, tuple[Obj, tuple[Suppressed, ...]]] = {}
    general: tuple[Suppressed, ...] = ()
    if _can_be_selected(policy, rule_selectors=rule_selectors):
        general = tuple(
            Suppressed(_pattern(one), one.until, one.reason)
            for one in policy.spec.suppress
            if one.until > now and not one.expression
        )
    if general:
        selector = _selector(policy)
        names = (selector.get(name, "") for name in ("driver", "pool", "device"))
        desired["/".join(names)] = selector, general
    patterns = {one.taint for one in general}
    for device, taints in sorted(active(suppressed, now).items()):
        # Those of the rule for all devices are there already.
        rest = tuple(taint for taint in taints if taint.pattern not in patterns)
        if rest:
            _, before = desired.get(device, ({}, ()))
            desired[device] = device_id(device)._asdict(), (*before, *rest)
    return {device: _rule(policy, device, *one) for device, one in desired.items()}


def _can_be_selected(policy: DeviceTaintPolicy, *, rule_selectors: bool) -> bool:
    """Report whether one rule can select the devices of a policy."""
    selector = policy.spec.selector
    if selector.identities or selector.node_selector is not None:
        return False
    return rule_selectors or not (selector.selectors or selector.device_class_name)


def _selector(policy: DeviceTaintPolicy) -> Obj:
    names = msgspec.to_builtins(names_of(policy.spec.selector))
    return {name: value for name, value in names.items() if value}


def _pattern(suppression: DeviceTaintPolicySuppression) -> SuppressedTaint:
    return SuppressedTaint(suppression.key, suppression.value, suppression.effect)


def _rule(
    policy: DeviceTaintPolicy, device: str, selector: Obj, suppressed: tuple[Suppressed, ...]
) -> Obj:
    name = policy.metadata.name
    rule = build_device_rule(
        device,
        {"key": TAINT_KEY, "effect": NONE},
        name=rule_name(f"{name}-suppress", device),
        labels={SUPPRESSION: label_value(name)},
        annotations={
            POLICY_NAME: name,
            SUPPRESSES: encode(one.taint for one in suppressed),
            EXPIRES_AT: format_time(max(one.until for one in suppressed)),
            DESCRIPTION: _description(suppressed),
        },
        owners=[owner_reference(DEVICE_POLICY_KIND, policy.metadata)],
    )
    rule["spec"]["deviceSelector"] = selector
    return rule


def _description(suppressed: tuple[Suppressed, ...]) -> str:
    reasons = "; ".join(dict.fromkeys(one.reason for one in suppressed if one.reason))
    text = reasons or "suppresses " + ", ".join(sorted({str(one.taint) for one in suppressed}))
    return shortened_description(text)


def suppressing_policy(rule: DeviceTaintRule) -> str:
    """Return the policy that suppresses taints with a rule; empty if none does."""
    metadata = rule.metadata
    return metadata.annotations.get(POLICY_NAME, "") if SUPPRESSION in metadata.labels else ""


def selects_as(rule: DeviceTaintRule, desired: Mapping[str, Obj]) -> bool:
    """Report whether a rule selects what one of the desired rules does."""
    body = desired.get(device_of(rule))
    return body is not None and rule.spec.device_selector == msgspec.convert(
        body["spec"]["deviceSelector"], DeviceTaintSelector
    )


def suppression_finding(
    policy: DeviceTaintPolicy,
    suppressed: Mapping[str, tuple[Suppressed, ...]],
    now: datetime,
    *,
    supported: bool,
) -> PlacementCondition:
    """Return the condition about suppressed taints."""
    if not supported:
        return PlacementCondition(SUPPRESSED, "False", "NotSupported", f"{UNSUPPORTED}.")
    current = active(suppressed, now)
    if settings_of(policy).mode == DRY_RUN:
        text = f"Taints of {len(current)} devices would be suppressed."
        return PlacementCondition(SUPPRESSED, "False", "DryRun", text)
    if current:
        text = f"Taints of {len(current)} devices have no effect, for instance {min(current)}."
        return PlacementCondition(SUPPRESSED, "True", "Suppressed", text)
    if suppressed or all(one.until <= now for one in policy.spec.suppress):
        return PlacementCondition(
            SUPPRESSED, "False", "Expired", "The taints have their effect again."
        )
    return PlacementCondition(SUPPRESSED, "False", "NoTaint", "No driver publishes such a taint.")
