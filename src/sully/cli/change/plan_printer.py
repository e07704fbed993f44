"""The output of `sully plan`: a summary, tables, and which pods would be unschedulable, and why."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, TextIO

from sully.cli.client.formatting import duration, number
from sully.cli.client.tables import Cell, Column, Table, broken, look_of

if TYPE_CHECKING:
    from sully.domain.planning.report import (
        ClassCounts,
        DeviceChange,
        OwnerEvictions,
        Plan,
        PlannedEviction,
        Replacement,
    )
    from sully.domain.scheduling.diagnosis import Taint

_CHANGED = re.compile(r" (created|changed|unchanged|deleted)$")
MOST_DEVICES = 10
"""Rows of the short format for devices, and for reasons why pods are unschedulable."""
MOST_NAMES = 3
"""Names that the short format lists for the same reason."""


def show_plan(plan: "Plan", *, wide: bool = False, stream: TextIO | None = None) -> int:
    """Print a plan; return the number of lines."""
    out = stream or sys.stdout
    screen = _Screen(out, wide=wide)
    screen.changes(plan)
    screen.lines(["", summary(plan)])
    screen.devices(plan)
    screen.pods(plan)
    screen.others(plan)
    screen.placements(plan)
    screen.classes(plan.classes)
    screen.not_rescheduled(plan)
    screen.lines(f"note: {note}" for note in plan.notes)
    out.flush()
    return screen.printed


def summary(plan: "Plan") -> str:
    """Return the most important in a few sentences."""
    if plan.subject == "clusters":
        text = f"{number(len(plan.placements), 'placement')} would change."
        lacking = len(plan.unsatisfied_placements)
        return f"{text} {lacking} would lack clusters." if lacking else text
    of = f"{len(plan.devices)} of " if len(plan.devices) != plan.total_devices else ""
    claims = f", used by {number(len(plan.claims), 'claim')}" if plan.claims else ""
    text = f"{of}{number(plan.total_devices, 'device')} affected{claims}."
    if not plan.devices:
        text = "No devices affected."
    evicted = plan.caused
    end = ", as far as known." if plan.notes else "."
    if not evicted:
        return f"{text} No pods would be evicted{end}"
    now = sum(eviction.after_seconds < 1 for eviction in evicted)
    when = _when(max(eviction.after_seconds for eviction in evicted))
    if now < len(evicted):
        when = f"after {when}" if len(evicted) == 1 else f"the last after {when}"
        when = f"{now} immediately, {when}" if now else when
    text += f" {number(len(evicted), 'pod')} would be evicted ({when})."
    return f"{text} {_rescheduled(len(evicted), len(plan.not_rescheduled))}{end}"


def _rescheduled(pods: int, failed: int) -> str:
    if pods == 1:
        return f"It would {'not ' if failed else ''}be rescheduled"
    if failed == pods:
        return "None would be rescheduled"
    return f"{failed} would not be rescheduled" if failed else "All would be rescheduled"


def _would_be(verb: re.Match[str]) -> str:
    return " unchanged" if verb[1] == "unchanged" else f" would be {verb[1]}"


class _Screen:
    def __init__(self, out: TextIO, *, wide: bool) -> None:
        self._out = out
        self._wide = wide
        self._look = look_of(out)
        self.printed = 0
        """Lines so far."""

    def lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            text, width = line.lstrip(), self._look.width
            indent = line[: len(line) - len(text)]
            parts = broken(text, width - len(indent)) if width is not None else [text]
            self._print([f"{indent}{part}".rstrip() for part in parts])

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]]) -> None:
        self._print(["", *Table(columns, self._look).lines(rows)])

    def _print(self, lines: Sequence[str]) -> None:
        self._out.writelines(f"{line}\n" for line in lines)
        self.printed += len(lines)

    def changes(self, plan: "Plan") -> None:
        shown = plan.changes if self._wide else plan.changes[:MOST_DEVICES]
        self.lines(_CHANGED.sub(_would_be, change) for change in shown)
        self._more(len(plan.changes) - len(shown), "change")

    def devices(self, plan: "Plan") -> None:
        shown = plan.devices if self._wide else plan.devices[:MOST_DEVICES]
        if not shown:
            return
        # Most devices are not in use: claims shrink first, so that those take one line each.
        columns = [
            Column("DEVICE", shrinks=2),
            Column("NODE", shrinks=2),
            Column("CHANGE", shrinks=2),
            Column("CLAIMS", shrinks=1),
        ]
        self.table(columns, [_device(device) for device in shown])
        self._more(len(plan.devices) - len(shown), "device")

    def pods(self, plan: "Plan") -> None:
        from sully.domain.planning.report import group_by_owner

        if not plan.caused:
            return
        if self._wide:
            columns = [
                Column("NAMESPACE"),
                Column("POD", shrinks=True),
                Column("OWNER", shrinks=True),
                Column("NODE"),
                Column("EVICTED"),
                Column("THEN", shrinks=True),
            ]
            self.table(columns, [_eviction(eviction) for eviction in plan.caused])
            return
        columns = [
            Column("NAMESPACE"),
            Column("OWNER", shrinks=True),
            Column("PODS", right=True),
            Column("EVICTED"),
            Column("THEN", shrinks=True),
        ]
        self.table(columns, [_owner(owner) for owner in group_by_owner(plan.caused)])

    def others(self, plan: "Plan") -> None:
        lines = [
            f"{pod.namespace}/{pod.name} would not be evicted: {pod.message}"
            for pod in plan.blocked_evictions
        ]
        lines += [
            f"pending pod {pod.namespace}/{pod.name} would be scheduled to {pod.node}"
            + (" and evicted again" if pod.evicted_again else "")
            for pod in plan.scheduled_pods
        ]
        without_change = len(plan.evictions) - len(plan.caused)
        if without_change:
            lines.append(
                f"{number(without_change, 'pod')} will be evicted without the change, too."
            )
        if lines:
            self.lines(["", *lines])

    def placements(self, plan: "Plan") -> None:
        if plan.decision_changes:
            columns = [
                Column("AFTER"),
                Column("PLACEMENT", shrinks=True),
                Column("REMOVED", shrinks=True),
                Column("ADDED", shrinks=True),
            ]
            rows = [
                [
                    _when(change.after_seconds),
                    change.placement,
                    ", ".join(change.removed_clusters),
                    ", ".join(change.added_clusters),
                ]
                for change in plan.decision_changes
            ]
            self.table(columns, rows)
        if plan.placements:
            columns = [
                Column("PLACEMENT", shrinks=True),
                Column("BEFORE", right=True),
                Column("AFTER", right=True),
                Column("MISSING", right=True),
                Column("MESSAGE", shrinks=True),
            ]
            rows = [
                [
                    change.placement,
                    str(len(change.before)),
                    str(len(change.after)),
                    str(change.missing_clusters),
                    change.message,
                ]
                for change in plan.placements
            ]
            self.table(columns, rows)

    def classes(self, classes: Sequence["ClassCounts"]) -> None:
        if not classes:
            return
        columns = [Column("CLASS", shrinks=True), Column("DEVICES", right=True)]
        columns += [Column(title, right=True) for title in ("TAINTED", "IN USE", "FREE")]
        self.table(columns, [_class(counts) for counts in classes])

    def not_rescheduled(self, plan: "Plan") -> None:
        evictions = plan.not_rescheduled
        if not evictions:
            return
        self.lines(["", f"{number(len(evictions), 'pod')} would not be rescheduled:"])
        limit = None if self._wide else MOST_NAMES
        groups = _group_by_message(evictions, limit)
        shown = groups if self._wide else groups[:MOST_DEVICES]
        for (message, *requests), names in shown:
            self.lines([f"  {_shorten(names, limit)}: {message}", *requests])
        self._more(len(evictions) - sum(len(names) for _, names in shown), "pod")

    def _more(self, left: int, thing: str) -> None:
        if left > 0:
            self.lines([f"and {number(left, f'more {thing}')}; -o wide shows all"])


def _device(change: "DeviceChange") -> list[str]:
    # The source is above the table.
    added = [f"+{taint.partition(' ')[0]}" for taint in change.added_taints]
    removed = [f"-{taint.partition(' ')[0]}" for taint in change.removed_taints]
    return [
        change.device,
        change.node or "-",
        ", ".join((*added, *removed, *change.changes)),
        ", ".join(change.claims) or "-",
    ]


def _eviction(eviction: "PlannedEviction") -> list[Cell | str]:
    return [
        eviction.namespace,
        eviction.name,
        eviction.owner,
        eviction.node,
        _when(eviction.after_seconds),
        _outcome(eviction.replacement),
    ]


def _when(seconds: float) -> str:
    # Times of taints are whole seconds, so a fraction is rounded up.
    return duration(ceil(seconds)) if seconds >= 1 else "immediately"


def _outcome(replacement: "Replacement") -> Cell:
    from sully.domain.planning.report import ReplacementOutcome

    match replacement.outcome:
        case ReplacementOutcome.RESCHEDULED:
            return Cell(f"rescheduled to {replacement.node}", "green")
        case ReplacementOutcome.PENDING:
            return Cell("unschedulable", "red")
        case ReplacementOutcome.EVICTED_AGAIN:
            return Cell(f"rescheduled to {replacement.node}, evicted again", "red")
        case ReplacementOutcome.NOT_REPLACED:
            return Cell("not recreated", "red")


def _owner(owner: "OwnerEvictions") -> list[Cell | str]:
    first, last = _when(owner.first), _when(owner.last)
    return [
        owner.namespace,
        owner.owner,
        str(len(owner.evictions)),
        first if first == last else f"{first} to {last}",
        _outcomes(owner),
    ]


def _outcomes(owner: "OwnerEvictions") -> Cell:
    from sully.domain.planning.report import ReplacementOutcome

    nodes = f" to {_shorten(owner.nodes, MOST_NAMES)}" if owner.nodes else ""
    texts = {
        ReplacementOutcome.RESCHEDULED: f"rescheduled{nodes}",
        ReplacementOutcome.PENDING: "unschedulable",
        ReplacementOutcome.EVICTED_AGAIN: "evicted again",
        ReplacementOutcome.NOT_REPLACED: "not recreated",
    }
    text = ", ".join(f"{count} {texts[outcome]}" for outcome, count in owner.outcomes.items())
    all_rescheduled = owner.outcomes.keys() == {ReplacementOutcome.RESCHEDULED}
    return Cell(text, "green" if all_rescheduled else "red")


def _class(counts: "ClassCounts") -> list[str]:
    return [
        counts.name,
        _from_to(counts.devices_before, counts.devices_after),
        _from_to(counts.tainted_before, counts.tainted_after),
        _from_to(counts.used_before, counts.used_after),
        _from_to(counts.free_before, counts.free_after),
    ]


def _from_to(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} -> {after}"


def _group_by_message(
    evictions: "Iterable[PlannedEviction]", limit: int | None
) -> list[tuple[tuple[str, ...], list[str]]]:
    """Group pods that are unschedulable for the same reasons."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for eviction in evictions:
        # Preemption is not part of a plan.
        message = eviction.replacement.message.partition(" preemption:")[0]
        texts = (message, *_requests(eviction.replacement, limit))
        groups.setdefault(texts, []).append(f"{eviction.namespace}/{eviction.name}")
    return list(groups.items())


