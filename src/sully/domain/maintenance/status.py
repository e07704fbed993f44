"""The status of a maintenance: counts, units and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from sully.api.sully.conditions import APPLIED
from sully.api.sully.types import DeviceMaintenance, DeviceMaintenanceStatus
from sully.domain.maintenance.decisions import COMPLETED, MaintenanceDecision
from sully.domain.maintenance.steps import FAILED, PHASES, Unit
from sully.domain.placement.results.conditions import PlacementCondition
from sully.machinery.formats.timestamps import format_micro_time, format_time

Obj = dict[str, Any]

COMPLETE: Final = "sully.dev/Complete"
FAILING: Final = "sully.dev/Failed"
_MICRO_TIMES: Final = {
    "since": "since",
    "closed_time": "closedTime",
    "drain_time": "drainTime",
    "work_time": "workTime",
    "rate_time": "rateTime",
    "job_failed_time": "jobFailedTime",
}


def status_fields(
    maintenance: DeviceMaintenance, decision: MaintenanceDecision, selected: int
) -> Obj:
    """Return the status of a maintenance without its conditions; None removes a field."""
    next_action, paused, end = decision.requeue_at, decision.paused_time, decision.end_time
    return {
        "observedGeneration": maintenance.metadata.generation,
        "phase": decision.phase,
        "selected": selected,
        "total": decision.total,
        "done": len(decision.finished),
        "phases": {phase: decision.phases.get(phase) for phase in PHASES},
        "units": [encode(unit) for unit in decision.units] or None,
        "finished": list(decision.finished) or None,
        "nextActionTime": format_time(next_action) if next_action is not None else None,
        "pausedTime": format_micro_time(paused) if paused is not None else None,
        "endTime": format_micro_time(end) if end is not None else None,
    }


def encode(unit: Unit) -> Obj:
    """Return the JSON form of a unit."""
    fields: Obj = msgspec.to_builtins(unit)
    for name, wire in _MICRO_TIMES.items():
        time = getattr(unit, name)
        fields[wire] = format_micro_time(time) if time is not None else None
    next_action = unit.next_action_time
    fields["nextActionTime"] = format_time(next_action) if next_action is not None else None
    fields["devices"], fields["workloads"] = list(unit.devices), list(unit.workloads)
    return {
        name: value
        for name, value in fields.items()
        if value not in (None, "", [], 0) and value is not False
    }


def is_same(status: DeviceMaintenanceStatus, fields: Obj) -> bool:
    """Report whether a status has these fields already."""
    desired = {name: value for name, value in fields.items() if value is not None}
    desired["phases"] = {name: count for name, count in fields["phases"].items() if count}
    return msgspec.convert(desired, DeviceMaintenanceStatus) == msgspec.structs.replace(
        status, conditions=()
    )


def findings(
    decision: MaintenanceDecision, selected: int, problems: Mapping[str, str]
) -> list[PlacementCondition]:
    """Return the conditions of a maintenance."""
    return [_applied(selected, problems), _complete(decision), _failed(decision)]


def _applied(selected: int, problems: Mapping[str, str]) -> PlacementCondition:
    if problems:
        device = min(problems)
        text = f"The selector cannot be evaluated for {len(problems)} devices, for instance"
        return PlacementCondition(
            APPLIED, "False", "SelectorProblem", f"{text} {device}: {problems[device]}"
        )
    if not selected:
        text = "The selector matches no device: check its names, classes and expressions."
        return PlacementCondition(APPLIED, "False", "NoDeviceSelected", text)
    return PlacementCondition(
        APPLIED, "True", "DevicesSelected", f"The selector matches {selected} devices."
    )


def _complete(decision: MaintenanceDecision) -> PlacementCondition:
    done = f"{len(decision.finished)} of {decision.total} are done."
    if decision.phase == COMPLETED:
        return PlacementCondition(COMPLETE, "True", COMPLETED, done)
    return PlacementCondition(COMPLETE, "False", decision.phase, done)


def _failed(decision: MaintenanceDecision) -> PlacementCondition:
    failed = [unit for unit in decision.units if unit.phase == FAILED]
    if not failed:
        return PlacementCondition(FAILING, "False", "NothingFailed", "")
    text = f"{len(failed)} failed, for instance {failed[0].name}: {failed[0].message}."
    return PlacementCondition(FAILING, "True", "UnitsFailed", text)
