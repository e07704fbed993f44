"""The output of `sully maintenance`: rows of a table, and documents for programs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sully.api.resource.annotations import creator_of
from sully.api.sully.types import DeviceMaintenance
from sully.cli.output.formatting import until, when
from sully.cli.output.printers import time_text, without_empty
from sully.cli.output.tables import Cell, Column
from sully.domain.maintenance.settings import end_of
from sully.domain.maintenance.status import encode
from sully.domain.maintenance.steps import FAILED, is_blocked

COLUMNS = (
    Column("NAME", shrinks=2, least=16),
    Column("PHASE"),
    Column("START"),
    Column("END"),
    Column("DEVICES", right=True),
    Column("DONE"),
    Column("CLOSED", right=True),
    Column("STATE", shrinks=1, least=12),
    Column("NEXT"),
)
_NONE = "-"


def row(maintenance: DeviceMaintenance, now: datetime) -> Sequence[Cell | str]:
    status, end = maintenance.status, end_of(maintenance)
    next_ = status.next_action_time
    return [
        maintenance.metadata.name,
        status.phase or _NONE,
        when(maintenance.spec.start, now),
        when(end, now) if end is not None else _NONE,
        str(status.selected),
        f"{status.done}/{status.total}",
        Cell(str(len(status.units)), "yellow" if status.units else ""),
        _state(maintenance),
        until(next_, now) if next_ is not None else _NONE,
    ]


def _state(maintenance: DeviceMaintenance) -> Cell | str:
    """Return what needs attention first."""
    status = maintenance.status
    if not status.observed_generation:
        return Cell("not processed yet", "yellow")
    if not status.selected and not status.total:
        return Cell("matches no device", "yellow")
    waiting = (FAILED, "AwaitingApproval", "AwaitingProof", "AwaitingReady")
    texts = [f"{status.phases[phase]} {phase}" for phase in waiting if status.phases.get(phase)]
    blocked = sum(map(is_blocked, status.units))
    texts += [f"{blocked} Blocked"] if blocked else []
    color = "red" if status.phases.get(FAILED) else "yellow"
    return Cell(", ".join(texts), color) if texts else "ok"


def document(maintenance: DeviceMaintenance) -> dict[str, Any]:
    status = maintenance.status
    return without_empty(
        name=maintenance.metadata.name,
        phase=status.phase,
        createdBy=creator_of(maintenance.metadata.annotations),
        start=time_text(maintenance.spec.start),
        end=time_text(end_of(maintenance)),
        selected=status.selected,
        total=status.total,
        done=status.done,
        phases=dict(status.phases),
        nextActionTime=time_text(status.next_action_time),
        units=[encode(unit) for unit in status.units],
    )
