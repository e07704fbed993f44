"""The output of `sully rules`: rows of a table, and documents for programs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sully.cli.output.formatting import EFFECT_STYLES, age, expiry_time, until
from sully.cli.output.printers import time_text, without_empty
from sully.cli.output.tables import Cell, Column
from sully.domain.tolerations import taint_text
from sully.machinery.formats.plurals import number_of
from sully.views.taint_sources import TaintSource

_COLUMNS = (
    Column("SOURCE", shrinks=2, least=16),
    Column("TAINT", shrinks=1, least=24),
    Column("DEVICES", right=True),
    Column("PODS", shrinks=1, least=12),
    Column("SINCE"),
    Column("ENDS"),
    Column("CREATED BY", shrinks=1),
    Column("REASON", shrinks=1),
)
_WIDE_COLUMNS = (Column("STATE"), Column("OBJECTS", shrinks=1))
_STATES = {"active": "", "paused": "yellow", "no device": "yellow", "no effect": "yellow"}
_NONE = "-"


def columns(*, wide: bool) -> Sequence[Column]:
    return (*_COLUMNS, *_WIDE_COLUMNS) if wide else _COLUMNS


def source_name(source: TaintSource) -> str:
    """Return the source as other commands write it; several rules with their number."""
    if source.kind in ("driver", "taint slice"):
        return f"{source.kind} {source.name}"
    text = f"{source.kind}/{source.name}"
    return f"{text} ({len(source.objects)} rules)" if source.group else text


def row(source: TaintSource, now: datetime, *, wide: bool) -> Sequence[Cell | str]:
    cells: list[Cell | str] = [
        source_name(source),
        Cell(taint_text(source.taint), EFFECT_STYLES.get(source.taint.effect, "")),
        _devices(source),
        Cell(_pods(source, now), "red" if source.pending else ""),
        age(source.since, now) or _NONE,
        expiry_time(source.expires, now) if source.expires else _NONE,
        source.created_by or _NONE,
        source.reason or _NONE,
    ]
    if wide:
        cells += [Cell(source.state, _STATES[source.state]), ", ".join(source.objects)]
    return cells


def _devices(source: TaintSource) -> Cell | str:
    match source.state:
        case "no device":
            return Cell("0 (no match)", "yellow")
        case "no effect":
            return Cell("no effect", "yellow")
        case _:
            return str(len(source.devices))


def _pods(source: TaintSource, now: datetime) -> str:
    facts = []
    if source.pending:
        facts.append(f"{len(source.pending)} to evict {until(min(source.pending.values()), now)}")
    if source.terminating:
        facts.append(f"{len(source.terminating)} terminating")
    if source.evicted:
        facts.append(f"{source.evicted}{'' if source.complete else '+'} evicted")
    if source.would_evict and source.state == "paused":
        facts.append(f"{number_of(len(source.would_evict), 'pod')} would be evicted (paused)")
    elif source.would_evict:
        verb = "keeps" if len(source.would_evict) == 1 else "keep"
        facts.append(f"{number_of(len(source.would_evict), 'pod')} {verb} running")
    elif source.state == "paused":
        facts.append("paused")
    return ", ".join(facts) or _NONE


def document(source: TaintSource) -> dict[str, Any]:
    """Return a source as a plain value; the fields are promised to scripts."""
    taint = source.taint
    return without_empty(
        kind=source.kind,
        name=source.name,
        objects=list(source.objects),
        taint=without_empty(key=taint.key, value=taint.value, effect=taint.effect),
        state=source.state,
        devices=[str(device) for device in sorted(source.devices)],
        deviceCount=len(source.devices),
        createdBy=source.created_by,
        description=source.reason,
        timeAdded=time_text(source.since),
        endTime=time_text(source.expires),
        pending=[
            {"namespace": pod.namespace, "name": pod.name, "evictionTime": time_text(due)}
            for pod, due in sorted(source.pending.items())
        ],
        terminating=_pods_document(source.terminating),
        wouldBeEvicted=_pods_document(source.would_evict),
        evicted=source.evicted,
        evictedAtLeast=None if source.complete else True,
    )


def _pods_document(pods: frozenset[Any]) -> list[dict[str, str]]:
    return [{"namespace": pod.namespace, "name": pod.name} for pod in sorted(pods)]