def _shorten(names: Sequence[str], limit: int | None) -> str:
    """Return the first names, and how many more there are."""
    left = 0 if limit is None else len(names) - limit
    return ", ".join(names[:limit]) + (f" and {left} more" if left > 0 else "")


def _requests(replacement: "Replacement", limit: int | None) -> Iterator[str]:
    """Yield why devices were not available for each request."""
    diagnosis = replacement.diagnosis
    for request in diagnosis.requests if diagnosis is not None else ():
        parts = [f"{request.available} available"]
        parts += [
            f"{count} {_words(reason)}"
            for reason, count in request.refused.items()
            if reason != "taint"
        ]
        parts += _tainted(request.taints, limit)
        if request.more_taints:
            parts.append(number(request.more_taints, "more taint"))
        yield f"    request {request.request} needs {request.wanted}: {', '.join(parts)}"


def _tainted(taints: "Sequence[Taint]", limit: int | None) -> Iterator[str]:
    """Yield how many devices each taint excludes, and its source.

    A taint that many rules set, as those of a glob do, is listed once, with the devices of each
    rule in parentheses: two rules may select the same device, so there is no sum.
    """
    groups: dict[tuple[str, bool], list[Taint]] = {}
    for taint in taints:
        groups.setdefault((f"{taint.key}:{taint.effect}", taint.expired), []).append(taint)
    for (text, lapsed), same in groups.items():
        end = ", no longer tolerated" if lapsed else ""
        if len(same) == 1:
            yield f"{same[0].devices} tainted {text} by {same[0].origin}{end}"
        else:
            origins = [f"{taint.origin} ({taint.devices})" for taint in same]
            yield f"tainted {text} by {_shorten(origins, limit)}{end}"


def _words(name: str) -> str:
    """Return a name such as `inUse` in words."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name)
