"""The output of `sully history`: rows of a table, and documents for programs."""

from collections.abc import Sequence
from typing import Any

from sully.api.resource.types import DeviceTaintSelector
from sully.api.sully.types import EvictionCause, EvictionRecord
from sully.cli.output.formatting import SHORT_KINDS
from sully.cli.output.printers import time_text, without_empty
from sully.cli.output.tables import Cell, Column
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.tolerations import taint_text
from sully.machinery.formats.plurals import number_of
from sully.views.history import HistoryEntry

_COLUMNS = (
    Column("TIME"),
    Column("EVENT"),
    Column("OBJECT", shrinks=1),
    Column("DETAILS", shrinks=1),
)
_WIDE_COLUMNS = (Column("DEVICES", shrinks=1), Column("BY", shrinks=1), Column("REASON", shrinks=1))
_UNSURE = " (may include it)"
"""After the devices of a rule, if it is not certain that it selected the one asked for."""
_EVENTS = {
    "tainted": Cell("tainted", "yellow"),
    "evicted": Cell("evicted", "red"),
    "deleted": Cell("deleted", "green"),
    "changed": Cell("changed"),
}
_UNTAINTED = Cell("untainted", "green")
"""A taint of a cluster is not an object that is deleted."""


def columns(*, wide: bool) -> Sequence[Column]:
    return (*_COLUMNS, *_WIDE_COLUMNS) if wide else _COLUMNS


def row(entry: HistoryEntry, *, wide: bool) -> Sequence[Cell | str]:
    cells: list[Cell | str] = [
        time_text(entry.time) or "",
        _event(entry),
        _object(entry),
        _details(entry, wide=wide),
    ]
    if wide:
        cells += [_devices(entry), entry.by or "-", entry.why or "-"]
    return cells


def _event(entry: HistoryEntry) -> Cell:
    return _UNTAINTED if entry.cluster and entry.what == "deleted" else _EVENTS[entry.what]


def _object(entry: HistoryEntry) -> str:
    if entry.eviction is not None:
        pod = entry.eviction.spec.pod
        return f"pod/{pod.namespace}/{pod.name}"
    return f"cluster/{entry.cluster}" if entry.cluster else f"rule/{entry.rule}"


def _details(entry: HistoryEntry, *, wide: bool) -> str:
    if entry.eviction is not None:
        return _eviction(entry.eviction)
    may = " (of devices that may include it)" if entry.uncertain and not wide else ""
    if entry.what == "changed":
        by = f", by {entry.by}" if entry.by and not wide else ""
        return f"{entry.change}{by}{may}"
    taint = taint_text(entry.taint) if entry.taint is not None else ""
    if entry.cluster:
        until = f", until {entry.until}" if entry.until else ""
        by = f", by {entry.by}" if entry.by and not wide else ""
        why = f": {entry.why}" if entry.why and not wide else ""
        return f"{taint}{by}{until}{why}"
    if entry.what == "deleted":
        by = f" by {entry.by}" if entry.by and not wide else ""
        return f"{taint}{by}{_evicted(entry)}{may}"
    if wide:
        return taint
    by = f", by {entry.by}" if entry.by else ""
    why = f": {entry.why}" if entry.why else ""
    return f"{taint} on {_devices(entry)}{by}{why}"


def _evicted(entry: HistoryEntry) -> str:
    if not entry.evicted and entry.taint is not None and entry.taint.effect not in EVICTING_EFFECTS:
        # Nor could it. "0 pods" of a cordon would mean that its drain evicted none.
        return ""
    if entry.complete:
        return f", {number_of(entry.evicted, 'pod')} evicted"
    pods = (
        f"at least {number_of(entry.evicted, 'pod')}" if entry.evicted else "unknown number of pods"
    )
    return f", {pods} evicted"


def _eviction(record: EvictionRecord) -> str:
    causes = dict.fromkeys(
        f"{taint_text(cause)} of {_cause(cause)}" for cause in record.spec.causes
    )
    node = f" from {record.spec.pod.node}" if record.spec.pod.node else ""
    return f"{', '.join(causes) or 'cause unknown'}{node}"


def _cause(cause: EvictionCause) -> str:
    return f"{SHORT_KINDS.get(cause.kind, cause.kind)}/{cause.name}"


def _devices(entry: HistoryEntry) -> str:
    if entry.eviction is not None:
        return ", ".join(entry.eviction.spec.devices) or "-"
    if entry.cluster:
        return "-"
    return selector_text(entry.selector) + (_UNSURE if entry.uncertain else "")


def selector_text(selector: DeviceTaintSelector | None) -> str:
    """Write which devices a selector selects, like a pattern."""
    if selector is None:
        return "no device"
    names = (selector.driver, selector.pool, selector.device)
    class_, expressions = selector.device_class_name, selector.selectors
    if not any(names) and not class_ and not expressions:
        return "every device"
    text = "/".join(name or "*" for name in names) if any(names) else "devices"
    if class_:
        text += f" of class {class_}"
    return f"{text} matching an expression" if expressions else text


# -- for programs ----------------------------------------------------------------------------------


def document(entry: HistoryEntry) -> dict[str, Any]:
    """Return a record as a plain value; the fields are promised to scripts."""
    from msgspec import to_builtins

    taint, selector = entry.taint, entry.selector
    deleted = entry.what == "deleted" and not entry.cluster
    fields = without_empty(
        time=time_text(entry.time),
        event=_event(entry).text,
        rule=entry.rule,
        cluster=entry.cluster,
        taint=without_empty(key=taint.key, value=taint.value, effect=taint.effect)
        if taint
        else None,
        change=entry.change,
        by=entry.by,
        reason=entry.why,
        endTime=entry.until,
        evicted=entry.evicted if deleted else None,
        evictedAtLeast=True if deleted and not entry.complete else None,
        mayInclude=True if entry.uncertain else None,
    )
    if selector is not None:
        fields["deviceSelector"] = to_builtins(selector)
    if entry.eviction is not None:
        spec = entry.eviction.spec
        fields |= without_empty(
            pod=to_builtins(spec.pod),
            claims=list(spec.claims),
            devices=list(spec.devices),
            causes=to_builtins(spec.causes),
            dueTime=time_text(spec.due_time),
        )
    return fields
