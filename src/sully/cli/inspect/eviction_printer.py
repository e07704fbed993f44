"""The output of `sully evictions`: rows of a table, and documents for programs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sully.cli.client.formatting import age, taint_text, until
from sully.cli.client.printers import time_text, without_empty
from sully.cli.client.tables import Cell, Column
from sully.views.evictions import EvictionProgress

_COLUMNS = (
    Column("RULE", shrinks=2, least=16),
    Column("TAINT", shrinks=1, least=24),
    Column("STATE", least=len("evicting")),
    Column("PENDING", right=True),
    Column("EVICTED", right=True),
    Column("RATE", right=True),
    Column("FINISHES"),
)
_WIDE_COLUMNS = (
    Column("TERMINATING", right=True),
    Column("AGE"),
    Column("DEVICES", right=True),
    Column("CREATED BY", shrinks=1),
    Column("REASON", shrinks=1),
)
_STYLES = {
    "evicting": "red",
    "waiting": "yellow",
    "terminating": "yellow",
    "paused": "yellow",
    "done": "green",
    "unknown": "yellow",
}
_UNKNOWN = "?"
UNRECORDED = (
    "+ means at least: the eviction controller of this server only counts since it was started\n"
    "  Sully's controller keeps records: sully install --evictor sully"
)


def columns(*, wide: bool) -> Sequence[Column]:
    return (*_COLUMNS, *_WIDE_COLUMNS) if wide else _COLUMNS


def row(progress: EvictionProgress, now: datetime, *, wide: bool) -> Sequence[Cell | str]:
    rule = progress.rule
    rate = rule.spec.taint.evictions_per_second
    cells: list[Cell | str] = [
        rule.metadata.name,
        taint_text(rule.spec.taint),
        Cell(_state(progress), _STYLES[_state(progress)]),
        str(len(progress.pending)) if progress.visible else _UNKNOWN,
        f"{progress.evicted}" + ("" if progress.complete else "+"),
        f"{rate}/s" if rate is not None else "-",
        until(progress.finish, now) if progress.finish is not None else "-",
    ]
    if wide:
        cells += [
            str(len(progress.terminating)) if progress.visible else _UNKNOWN,
            age(rule.metadata.creation_timestamp, now) or "-",
            str(progress.devices),
            progress.author or "-",
            _reason(progress) or "-",
        ]
    return cells


def _state(progress: EvictionProgress) -> str:
    return progress.state


def _reason(progress: EvictionProgress) -> str:
    paused = progress.paused
    if paused is None:
        return progress.description
    text = "paused" if paused == "true" else f"paused: {paused}"
    return f"{progress.description} ({text})" if progress.description else text


def document(progress: EvictionProgress) -> dict[str, Any]:
    """Return a rule as a plain value; the fields are promised to scripts."""
    taint = progress.rule.spec.taint
    return without_empty(
        rule=progress.rule.metadata.name,
        taint=without_empty(key=taint.key, value=taint.value, effect=taint.effect),
        state=_state(progress),
        paused=progress.paused,
        pending=len(progress.pending) if progress.visible else None,
        terminating=len(progress.terminating) if progress.visible else None,
        evicted=progress.evicted,
        evictedAtLeast=None if progress.complete else True,
        evictionsPerSecond=taint.evictions_per_second,
        finishTime=time_text(progress.finish),
        devices=progress.devices,
        createdBy=progress.author,
        description=progress.description,
        pods=[
            {"namespace": key.namespace, "name": key.name, "evictionTime": time_text(due)}
            for key, due in progress.pending.items()
        ],
        terminatingPods=[
            {"namespace": key.namespace, "name": key.name, "graceEndTime": time_text(end)}
            for key, end in progress.terminating.items()
        ],
    )
