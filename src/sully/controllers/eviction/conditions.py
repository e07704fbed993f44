"""The conditions of a rule: what they report, and how they are written.

`EvictionInProgress` is Kubernetes' own; the others are ours and never part of its text. When and
how often is decided in status.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from sully.api.resource.types import DeviceTaintRule
from sully.controllers.framework.conditions import encode_condition
from sully.domain.devices import patch_status as patchstatus
from sully.domain.eviction.status import EVICTION_IN_PROGRESS, OURS, Report
from sully.machinery.meta import Condition, find_condition
from sully.views.devices.exposures import Problem

MAX_CONDITIONS = 8
"""How many conditions a rule can have, those of other writers included."""


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class ReportedStatus(msgspec.Struct, frozen=True):
    """What the status of a rule reports about one generation of it."""

    generation: int
    reports: Mapping[str, Report]
    """By type, in the order in which they are written."""


def reported(rule: DeviceTaintRule) -> ReportedStatus | None:
    """Return what the status of a rule reports, in the form of what we would report."""
    progress = find(rule, EVICTION_IN_PROGRESS)
    if progress is None:
        return None
    reports = {
        type_: Report(condition.status, condition.reason, condition.message)
        for type_ in (EVICTION_IN_PROGRESS, *OURS)
        if (condition := find(rule, type_)) is not None
    }
    return ReportedStatus(progress.observed_generation, reports)


def find(rule: DeviceTaintRule, type_: str) -> Condition | None:
    """Return a condition of a rule, or None."""
    return find_condition(rule.status.conditions, type_)


def fitting(
    rule: DeviceTaintRule, reports: Iterable[tuple[str, Report | None]]
) -> dict[str, Report]:
    """Return the reports that fit into the status with the conditions of other writers.

    A status that is refused because it has one too many would report nothing at all.
    """
    others = sum(
        other.type not in (EVICTION_IN_PROGRESS, *OURS) for other in rule.status.conditions
    )
    ours = [(type_, report) for type_, report in reports if report is not None]
    return dict(ours[: max(1, MAX_CONDITIONS - others)])


def crowding(rule: DeviceTaintRule) -> Condition | None:
    """Return the condition of another writer that prevents another `EvictionInProgress`."""
    others = [
        other for other in rule.status.conditions if other.type not in (EVICTION_IN_PROGRESS, *OURS)
    ]
    if len(others) < MAX_CONDITIONS:
        return None
    return min(others, key=lambda other: (other.last_transition_time or _LONG_AGO, other.type))


def selector_problem(problems: list[Problem]) -> Report | None:
    """Report how many devices a rule cannot be evaluated on, and why."""
    first = f"{problems[0].device}: {problems[0].choice.problem}" if problems else ""
    return patchstatus.selector_problem(len(problems), first)


def encode_status(
    rule: DeviceTaintRule,
    new: ReportedStatus,
    before: ReportedStatus | None,
    times: dict[str, datetime],
    now: datetime,
) -> list[dict[str, Any]]:
    """Return the JSON form of conditions; one that is unchanged keeps its transition time."""
    for type_, report in new.reports.items():
        same = (
            before is not None
            and before.generation == new.generation
            and before.reports.get(type_) == report
        )
        if not same:
            times[type_] = now
        elif type_ not in times:
            current = find(rule, type_)
            times[type_] = (current.last_transition_time if current is not None else None) or now
    return [
        encode_condition(
            Condition(
                type=type_,
                status=report.status,
                reason=report.reason,
                message=report.message,
                observed_generation=new.generation,
                last_transition_time=times[type_],
            )
        )
        for type_, report in new.reports.items()
    ]
