"""Why a device is free, in use, kept from new pods, or not to be had at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sully.api.resource.types import DeviceAttribute
from sully.domain.allocation.availability import Obstacle
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.taints import SourcedTaint, blocks
from sully.domain.eviction.judge import USUAL, Terms
from sully.domain.explaining.holdings import Holding, evicting, standing, toleration_text
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.story import Explanation, Table, tables
from sully.domain.explaining.wording import are, listed, mark, moment, noun


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """What is known of a device."""

    id: DeviceId
    now: datetime
    sources: Sources
    device: EffectiveDevice | None = None
    """None if no current slice has it."""
    where: str = ""
    """The node or nodes that it is for."""
    obstacle: Obstacle | None = None
    """What keeps everybody from it, other than its taints and whoever has it."""
    taints: tuple[SourcedTaint, ...] = ()
    """Also those of a device that is not published."""
    holdings: tuple[Holding, ...] = ()
    terms: Terms = USUAL


def explain_device(facts: DeviceFacts) -> Explanation:
    """Say how a device is, and why."""
    if facts.device is None:
        return _unpublished(facts)
    taken = any(not each.admin for each in facts.holdings)
    if taken or list(_due(facts)):
        return _used(facts)
    return _unusable(facts, facts.obstacle) if facts.obstacle is not None else _unused(facts)


def _story(facts: DeviceFacts, state: str, cause: str, *summary: str, **more: Any) -> Explanation:
    return Explanation(
        kind="Device",
        name=str(facts.id),
        state=state,
        cause=cause,
        summary=(*summary, *_closed(facts, state), *_lookers(facts), *_patched(facts)),
        details=tables(_taint_table(facts), _holders(facts), _attributes(facts)),
        **more,
    )


def _unpublished(facts: DeviceFacts) -> Explanation:
    users = listed([each.claim for each in facts.holdings])
    text = (
        f"No driver publishes device {facts.id} any more, but claim {users} still"
        f" {'has' if len(facts.holdings) == 1 else 'have'} it."
    )
    help_ = "See that the driver runs; the allocation ends with its last pod."
    return _story(
        facts,
        "Unpublished",
        "StillAllocated",
        text,
        *_marks(facts),
        because=tuple(f"ResourceClaim/{each.claim}" for each in facts.holdings),
        remedies=(help_,),
    )


def _unusable(facts: DeviceFacts, obstacle: Obstacle) -> Explanation:
    text = f"Device {facts.id}{facts.where} cannot be had ({obstacle.text})."
    help_ = "Its driver has to publish the whole pool, without contradictions."
    if obstacle.cause == "CountersUsed":
        help_ = "Wait until devices that draw on the same counters are free."
    return _story(facts, "Unusable", obstacle.cause, text, *_marks(facts), remedies=(help_,))


def _unused(facts: DeviceFacts) -> Explanation:
    blocking = [each for each in facts.taints if blocks(each.taint)]
    if not blocking:
        cause = "TaintWithoutEffect" if facts.taints else "NothingAgainst"
        text = f"Device {facts.id}{facts.where} is free, and nothing keeps pods off it."
        return _story(facts, "Free", cause, text, *_marks(facts), because=_origins(facts.taints))
    names = listed([facts.sources.of(each).told() for each in _origins(blocking)], 2)
    keep = "keeps" if len(_origins(blocking)) == 1 else "keep"
    text = (
        f"Nobody uses device {facts.id}{facts.where}: {names} {keep} off everybody who does not"
        " tolerate it."
    )
    return _story(
        facts,
        "Tainted",
        "KeepsNewPodsOff",
        text,
        *_marks(facts),
        because=_origins(blocking),
        remedies=(_undo(facts, blocking),),
    )


def _used(facts: DeviceFacts) -> Explanation:
    text = f"Device {facts.id}{facts.where} is in use by {listed(_users(facts)) or 'nobody'}"
    due = list(_due(facts))
    if due:
        first = min(at for at, _ in due)
        when = "now" if first <= facts.now else f"at {moment(first, facts.now)}"
        origins = _origins([each for _, each in due])
        names = listed([facts.sources.of(each).told() for each in origins], 2)
        if _all_leave(facts):
            return _story(
                facts,
                "InUse",
                "UsersLeave",
                f"{text}, on the way out because of {names}.",
                *_marks(facts),
                because=_origins(facts.taints),
            )
        return _story(
            facts,
            "InUse",
            "UsersMustLeave",
            f"{text}, who must leave it {when} because of {names}.",
            *_marks(facts),
            because=_origins(facts.taints),
            remedies=(_undo(facts, facts.taints),),
        )
    if not facts.taints:
        claims = tuple(f"ResourceClaim/{each.claim}" for each in facts.holdings)
        return _story(
            facts, "InUse", "NothingAgainst", f"{text}. It is not tainted.", because=claims
        )
    return _story(
        facts,
        "InUse",
        "UsersMayStay",
        f"{text}, who may stay in spite of {_all(facts)}.",
        *_marks(facts),
        because=_origins(facts.taints),
    )


def _all(facts: DeviceFacts) -> str:
    return listed([facts.sources.of(each).told() for each in _origins(facts.taints)], 2)


def _users(facts: DeviceFacts) -> Iterator[str]:
    for each in facts.holdings:
        if not each.admin:
            yield f"pod {listed(each.pods, 2)}" if each.pods else f"claim {each.claim}"


def _due(facts: DeviceFacts) -> Iterator[tuple[datetime, SourcedTaint]]:
    for held in facts.holdings:
        yield from evicting(held, facts.sources, now=facts.now, terms=facts.terms)


def _all_leave(facts: DeviceFacts) -> bool:
    """Say whether all who must leave are about to be gone."""
    now, terms = facts.now, facts.terms
    must = [
        held for held in facts.holdings if list(evicting(held, facts.sources, now=now, terms=terms))
    ]
    return all(set(held.pods) == set(held.leaving) for held in must)


def _marks(facts: DeviceFacts) -> Iterator[str]:
    for each in facts.taints:
        evicts = each.taint.effect in facts.terms.effects
        paused = evicts and facts.sources.of(str(each.origin)).paused is not None
        tail = "; eviction by it is paused" if paused else ""
        yield f"It carries {facts.sources.told_of(each, facts.now)}{tail}."


def _origins(taints: tuple[SourcedTaint, ...] | list[SourcedTaint]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(each.origin) for each in taints))


def _undo(facts: DeviceFacts, taints: tuple[SourcedTaint, ...] | list[SourcedTaint]) -> str:
    origins = _origins(taints)
    rules = [each for each in origins if each.startswith("DeviceTaintRule/")]
    others = [each for each in origins if each not in rules]
    parts = [f"delete {noun(each)}" for each in rules]
    for each in others:
        source = facts.sources.of(each)
        parts.append(f"have {source.by or noun(each)} clear its taint")
    return f"To lift: {'; '.join(parts)}."


def _closed(facts: DeviceFacts, state: str) -> Iterator[str]:
    if facts.obstacle is not None and state == "InUse":
        yield f"Even when it is free, nobody can have it ({facts.obstacle.text})."


def _lookers(facts: DeviceFacts) -> Iterator[str]:
    names = [each.claim for each in facts.holdings if each.admin]
    if names:
        look = "looks" if len(names) == 1 else "look"
        yield f"Claim {listed(names)} {look} at it with admin access, which keeps nobody off."


def _patched(facts: DeviceFacts) -> Iterator[str]:
    if facts.device is None:
        return
    changed: dict[str, list[str]] = {}
    for origins in (facts.device.attribute_origins, facts.device.capacity_origins):
        for name, origin in origins.items():
            changed.setdefault(str(origin), []).append(name)
    for patch, names in sorted(changed.items()):
        by = facts.sources.of(patch).told()
        yield f"{listed(sorted(names))} {are(len(names))} set by {by}, not by the driver."


# -- details --------------------------------------------------------------------------------------


def _taint_table(facts: DeviceFacts) -> Table:
    rows = []
    for each in facts.taints:
        told = mark(each.taint), str(each.origin)
        users = [
            (held.claim, standing(each, held.tolerations, now=facts.now, terms=facts.terms))
            for held in facts.holdings
        ]
        alone = "keeps new pods off" if blocks(each.taint) else "has no effect"
        rows += [(*told, *user) for user in users or [("", alone)]]
    return Table("Taints", ("taint", "origin", "claim", "standing"), tuple(rows))


def _holders(facts: DeviceFacts) -> Table:
    rows = tuple(
        (each.claim, ", ".join(each.pods), ", ".join(map(toleration_text, each.tolerations)))
        for each in facts.holdings
    )
    return Table("Users", ("claim", "pods", "tolerations"), rows)


def _attributes(facts: DeviceFacts) -> Table:
    device = facts.device
    if device is None:
        return Table("Attributes", ("name", "value", "origin"), ())
    known = [
        (name, attribute_text(value), str(device.attribute_origin(name)))
        for name, value in sorted(device.attributes.items())
    ]
    known += [
        (name, amount.value, str(device.capacity_origin(name)))
        for name, amount in sorted(device.capacity.items())
    ]
    known += [
        (name, "(removed)", str(origin))
        for name, origin in sorted(device.attribute_origins.items())
        if name not in device.attributes
    ]
    return Table("Attributes", ("name", "value", "origin"), tuple(known))


def attribute_text(attribute: DeviceAttribute) -> str:
    """Write the value of an attribute, of whatever type."""
    for field in attribute.__struct_fields__:
        value = getattr(attribute, field)
        if value is not None:
            return str(value).lower() if isinstance(value, bool) else str(value)
    return ""
