"""What happened, in order of time: told from the records of rules and of evictions.

Records are facts that stay when events and objects are gone (`api/sully`). For `sully history` and
explanations. Which devices a rule by class or expression was on is not recorded, except for those
that pods left; `concerning` asks the devices as they are now, and says where that cannot tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum
from typing import Literal, Protocol

from sully.api.resource.types import DeviceTaint, DeviceTaintSelector
from sully.api.sully.types import EvictionCause, EvictionRecord, TaintRecord, rules_of
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.pools import DeviceId
from sully.domain.devices.rules import choose, names_match, needs_content
from sully.views.devices.inventory import Inventory

What = Literal["tainted", "changed", "evicted", "lifted"]
_ORDER: tuple[What, ...] = ("tainted", "changed", "evicted", "lifted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One thing that happened."""

    time: datetime
    what: What
    rule: str = ""
    """The rule that it is about; an eviction names its causes instead."""
    uid: str = ""
    """Which of the rules that had this name."""
    taint: DeviceTaint | None = None
    selector: DeviceTaintSelector | None = None
    """Which devices a rule was for."""
    change: str = ""
    """What was different, for a change."""
    by: str = ""
    """Who did it, where that is known."""
    why: str = ""
    evicted: int = 0
    """How many pods had left because of a rule when it was lifted."""
    eviction: EvictionRecord | None = None
    unsure: bool = False
    """Whether it concerned the devices that were asked about cannot be known any more."""

    def causes(self) -> tuple[EvictionCause, ...]:
        """Return the taints that made a pod leave."""
        return self.eviction.spec.causes if self.eviction is not None else ()


def happenings(
    rules: Iterable[TaintRecord], evictions: Iterable[EvictionRecord]
) -> list[Happening]:
    """Return all that happened, the earliest first.

    The count of a deleted rule is written a moment after the record of its last eviction, so it
    is at least the number of these records.
    """
    evictions = tuple(evictions)
    recorded = Counter(uid for eviction in evictions for uid in rules_of(eviction))
    found = [each for record in rules for each in _of_rule(record, recorded)]
    found += [_of_eviction(each) for each in evictions]
    return sorted(found, key=_order)


def _order(each: Happening) -> tuple[datetime, int, str, str]:
    pod = each.eviction.spec.pod if each.eviction is not None else None
    name = f"{pod.namespace}/{pod.name}" if pod is not None else ""
    return each.time, _ORDER.index(each.what), each.rule, name


def _of_rule(record: TaintRecord, recorded: Mapping[str, int]) -> Iterator[Happening]:
    spec, status, name = record.spec, record.status, record.spec.rule.name
    uid = spec.rule.uid
    yield Happening(
        time=spec.added_time,
        what="tainted",
        rule=name,
        uid=uid,
        taint=spec.taint,
        selector=spec.device_selector,
        by=spec.created_by,
        why=spec.taint.description or spec.description,
    )
    selector = status.device_selector or spec.device_selector
    for each in status.changes:
        yield Happening(
            time=each.time,
            what="changed",
            rule=name,
            uid=uid,
            selector=selector,
            change=each.what,
            by=each.by,
        )
    if status.deleted_time is not None:
        yield Happening(
            time=status.deleted_time,
            what="lifted",
            rule=name,
            uid=uid,
            taint=status.taint or spec.taint,
            selector=selector,
            by=status.deleted_by,
            evicted=max(status.evicted, recorded.get(uid, 0)),
        )


def _of_eviction(record: EvictionRecord) -> Happening:
    spec = record.spec
    why = next((each.description for each in spec.causes if each.description), "")
    return Happening(time=spec.evicted_time, what="evicted", why=why, eviction=record)


# -- about devices --------------------------------------------------------------------------------


class Asked(Protocol):
    """Which devices somebody asks about, by patterns of their names."""

    def matches(self, driver: str, pool: str, device: str) -> bool:
        """Report whether a device is meant."""

    def matches_pool(self, driver: str, pool: str) -> bool:
        """Report whether any device of a pool can be meant."""

    def may_meet(self, driver: str | None, pool: str | None, device: str | None) -> bool:
        """Report whether a selector with these names can select a device that is meant."""


class _Sure(IntEnum):
    NO = 0
    MAYBE = 1
    YES = 2


def by_content(found: Iterable[Happening], asked: Asked) -> bool:
    """Report whether more than names is needed to tell what concerned devices."""
    return any(needs_content(each.selector) and _meet(each.selector, asked) for each in found)


def concerning(
    found: Sequence[Happening], asked: Asked, inventory: Inventory
) -> Iterator[Happening]:
    """Yield what concerned devices: evictions from them, and all that happened to their rules."""
    rules = _rules_on(found, asked, inventory)
    for each in found:
        if each.eviction is not None:
            if any(asked.matches(*parts(name)) for name in each.eviction.spec.devices):
                yield each
        elif rules[each.uid] is not _Sure.NO:
            yield replace(each, unsure=rules[each.uid] is _Sure.MAYBE)


def _rules_on(found: Iterable[Happening], asked: Asked, inventory: Inventory) -> dict[str, _Sure]:
    """Return of each rule whether it ever was on these devices, as far as anybody knows."""
    # Whoever had to leave one of them for a rule has proved it.
    sure = {
        cause.uid: _Sure.YES
        for each in found
        for cause in each.causes()
        if asked.matches(*parts(cause.device))
    }
    known: dict[tuple[str, str], _Sure] = {}
    for each in found:
        # Most rules have one selector, and many things happen to a rule.
        key = each.uid, repr(each.selector)
        if key not in known and sure.get(each.uid) is not _Sure.YES:
            known[key] = _selects(each.selector, asked, inventory)
            sure[each.uid] = max(sure.get(each.uid, _Sure.NO), known[key])
    return sure


def _selects(selector: DeviceTaintSelector | None, asked: Asked, inventory: Inventory) -> _Sure:
    if selector is None or not _meet(selector, asked):
        return _Sure.NO
    if not needs_content(selector):
        return _Sure.YES
    choices = [
        choose(selector, id_, device.content, inventory.class_)
        for id_, device in _candidates(selector, asked, inventory)
    ]
    if any(each.selected for each in choices):
        return _Sure.YES
    # Of a device that nobody publishes any more, nobody knows what it was.
    unknown = not choices or any(each.problem for each in choices)
    return _Sure.MAYBE if unknown else _Sure.NO


def _candidates(
    selector: DeviceTaintSelector, asked: Asked, inventory: Inventory
) -> Iterator[tuple[DeviceId, EffectiveDevice]]:
    for pool in sorted(inventory.pools()):
        if not asked.matches_pool(*pool):
            continue
        for name, device in inventory.devices(pool).items():
            id_ = DeviceId(*pool, name)
            if asked.matches(*id_) and names_match(selector, id_):
                yield id_, device


def _meet(selector: DeviceTaintSelector | None, asked: Asked) -> bool:
    return selector is not None and asked.may_meet(selector.driver, selector.pool, selector.device)


def parts(device: str) -> tuple[str, str, str]:
    """Return driver, pool and name of a device; a pool may have slashes in its name."""
    driver, _, rest = device.partition("/")
    pool, _, name = rest.rpartition("/")
    return driver, pool, name
