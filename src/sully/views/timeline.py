"""What happened, in order of time: told from the records of rules and of evictions.

Records are facts that stay when events and objects are gone (`api/sully`). For `sully history` and
explanations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sully.api.resource.types import DeviceTaint, DeviceTaintSelector
from sully.api.sully.types import EvictionCause, EvictionRecord, TaintRecord

What = Literal["tainted", "changed", "evicted", "lifted"]
_ORDER: tuple[What, ...] = ("tainted", "changed", "evicted", "lifted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One thing that happened."""

    time: datetime
    what: What
    rule: str = ""
    """The rule that it is about; an eviction names its causes instead."""
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

    def causes(self) -> tuple[EvictionCause, ...]:
        """Return the taints that made a pod leave."""
        return self.eviction.spec.causes if self.eviction is not None else ()


def happenings(
    rules: Iterable[TaintRecord], evictions: Iterable[EvictionRecord]
) -> list[Happening]:
    """Return all that happened, the earliest first."""
    found = [each for record in rules for each in _of_rule(record)]
    found += [_of_eviction(each) for each in evictions]
    return sorted(found, key=_order)


def _order(each: Happening) -> tuple[datetime, int, str, str]:
    pod = each.eviction.spec.pod if each.eviction is not None else None
    name = f"{pod.namespace}/{pod.name}" if pod is not None else ""
    return each.time, _ORDER.index(each.what), each.rule, name


def _of_rule(record: TaintRecord) -> Iterator[Happening]:
    spec, status, name = record.spec, record.status, record.spec.rule.name
    yield Happening(
        time=spec.added_time,
        what="tainted",
        rule=name,
        taint=spec.taint,
        selector=spec.device_selector,
        by=spec.created_by,
        why=spec.taint.description or spec.description,
    )
    selector = status.device_selector or spec.device_selector
    for each in status.changes:
        yield Happening(
            time=each.time, what="changed", rule=name, selector=selector, change=each.what
        )
    if status.lifted_time is not None:
        yield Happening(
            time=status.lifted_time,
            what="lifted",
            rule=name,
            taint=status.taint or spec.taint,
            selector=selector,
            by=status.lifted_by,
            evicted=status.evicted,
        )


def _of_eviction(record: EvictionRecord) -> Happening:
    spec = record.spec
    why = next((each.description for each in spec.causes if each.description), "")
    return Happening(time=spec.evicted_time, what="evicted", why=why, eviction=record)
