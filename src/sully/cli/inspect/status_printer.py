"""The output of `sully status`: tables, lines about what needs attention, and a document."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sully.api.sully.types import DeviceMaintenance
from sully.cli.change.maintenance.printer import document as maintenance_document
from sully.cli.inspect.devices.printer import conflict_document, conflict_text
from sully.cli.inspect.evictions.printer import document as eviction_document
from sully.cli.inspect.evictions.printer import loop_document, loop_text
from sully.cli.inspect.rules_printer import document as source_document
from sully.cli.output.formatting import EFFECT_STYLES, until
from sully.cli.output.printers import without_empty
from sully.cli.output.tables import Cell, Column, Row
from sully.domain.maintenance.settings import end_of
from sully.domain.maintenance.steps import FAILED, is_blocked
from sully.machinery.formats.plurals import number_of
from sully.views.devices.device_views import DeviceView
from sully.views.evictions import EvictionProgress
from sully.views.status import NO_CLASS, DeviceTally, Status

_NUMBERS = (
    Column("DEVICES", right=True),
    Column("IN USE", right=True),
    Column("FREE", right=True),
    Column("TAINTED", shrinks=1),
)
CLASS_COLUMNS = (Column("CLASS", shrinks=2), *_NUMBERS, Column("PENDING PODS", right=True))
NODE_COLUMNS = (Column("NODE", shrinks=2), *_NUMBERS, Column("STATE", shrinks=1))
NOTE_COLUMNS = (Column("SUBJECT"), Column("STATE", shrinks=1))
_NONE, _UNKNOWN = "-", "?"
_MAX_NAMED = 3


def class_rows(status: Status, *, visible: bool) -> Iterator[Row]:
    """Yield one row for each class, and one for all devices if that differs."""
    named = [name for name in status.classes if name != NO_CLASS]
    for name in (*named, *((NO_CLASS,) if NO_CLASS in status.classes else ())):
        tally = status.classes[name]
        pending = _pending(tally.pending_pods)
        yield [name or "(no class)", *_cells(tally, visible=visible), pending]
    if len(status.classes) > 1:
        pending = _pending(status.total.pending_pods)
        yield [Cell("(all)", "bold"), *_cells(status.total, visible=visible), pending]


def node_rows(status: Status, *, visible: bool) -> Iterator[Row]:
    for node in status.nodes:
        state = Cell(node.obstacle or "schedulable", "yellow" if node.obstacle else "")
        yield [node.node or "(none)", *_cells(node.tally, visible=visible), state]


def _pending(pods: int) -> Cell:
    return Cell(str(pods), "yellow" if pods else "")


def _cells(tally: DeviceTally, *, visible: bool) -> list[Cell | str]:
    style = next((EFFECT_STYLES[x] for x in EFFECT_STYLES if x in tally.tainted), "")
    return [
        str(tally.devices),
        str(tally.in_use) if visible else _UNKNOWN,
        str(tally.free) if visible else _UNKNOWN,
        Cell(_tainted(tally), style),
    ]


def _tainted(tally: DeviceTally) -> str:
    if not tally.tainted:
        return _NONE
    effects = ", ".join(f"{count} {effect}" for effect, count in sorted(tally.tainted.items()))
    return f"{tally.tainted.total()} ({effects})"


# -- what needs attention --------------------------------------------------------------------------


def notes(status: Status, now: datetime) -> Iterator[Row]:
    """Yield one row for each problem, the worst first."""
    for loop in status.loops:
        yield [Cell("Eviction loop", "red"), Cell(loop_text(loop, now), "red")]
    if status.conflicts:
        yield [Cell("Conflicts", "red"), Cell(_conflicts(status.conflicts), "red")]
    if status.disabled_gates:
        gates = ", ".join(status.disabled_gates)
        yield [Cell("Feature gates off", "yellow"), Cell(gates, "yellow")]
    yield ["Taint sources", _sources(status)]
    for maintenance in status.maintenances[:_MAX_NAMED]:
        yield ["Maintenance", _maintenance(maintenance, now)]
    for progress in status.evictions[:_MAX_NAMED]:
        yield ["Evictions", Cell(_eviction(progress, now), "red")]
    if len(status.evictions) > _MAX_NAMED:
        more = number_of(len(status.evictions) - _MAX_NAMED, "other rule")
        yield ["Evictions", f"by {more}; see 'sully evictions'"]
    if status.pending:
        yield ["Pending pods", _pending_pods(status)]
    if status.unpublished:
        yield ["Unpublished", f"{number_of(status.unpublished, 'device')} in use without a slice"]


def _conflicts(views: Sequence[DeviceView]) -> str:
    texts = (f"{x.id} ({conflict_text(x.conflict)})" for x in views if x.conflict is not None)
    return f"{_some(texts, len(views))}; see 'sully explain device {views[0].id}'"


def _sources(status: Status) -> str:
    if not status.sources:
        return "none"
    counts = {
        "active": f"{sum(x.state == 'active' for x in status.sources)} active",
        "paused": f"{sum(x.state == 'paused' for x in status.sources)} paused",
        "no device": f"{sum(x.state == 'no device' for x in status.sources)} matching no device",
        "no effect": f"{sum(x.state == 'no effect' for x in status.sources)} without effect",
    }
    states = {source.state for source in status.sources}
    return f"{', '.join(counts[x] for x in counts if x in states)}; see 'sully rules'"


def _maintenance(maintenance: DeviceMaintenance, now: datetime) -> Cell | str:
    status, end = maintenance.status, end_of(maintenance)
    facts = [(status.phase or "not processed yet").lower()]
    if maintenance.spec.start > now:
        facts.append(f"starts {until(maintenance.spec.start, now)}")
    elif end is not None:
        facts.append(f"ends {until(end, now)}")
    facts.append(f"{status.done} of {status.total} done")
    if status.units:
        facts.append(f"{len(status.units)} closed")
    failed = status.phases.get(FAILED, 0)
    if failed:
        facts.append(f"{failed} failed")
    blocked = sum(map(is_blocked, status.units))
    if blocked:
        facts.append(f"{blocked} blocked")
    text = f"{maintenance.metadata.name}: {', '.join(facts)}"
    return Cell(text, "red" if failed else "yellow" if status.units else "")


def _eviction(progress: EvictionProgress, now: datetime) -> str:
    facts = [f"{len(progress.pending)} pending"]
    if progress.terminating:
        facts.append(f"{len(progress.terminating)} terminating")
    if progress.paused is not None:
        facts.append("paused")
    if progress.finish is not None:
        facts.append(f"finishes {until(progress.finish, now)}")
    return f"rule/{progress.rule.metadata.name}: {', '.join(facts)}"


def _pending_pods(status: Status) -> str:
    first = next(iter(status.pending))
    return (
        f"{_some(map(str, status.pending), len(status.pending))}; see 'sully explain pod {first}'"
    )


def _some(texts: Iterable[str], count: int) -> str:
    shown = [text for text, _ in zip(texts, range(_MAX_NAMED), strict=False)]
    more = f" and {count - _MAX_NAMED} more" if count > _MAX_NAMED else ""
    return ", ".join(shown) + more


# -- for programs ----------------------------------------------------------------------------------


def document(status: Status, *, visible: bool) -> dict[str, Any]:
    """Return the state of all devices as a plain value; the fields are promised to scripts."""
    return {
        "total": _tally_document(status.total, visible=visible),
        "classes": [
            {"class": name, **_tally_document(tally, visible=visible)}
            for name, tally in status.classes.items()
        ],
        "nodes": [
            {
                "node": node.node,
                **without_empty(unschedulable=node.obstacle),
                **_tally_document(node.tally, visible=visible, pending=False),
            }
            for node in status.nodes
        ],
        "pendingPods": [
            {"namespace": pod.namespace, "name": pod.name, "classes": sorted(classes)}
            for pod, classes in status.pending.items()
        ],
        "sources": [source_document(source) for source in status.sources],
        "evictions": [eviction_document(progress) for progress in status.evictions],
        "evictionLoops": [loop_document(loop) for loop in status.loops],
        "conflicts": [
            {
                "driver": view.id.driver,
                "pool": view.id.pool,
                "device": view.id.device,
                **conflict_document(view.conflict)["conflict"],
            }
            for view in status.conflicts
        ],
        "maintenances": [maintenance_document(one) for one in status.maintenances],
        "unpublished": status.unpublished,
        "disabledFeatureGates": list(status.disabled_gates),
    }


def _tally_document(tally: DeviceTally, *, visible: bool, pending: bool = True) -> dict[str, Any]:
    used = {"inUse": tally.in_use, "free": tally.free} if visible else {}
    return {
        "devices": tally.devices,
        **used,
        "tainted": tally.tainted.total(),
        **without_empty(effects=dict(sorted(tally.tainted.items()))),
        **({"pendingPods": tally.pending_pods} if pending else {}),
    }
