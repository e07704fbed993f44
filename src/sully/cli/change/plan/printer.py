"""The output of `sully plan`: a summary, tables, and which pods would be unschedulable, and why."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from sully.cli.change.plan.outcomes import (
    MOST_NAMES,
    created_text,
    eviction_row,
    owner_row,
    risk_text,
    when_text,
    without_change_text,
)
from sully.cli.change.plan.reasons import group_by_message, shorten, unmatched
from sully.cli.output.tables import STYLES, Cell, Column, Table, broken, table_layout_of
from sully.domain.planning.report import ReplacementOutcome, group_by_owner
from sully.machinery.formats.plurals import number_of

if TYPE_CHECKING:
    from sully.domain.planning.report import (
        ClassCounts,
        DeviceChange,
        EvictionLoop,
        LatentEffects,
        ObjectChange,
        Plan,
        PlannedEviction,
        UnschedulableOwner,
    )

MOST_DEVICES = 10
"""Rows of the short format for devices, and for reasons why pods are unschedulable."""
MOST_BUDGETS = 5
"""PodDisruptionBudgets that are listed."""
MOST_LOOPS = 3
"""Eviction loops that the short format has; each takes some lines."""


def show_plan(
    plan: "Plan", *, wide: bool = False, stream: TextIO | None = None, objects: bool = True
) -> int:
    """Print a plan, with the `objects` that would change; return the number of lines."""
    out = stream or sys.stdout
    screen = _Screen(out, wide=wide)
    screen.loops(plan)
    screen.changes(plan, written=objects)
    screen.lines(f"warning: {text}" for text in plan.no_effects)
    screen.lines([*[""] * bool(screen.printed), summary(plan)])
    screen.lines(broken_budgets(plan))
    screen.devices(plan)
    screen.pods(plan)
    screen.others(plan)
    screen.latent(plan.latent_effects)
    screen.placements(plan)
    screen.classes(plan.classes)
    screen.not_rescheduled(plan)
    screen.lines(f"note: {note}" for note in plan.notes)
    out.flush()
    return screen.printed


def summary(plan: "Plan") -> str:
    """Return the most important in a few sentences."""
    return f"{_effects(plan)}{_latent(plan.latent_effects)}"


def broken_budgets(plan: "Plan") -> list[str]:
    """Return which PodDisruptionBudgets would not be honored, and what honors them."""
    budgets = plan.broken_budgets
    if not budgets:
        return []
    lines = [
        f"warning: PodDisruptionBudget {budget.namespace}/{budget.name} would be broken:"
        f" {number_of(budget.pods, 'pod')} would be evicted, and it allows"
        f" {number_of(budget.allowed, 'disruption')}"
        for budget in budgets[:MOST_BUDGETS]
    ]
    if len(budgets) > MOST_BUDGETS:
        lines.append(f"warning: {len(budgets) - MOST_BUDGETS} more budgets would be broken")
    return [*lines, "  NoExecute does not honor budgets; 'sully drain' alone does"]


def _latent(latent: "LatentEffects") -> str:
    """Return what happens to pods that are created later."""
    texts = []
    if latent.owners:
        texts.append(
            f" New pods of {number_of(len(latent.owners), 'owner')} would be unschedulable."
        )
    if latent.total_requests:
        texts.append(f" {number_of(latent.total_requests, 'request')} would match no device.")
    return "".join(texts)


def _effects(plan: "Plan") -> str:
    if plan.subject == "clusters":
        # One that loses a cluster later than without the change has the same clusters in the end.
        moved = {change.placement for change in plan.decision_changes}
        changed = moved.union(change.placement for change in plan.placements)
        text = f"{number_of(len(changed), 'placement')} would change."
        lacking = len(plan.unsatisfied_placements)
        return f"{text} {lacking} would lack clusters." if lacking else text
    of = f"{len(plan.devices)} of " if len(plan.devices) != plan.total_devices else ""
    claims = f", used by {number_of(len(plan.claims), 'claim')}" if plan.claims else ""
    text = f"{of}{number_of(plan.total_devices, 'device')} affected{claims}."
    evicted = plan.caused
    if not plan.devices:
        # A drain that is resumed evicts pods from devices that are cordoned already.
        text = "" if evicted else "No devices affected."
    end = ", as far as known." if plan.notes else "."
    loops = _looping(plan)
    if not evicted:
        return f"{text} {loops}" if loops else f"{text} No pods would be evicted{end}"
    now = sum(eviction.after_seconds < 1 for eviction in evicted)
    when = when_text(max(eviction.after_seconds for eviction in evicted))
    if now < len(evicted):
        when = f"after {when}" if len(evicted) == 1 else f"the last after {when}"
        when = f"{now} immediately, {when}" if now else when
    text += f"{' ' if text else ''}{number_of(len(evicted), 'pod')} would be evicted ({when})."
    if loops:
        return f"{text} {loops}"
    text = f"{text} {_rescheduled(len(evicted), len(plan.not_rescheduled), len(plan.unknown))}"
    risk = f"; {len(plan.at_risk)} may be evicted again" if plan.at_risk else ""
    return f"{text}{risk}{end}"


def headline(loop: "EvictionLoop") -> str:
    """Return which pods would be evicted again and again, and how fast."""
    kind, _, name = loop.owner.partition("/")
    rate = loop.evictions_per_minute
    fast = f"up to {number_of(rate, 'eviction')} per minute" if rate else "without a limit"
    start = when_text(loop.after_seconds)
    begin = "immediately" if start == "immediately" else f"after {start}"
    return (
        f"Eviction loop: {number_of(loop.pods, 'pod')} of {kind} {loop.namespace}/{name} would be"
        f" evicted again and again ({fast}, starting {begin})."
    )


def _looping(plan: "Plan") -> str:
    """Return what is printed about evicted pods instead of whether they are rescheduled."""

    pods = sum(loop.pods for loop in plan.eviction_loops)
    if not pods:
        return ""
    text = f"{number_of(pods, 'pod')} would be recreated and evicted again and again."
    again = ReplacementOutcome.EVICTED_AGAIN
    others = sum(x.replacement.outcome is not again for x in plan.not_rescheduled)
    return f"{text} {others} would not be rescheduled." if others else text


def _rescheduled(pods: int, failed: int, unknown: int = 0) -> str:
    if unknown:
        known = f"{failed} would not be rescheduled, and w" if failed else "W"
        return f"{known}hat happens to {unknown if pods > 1 else 'it'} is not known"
    if pods == 1:
        return f"It would {'not ' if failed else ''}be rescheduled"
    if failed == pods:
        return "None would be rescheduled"
    return f"{failed} would not be rescheduled" if failed else "All would be rescheduled"


def _would_be(change: "ObjectChange") -> str:
    if change.verb == "unchanged":
        return change.text
    return f"{change.object} would be {change.verb}"


class _Screen:
    def __init__(self, out: TextIO, *, wide: bool) -> None:
        self._out = out
        self._wide = wide
        self._layout = table_layout_of(out)
        self.printed = 0
        """Lines so far."""

    def lines(self, lines: Iterable[str], *, style: str = "") -> None:
        for line in lines:
            text, width = line.lstrip(), self._layout.width
            indent = line[: len(line) - len(text)]
            parts = broken(text, width - len(indent)) if width is not None else [text]
            self._print([self._styled(f"{indent}{part}".rstrip(), style) for part in parts])

    def _styled(self, line: str, style: str) -> str:
        return f"\x1b[{STYLES[style]}m{line}\x1b[0m" if style and self._layout.color else line

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]]) -> None:
        self._print(["", *Table(columns, self._layout).lines(rows)])

    def _print(self, lines: Sequence[str]) -> None:
        self._out.writelines(f"{line}\n" for line in lines)
        self.printed += len(lines)

    def loops(self, plan: "Plan") -> None:
        """Print the eviction loops, before everything else."""
        loops = plan.eviction_loops
        shown = loops if self._wide else loops[:MOST_LOOPS]
        for loop in shown:
            self.lines([headline(loop)], style="red")
            self.lines([f"  {loop.message}", "  What would help:"])
            self.lines(f"  - {remedy}" for remedy in loop.remedies)
            self.lines([""])
        self._more(len(loops) - len(shown), "eviction loop")
        if len(loops) > len(shown):
            self.lines([""])

    def changes(self, plan: "Plan", *, written: bool) -> None:
        changes = [x for x in plan.changes if written or x.verb == "unchanged"]
        shown = changes if self._wide else changes[:MOST_DEVICES]
        self.lines(_would_be(change) for change in shown)
        self._more(len(changes) - len(shown), "change")

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
            self.table(columns, [eviction_row(eviction) for eviction in plan.caused])
            return
        columns = [
            Column("NAMESPACE"),
            Column("OWNER", shrinks=True),
            Column("PODS", right=True),
            Column("EVICTED"),
            Column("THEN", shrinks=True),
        ]
        self.table(columns, [owner_row(owner) for owner in group_by_owner(plan.caused)])

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
        lines += [
            f"{pod.namespace}/{pod.name} would be deleted by its owner: {pod.message}"
            for pod in plan.deleted_pods
        ]
        lines += [f"{pod.namespace}/{pod.name} {created_text(pod)}" for pod in plan.created_pods]
        lines += sorted(
            {f"{x.replacement.expected}." for x in plan.caused if x.replacement.expected}
        )
        lines += risk_text(plan.at_risk)
        lines += without_change_text(plan, None if self._wide else MOST_NAMES)
        if lines:
            self.lines(["", *lines])

    def latent(self, latent: "LatentEffects") -> None:
        owners = latent.owners if self._wide else latent.owners[:MOST_DEVICES]
        requests = latent.requests if self._wide else latent.requests[:MOST_DEVICES]
        if not owners and not requests:
            return
        self.lines(["", "Latent effects, when pods are created later:"])
        if owners:
            columns = [
                Column("NAMESPACE"),
                Column("OWNER", shrinks=True),
                Column("PODS", right=True),
                Column("UNSCHEDULABLE"),
                Column("REASON", shrinks=True),
            ]
            self.table(columns, [_later_pod(owner) for owner in owners])
            self._more(len(latent.owners) - len(owners), "owner")
            if latent.owners_not_evaluated:
                count = number_of(latent.owners_not_evaluated, "more owner")
                self.lines([f"{count} with pods on these devices not evaluated"])
        if requests:
            self.lines(["", *map(unmatched, requests)])
            self._more(latent.total_requests - len(requests), "request")

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
                    when_text(change.after_seconds),
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
        if evictions:
            self._reasons(
                f"{number_of(len(evictions), 'pod')} would not be rescheduled:", evictions
            )
        if plan.unknown:
            text = f"What happens to {number_of(len(plan.unknown), 'pod')} is not known:"
            self._reasons(text, plan.unknown)

    def _reasons(self, title: str, evictions: "Sequence[PlannedEviction]") -> None:
        self.lines(["", title])
        limit = None if self._wide else MOST_NAMES
        groups = group_by_message(evictions, limit)
        shown = groups if self._wide else groups[:MOST_DEVICES]
        for (message, *requests), names in shown:
            self.lines([f"  {shorten(names, limit)}: {message}", *requests])
        self._more(len(evictions) - sum(len(names) for _, names in shown), "pod")

    def _more(self, left: int, thing: str) -> None:
        if left > 0:
            self.lines([f"and {number_of(left, f'more {thing}')}; -o wide shows all"])


def _device(change: "DeviceChange") -> list[str]:
    # The source is above the table.
    added = [f"+{taint.taint}" for taint in change.added_taints]
    removed = [f"-{taint.taint}" for taint in change.removed_taints]
    return [
        change.device,
        change.node or "-",
        ", ".join((*added, *removed, *change.changes)),
        ", ".join(change.claims) or "-",
    ]


def _later_pod(owner: "UnschedulableOwner") -> list[Cell | str]:
    when = "if a pod is recreated" if owner.next_pod == "Replacement" else "if a pod is added"
    return [owner.namespace, owner.owner, str(owner.pods), Cell(when, "yellow"), owner.message]


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
