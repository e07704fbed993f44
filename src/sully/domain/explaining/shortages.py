"""An account of refused devices in words: which request lacks what, and what speaks against it.

The account (`domain/scheduling/account.py`) has the numbers; the claims have what they are about.
What would help is nearest.py's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from sully.api.resource.claim_types import (
    DeviceConstraint,
    DeviceToleration,
    ResourceClaim,
)
from sully.api.resource.types import DeviceSelector
from sully.domain.allocation.requests import claim_key
from sully.domain.allocation.toleration_expiry import expires
from sully.domain.devices.rules import Classes
from sully.domain.explaining.holdings import toleration_text
from sully.domain.explaining.sources import Sources
from sully.domain.explaining.story import Table
from sully.domain.explaining.wording import are, code, listed, mark, number
from sully.domain.scheduling.diagnosis import Asked, Diagnosis, Selector, Taint
from sully.domain.scheduling.extended import Extension
from sully.domain.tolerations import difference

_ORDER: Final = (
    "constraint",
    "counters",
    "capacity",
    "taint",
    "inUse",
    "selectorError",
    "requestSelector",
    "classSelector",
    "node",
)
"""From what is closest to a device that fits to what is farthest from it."""
_MOST_SENTENCES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What a request says, to put numbers into words."""

    device_class: str = ""
    class_selectors: tuple[DeviceSelector, ...] = ()
    selectors: tuple[DeviceSelector, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    resource: str = ""
    """The extended resource that it stands for, where no claim asks."""


_NOT_KNOWN: Final = Asking()
Askings = Mapping[tuple[str, str], Asking]
"""By claim, as `namespace/name`, and request, as `name` or `name/alternative`."""


def askings(
    claims: Iterable[ResourceClaim], classes: Classes, extension: Extension | None = None
) -> Askings:
    """Read what claims ask for, and what extended resources do."""
    found = {
        (claim_key(claim), name): asking
        for claim in claims
        for name, asking in _of_claim(claim, classes)
    }
    if extension is not None:
        key = claim_key(extension.claim)
        resources = {each.request: each.resource for each in extension.mappings}
        for name, asking in _of_claim(extension.claim, classes):
            found[key, name] = replace(asking, resource=resources.get(name, ""))
    return found


def asking_of(each: Asked, known: Askings) -> Asking:
    """Return what a request of an account says, as far as that is known."""
    return known.get((each.claim, each.request), _NOT_KNOWN)


def _of_claim(claim: ResourceClaim, classes: Classes) -> Iterator[tuple[str, Asking]]:
    devices = claim.spec.devices
    for request in devices.requests or ():
        given = (request.exactly,) if request.exactly is not None else request.first_available
        for each in given:
            name = getattr(each, "name", "")
            class_ = classes(each.device_class_name)
            yield (
                f"{request.name}/{name}" if name else request.name,
                Asking(
                    device_class=each.device_class_name,
                    class_selectors=class_.spec.selectors if class_ is not None else (),
                    selectors=each.selectors,
                    tolerations=each.tolerations,
                    constraints=_about(request.name, devices.constraints),
                ),
            )


def _about(request: str, constraints: Iterable[DeviceConstraint]) -> tuple[DeviceConstraint, ...]:
    return tuple(
        each
        for each in constraints
        if not each.requests or request in {name.partition("/")[0] for name in each.requests}
    )


def sentences(account: Diagnosis, asked: Askings, sources: Sources, now: datetime) -> Iterator[str]:
    """Say what each request that lacks something lacks, and which taints are in the way."""
    short = account.short
    for each in short[:_MOST_SENTENCES]:
        yield _request(each, asking_of(each, asked))
    if len(short) > _MOST_SENTENCES:
        yield f"{number(len(short) - _MOST_SENTENCES, 'more request')} cannot be served either."
    yield from _taints(short, sources, now)
    yield from _near_misses(short, asked)
    if account.incomplete_pools:
        pools = listed(account.incomplete_pools)
        yield f"Pools whose driver is still writing them are left out: {pools}."
    for pool, text in account.invalid_pools.items():
        yield f"Pool {pool} is left out because it contradicts itself: {text}."


def _request(asked: Asked, asking: Asking) -> str:
    name = f"Request {asked.request} of claim {asked.claim}"
    if asking.resource:
        name = f"Resource {asking.resource}"
    total = asked.available + sum(asked.refused.values())
    if not total:
        wanted = number(asked.wanted, "device") if asked.wanted else "all devices"
        of = f" of class {asking.device_class}" if asking.device_class else ""
        return f"{name} wants {wanted}{of}, and no node has any that can be looked at."
    parts = [_part(reason, asked, asking) for reason in _ORDER if asked.refused.get(reason)]
    against = f": {', '.join(parts)}" if parts else ""
    if not asked.wanted:
        # One device that cannot be had is enough to refuse all of them.
        return f"{name} wants all devices that match, {_free(asked.available)}{against}."
    wanted = number(asked.wanted, "device")
    # Enough of them, and yet it waits: they are not where the rest is, or go to another request.
    apart = ", but no node has all that is asked for" if asked.available >= asked.wanted else ""
    return f"{name} wants {wanted}, {_free(asked.available)}{apart}{against}."


def _free(available: int) -> str:
    return f"and {available or 'none'} {are(available) if available else 'is'} available"


def _part(reason: str, asked: Asked, asking: Asking) -> str:
    """Say what speaks against so many of the devices."""
    count = asked.refused[reason]
    texts = {
        "taint": "tainted",
        "inUse": f"in use{_holders(asked)}",
        "classSelector": f"not of class {asking.device_class or 'asked for'}",
        "requestSelector": f"not chosen by {_selector(asked, asking)}",
        "selectorError": "not judged because a selector fails",
        "constraint": f"kept apart by {_constraint(asking)}",
        "node": "for nodes that do not take the pod",
        "capacity": _capacity(asked),
        "counters": "blocked because shared counters are used up",
    }
    return f"{count} {are(count)} {texts[reason]}"


def _capacity(asked: Asked) -> str:
    if asked.refused.get("inUse") or not asked.holders:
        return "too small in capacity"
    return f"too small in capacity, in part for shares{_holders(asked)}"


def _holders(asked: Asked) -> str:
    if not asked.holders:
        return ""
    names = [f"{each.claim} ({each.devices})" for each in asked.holders]
    return f" by {listed(names, 3)}"


def _selector(asked: Asked, asking: Asking) -> str:
    own = [each for each in asked.selectors if not each.device_class]
    if not own:
        return "the selectors of the request"
    text = selector_text(own[0], asking)
    return f"selector {code(text)}" if text else f"selector {own[0].index} of the request"


def selector_text(selector: Selector, asking: Asking) -> str:
    """Return the expression of a selector that an account names by its place."""
    known = asking.class_selectors if selector.device_class else asking.selectors
    if selector.index >= len(known):
        return ""
    cel = known[selector.index].cel
    return cel.expression if cel is not None else ""


def _constraint(asking: Asking) -> str:
    if not asking.constraints:
        return "constraints of the claim"
    return f"constraint {listed(map(constraint_text, asking.constraints), 2)}"


def constraint_text(constraint: DeviceConstraint) -> str:
    """Write a constraint as claims do."""
    if constraint.match_attribute is not None:
        return f"matchAttribute {constraint.match_attribute}"
    return f"distinctAttribute {constraint.distinct_attribute}"


def _taints(short: Iterable[Asked], sources: Sources, now: datetime) -> Iterator[str]:
    found = merged_taints(short)
    for each in found[:_MOST_SENTENCES]:
        carry = "device carries" if each.devices == 1 else "devices carry"
        yield f"{each.devices} {carry} {sources.told(each, each.origin, now)}."
    more = len(found) - _MOST_SENTENCES
    if more > 0:
        yield f"{number(more, 'more taint')} {are(more)} in the way."


def _near_misses(short: Iterable[Asked], asked: Askings) -> Iterator[str]:
    """Tell of tolerations that were meant for a taint in the way, and why they do not cover it."""
    told = {
        f"Request {each.request} tolerates {toleration_text(toleration)}, which {why}.": None
        for each in short
        for taint in each.taints
        for toleration in asking_of(each, asked).tolerations
        if (why := _why_not_tolerated(toleration, taint))
    }
    yield from list(told)[:_MOST_SENTENCES]


def _why_not_tolerated(toleration: DeviceToleration, taint: Taint) -> str:
    differs = difference(toleration, taint)
    if differs is None:
        return "is over" if taint.lapsed and expires(toleration) else ""
    if toleration.key != taint.key:
        return ""
    return f"is of another {differs} than {mark(taint)}"


def merged_taints(short: Iterable[Asked]) -> list[Taint]:
    """Return the taints in the way of any request, the one on the most devices first."""
    found: dict[tuple[str, str], Taint] = {}
    for asked in short:
        for each in asked.taints:
            key = (each.origin, mark(each))
            if key not in found or found[key].devices < each.devices:
                found[key] = each
    return sorted(found.values(), key=lambda each: (-each.devices, each.origin, mark(each)))


def merged_holders(short: Iterable[Asked]) -> dict[str, int]:
    """Return the claims in the way of any request and how much they have, the most first."""
    found: dict[str, int] = {}
    for asked in short:
        for each in asked.holders:
            found[each.claim] = max(found.get(each.claim, 0), each.devices)
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def account_tables(account: Diagnosis, asked: Askings) -> tuple[Table, ...]:
    """Return all numbers of an account."""
    requests = tuple(
        (
            each.claim,
            each.request,
            asking_of(each, asked).device_class,
            str(each.wanted) if each.wanted else "all",
            str(each.available),
            ", ".join(f"{name} {each.refused[name]}" for name in _ORDER if each.refused.get(name)),
        )
        for each in account.requests
    )
    return (
        Table(
            "Requests",
            ("claim", "request", "class", "wanted", "available", "refused"),
            requests,
        ),
        Table("Taints in the way", ("taint", "origin", "devices"), tuple(_taint_rows(account))),
        Table("Devices in use", ("claim", "devices"), tuple(_holder_rows(account))),
        Table(
            "Selectors",
            ("of", "expression", "refuses"),
            # Requests for the same class say the same.
            tuple(dict.fromkeys(_selector_rows(account, asked))),
        ),
    )


def _taint_rows(account: Diagnosis) -> Iterator[tuple[str, ...]]:
    for each in merged_taints(account.requests):
        yield mark(each), each.origin, str(each.devices)


def _holder_rows(account: Diagnosis) -> Iterator[tuple[str, ...]]:
    for claim, devices in merged_holders(account.requests).items():
        yield claim, str(devices)


def _selector_rows(account: Diagnosis, asked: Askings) -> Iterator[tuple[str, ...]]:
    for each in account.requests:
        asking = asking_of(each, asked)
        for selector in each.selectors:
            of = f"class {selector.device_class}" if selector.device_class else each.request
            yield of, selector_text(selector, asking), str(selector.devices)
