"""The output of `sully evictions`: rows of a table, and documents for programs."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from sully.cli.output.formatting import age, until
from sully.cli.output.printers import time_text, without_empty
from sully.cli.output.tables import Cell, Column
from sully.domain.tolerations import taint_text
from sully.machinery.formats.plurals import number_of
from sully.views.eviction_loops import LoopWithRules
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
    "looping": "red",
    "evicting": "red",
    "waiting": "yellow",
    "terminating": "yellow",
    "paused": "yellow",
    "done": "green",
    "unknown": "yellow",
    "inactive": "yellow",
}
_UNKNOWN = "?"
UNRECORDED = (
    "+ means at least, unknown that no number is known: the eviction controller of this server\n"
    "  only counts since it was started, and reports up to ten seconds late\n"
    "  Sully's controller keeps records: sully install --evictor sully"
)


def columns(*, wide: bool) -> Sequence[Column]:
    return (*_COLUMNS, *_WIDE_COLUMNS) if wide else _COLUMNS


def row(progress: EvictionProgress, now: datetime, *, wide: bool) -> Sequence[Cell | str]:
    rule, rate = progress.rule, progress.rate
    cells: list[Cell | str] = [
        rule.metadata.name,
        taint_text(rule.spec.taint),
        Cell(progress.state, _STYLES[progress.state]),
        str(len(progress.pending)) if progress.visible else _UNKNOWN,
        _evicted(progress),
        str(rate) if rate is not None else "-",
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


def _evicted(progress: EvictionProgress) -> str:
    if progress.state == "inactive":
        # Nothing updates the status of the rule.
        return f"{progress.evicted} (stale)" if progress.evicted else "0"
    if progress.complete:
        return str(progress.evicted)
    return f"{progress.evicted}+" if progress.evicted else "unknown"


def _reason(progress: EvictionProgress) -> str:
    paused = progress.paused
    if paused is None:
        return progress.description
    text = "paused" if paused == "true" else f"paused: {paused}"
    return f"{progress.description} ({text})" if progress.description else text


def with_loops(progress: EvictionProgress, loops: Iterable[LoopWithRules]) -> EvictionProgress:
    """Return the progress of a rule, with the state `looping` if it evicts pods in a loop."""
    if any(progress.rule.metadata.name in loop_rules.rules for loop_rules in loops):
        return replace(progress, state="looping")
    return progress


def loop_text(loop_rules: LoopWithRules, now: datetime) -> str:
    """Return which pods are evicted again and again."""
    loop = loop_rules.loop
    kind, _, name = loop.owner.partition("/")
    rule = loop_rules.rules[0] if loop_rules.rules else "NAME"
    return (
        f"{number_of(loop.evicted, 'pod')} of {kind} {loop.namespace}/{name} evicted in the last"
        f" {age(loop.first, now)}: they are recreated on tainted devices and evicted again\n"
        f"  'sully explain rule {rule}' shows why, and what would help"
    )


def loop_document(loop_rules: LoopWithRules) -> dict[str, Any]:
    """Return an eviction loop as a plain value."""
    loop = loop_rules.loop
    return {
        "namespace": loop.namespace,
        "owner": loop.owner,
        "rules": list(loop_rules.rules),
        "evicted": loop.evicted,
        "firstEvictionTime": time_text(loop.first),
        "lastEvictionTime": time_text(loop.last),
    }


def document(progress: EvictionProgress) -> dict[str, Any]:
    """Return a rule as a plain value; the fields are promised to scripts."""
    taint, rate = progress.rule.spec.taint, progress.rate
    return without_empty(
        rule=progress.rule.metadata.name,
        taint=without_empty(key=taint.key, value=taint.value, effect=taint.effect),
        state=progress.state,
        paused=progress.paused,
        pending=len(progress.pending) if progress.visible else None,
        terminating=len(progress.terminating) if progress.visible else None,
        evicted=progress.evicted,
        evictedAtLeast=None if progress.complete else True,
        stale=progress.state == "inactive" or None,
        evictionsPerSecond=taint.evictions_per_second,
        rate=str(rate) if rate is not None else None,
        burst=rate.burst if rate is not None else None,
        finishTime=time_text(progress.finish),
        devices=progress.devices,
        createdBy=progress.author,
        description=progress.description,
        pods=[
            without_empty(
                namespace=key.namespace,
                name=key.name,
                # While it is paused, no pod is due.
                evictionTime=time_text(due) if progress.paused is None else None,
            )
            for key, due in progress.pending.items()
        ],
        terminatingPods=[
            {"namespace": key.namespace, "name": key.name, "graceEndTime": time_text(end)}
            for key, end in progress.terminating.items()
        ],
    )
