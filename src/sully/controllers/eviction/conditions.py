"""The conditions of a rule: what they say, what stood there before, and how they are written.

`EvictionInProgress` is Kubernetes' own; the others are ours and never hide in its text. When and
how often is decided in status.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sully.api.resource.types import DeviceTaintRule
from sully.domain.devices import patch_status as patchstatus
from sully.domain.eviction.status import (
    CONDITION,
    EVICTED,
    OURS,
    Report,
    evicted_before,
)
from sully.machinery.meta import Condition, find_condition
from sully.machinery.timestamps import format_time
from sully.views.devices.exposures import Problem

MOST = 8
"""How many conditions a rule can have, those of other writers included."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the status of a rule says of one generation of it."""

    generation: int
    reports: Mapping[str, Report]
    """By type, in the order in which they are written."""


def stands(rule: DeviceTaintRule) -> Said | None:
    """Return what the status said before we started, in the form of what we would say."""
    found = find(rule, CONDITION)
    if found is None:
        return None
    reports = {
        type_: Report(each.status, each.reason, each.message)
        for type_ in (CONDITION, *OURS)
        if (each := find(rule, type_)) is not None
    }
    return Said(found.observed_generation, reports)


def find(rule: DeviceTaintRule, type_: str) -> Condition | None:
    """Return a condition of a rule, or None."""
    return find_condition(rule.status.conditions, type_)


def evicted_so_far(rule: DeviceTaintRule) -> int:
    """Return how many pods had left because of a rule, as far as its status knows."""
    found = find(rule, EVICTED)
    return evicted_before(found.message) if found is not None else 0


def fitting(
    rule: DeviceTaintRule, reports: Iterable[tuple[str, Report | None]]
) -> dict[str, Report]:
    """Return the reports for which a rule has room beside the conditions of others.

    A status that is refused because it has one too many would say nothing at all.
    """
    others = sum(each.type not in (CONDITION, *OURS) for each in rule.status.conditions)
    given = [(type_, report) for type_, report in reports if report is not None]
    return dict(given[: max(1, MOST - others)])


def trouble(problems: list[Problem]) -> Report | None:
    """Say of how many devices a rule cannot tell whether it selects them, and why."""
    first = f"{problems[0].device}: {problems[0].choice.problem}" if problems else ""
    return patchstatus.selector_problem(len(problems), first)


def written(
    rule: DeviceTaintRule,
    said: Said,
    before: Said | None,
    times: dict[str, datetime],
    now: datetime,
) -> list[dict[str, Any]]:
    """Return conditions as they go over the wire; one that says the same keeps its time."""
    for type_, report in said.reports.items():
        same = (
            before is not None
            and before.generation == said.generation
            and before.reports.get(type_) == report
        )
        if not same:
            times[type_] = now
        elif type_ not in times:
            found = find(rule, type_)
            times[type_] = (found.last_transition_time if found is not None else None) or now
    return [
        {
            "type": type_,
            "status": report.status,
            "reason": report.reason,
            "message": report.message,
            "observedGeneration": said.generation,
            "lastTransitionTime": format_time(times[type_]),
        }
        for type_, report in said.reports.items()
    ]
