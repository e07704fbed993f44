"""DeviceMaintenances: how far they are, and what they wait for."""

from __future__ import annotations

from datetime import datetime

from sully.api.sully.types import DeviceMaintenance, DeviceMaintenanceUnit
from sully.client.transport import Key
from sully.domain.maintenance.decisions import FINAL, PAUSED, SCHEDULED
from sully.domain.maintenance.settings import end_of
from sully.domain.maintenance.steps import AWAITING_APPROVAL, AWAITING_PROOF, FAILED
from sully.explain.causes import Finding, MaintenanceFacts
from sully.explain.explanation import Table, tables
from sully.explain.reader import Reader
from sully.explain.text import time_text
from sully.views.kinds import MAINTENANCES


def find_maintenance(reader: Reader, key: Key) -> Finding | None:
    """Find out about a maintenance by what its controller reports."""
    maintenance = reader.snapshot.get(MAINTENANCES, key)
    if maintenance is None:
        return None
    status = maintenance.status
    return Finding(
        kind=MAINTENANCES.kind,
        name=key.name,
        cause=_cause(maintenance),
        facts=MaintenanceFacts(
            name=key.name,
            devices=status.selected,
            units=status.total,
            done=status.done,
            closed=len(status.units),
            failed=status.phases.get(FAILED, 0),
            waiting=_waiting(maintenance),
            starts=maintenance.spec.start,
            ends=end_of(maintenance),
            at=status.next_action_time,
        ),
        because=tuple(f"Device/{device}" for unit in status.units for device in unit.devices),
        details=tables(_units(maintenance, reader.now)),
    )


def _waiting(maintenance: DeviceMaintenance) -> int:
    phases = maintenance.status.phases
    return phases.get(AWAITING_APPROVAL, 0) + phases.get(AWAITING_PROOF, 0)


def _cause(maintenance: DeviceMaintenance) -> str:
    status = maintenance.status
    if not status.observed_generation:
        return "NotProcessed"
    if status.phase in FINAL or status.phase == PAUSED:
        return status.phase
    if not status.total:
        return "SelectsNoDevice"
    if status.phases.get(FAILED):
        return "UnitsFailed"
    if _waiting(maintenance):
        return "ApprovalNeeded"
    return SCHEDULED if status.phase == SCHEDULED else "Running"


def _units(maintenance: DeviceMaintenance, now: datetime) -> Table:
    rows = tuple(_row(unit, now) for unit in maintenance.status.units)
    return Table("Units", ("unit", "phase", "evicted", "next", "reason"), rows)


def _row(unit: DeviceMaintenanceUnit, now: datetime) -> tuple[str, ...]:
    next_ = unit.next_action_time
    when = time_text(next_, now) if next_ is not None else ""
    return unit.name, unit.phase, str(unit.evicted), when, unit.message
