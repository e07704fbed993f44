"""The output of `sully plan`: a summary, tables, and which pods would be unschedulable, and why."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, TextIO

from sully.cli.client.formatting import duration, number
from sully.cli.client.tables import Cell, Column, Table, broken, look_of

if TYPE_CHECKING:
    from sully.domain.planning.grouping import Group
    from sully.domain.planning.report import ClassTold, Departure, DeviceTold, Landing, Plan
    from sully.domain.scheduling.diagnosis import Taint

_DONE = re.compile(r" (created|changed|unchanged|deleted)$")
_PUBLISHED = {"appears": "published", "vanishes": "unpublished"}
"""How these are printed; documents for programs keep the older words."""
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
    screen.fleet(plan)
    screen.classes(plan.classes)
    screen.homeless(plan)
    screen.lines(f"note: {each}" for each in plan.notes)
    out.flush()
    return screen.printed


def summary(plan: "Plan") -> str:
    """Return the most important in a few sentences."""
    if plan.about == "clusters":
        text = f"{number(len(plan.placements), 'placement')} would change."
        return f"{text} {plan.homeless} would lack clusters." if plan.homeless else text
    of = f"{len(plan.devices)} of " if len(plan.devices) != plan.devices_known else ""
    claims = f", used by {number(len(plan.claims), 'claim')}" if plan.claims else ""
    text = f"{of}{number(plan.devices_known, 'device')} affected{claims}."
    if not plan.devices:
        text = "No devices affected."
    evicted = plan.caused
    surely = ", as far as known." if plan.notes else "."
    if not evicted:
        return f"{text} No pods would be evicted{surely}"
    now = sum(each.after < 1 for each in evicted)
    last = max(each.after for each in evicted)
    when = _when(last)
    if now < len(evicted):
        when = f"after {when}" if len(evicted) == 1 else f"the last after {when}"
        when = f"{now} immediately, {when}" if now else when
    text += f" {number(len(evicted), 'pod')} would be evicted ({when})."
    return f"{text} {_rescheduled(len(evicted), plan.homeless)}{surely}"


def _rescheduled(pods: int, not_: int) -> str:
    if pods == 1:
        return f"It would {'not ' if not_ else ''}be rescheduled"
    if not_ == pods:
        return "None would be rescheduled"
    return f"{not_} would not be rescheduled" if not_ else "All would be rescheduled"


def _would(done: re.Match[str]) -> str:
    return " unchanged" if done[1] == "unchanged" else f" would be {done[1]}"


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
        self.lines(_DONE.sub(_would, each) for each in shown)
        self._more(len(plan.changes) - len(shown), "change")

    def devices(self, plan: "Plan") -> None:
        shown = plan.devices if self._wide else plan.devices[:MOST_DEVICES]
        if not shown:
            return
        # Most devices are not in use: claims shrink first, so that those take one line each.
        columns = [
            Column("DEVICE", shrinks=2),
            # Most drivers name the pool of a node after it: then the column is redundant.
            Column("NODE", shrinks=2),
            Column("CHANGE", shrinks=2),
            Column("CLAIMS", shrinks=1),
        ]
        self.table(columns, [_device(each) for each in shown])
        self._more(len(plan.devices) - len(shown), "device")

    def pods(self, plan: "Plan") -> None:
        from sully.domain.planning.grouping import grouped

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
            self.table(columns, [_departure(each) for each in plan.caused])
            return
        columns = [
            Column("NAMESPACE"),
            Column("OWNER", shrinks=True),
            Column("PODS", right=True),
            Column("EVICTED"),
            Column("THEN", shrinks=True),
        ]
        self.table(columns, [_group(each) for each in grouped(plan.caused)])

    def others(self, plan: "Plan") -> None:
        anyway = len(plan.departures) - len(plan.caused)
        told = [
            f"{each.namespace}/{each.name} would not be evicted: {each.why}" for each in plan.stays
        ]
        told += [
            f"pending pod {each.namespace}/{each.name} would be scheduled to {each.node}"
            + (" and evicted again" if each.returns else "")
            for each in plan.arrivals
        ]
        if anyway:
            told.append(f"{number(anyway, 'pod')} will be evicted without the change, too.")
        if told:
            self.lines(["", *told])

    def fleet(self, plan: "Plan") -> None:
        if plan.moves:
            columns = [
                Column("AFTER"),
                Column("PLACEMENT", shrinks=True),
                Column("REMOVED", shrinks=True),
                Column("ADDED", shrinks=True),
            ]
            rows = [
                [_when(x.after), x.placement, ", ".join(x.leaves), ", ".join(x.joins)]
                for x in plan.moves
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
                [x.placement, str(len(x.before)), str(len(x.after)), str(x.unmet), x.message]
                for x in plan.placements
            ]
            self.table(columns, rows)

    def classes(self, classes: Sequence["ClassTold"]) -> None:
        if not classes:
            return
        columns = [Column("CLASS", shrinks=True), Column("DEVICES", right=True)]
        columns += [Column(each, right=True) for each in ("TAINTED", "IN USE", "FREE")]
        self.table(columns, [_class(each) for each in classes])

    def homeless(self, plan: "Plan") -> None:
        from sully.domain.planning.report import HOMELESS

        found = [each for each in plan.caused if each.landing.fate in HOMELESS]
        if not found:
            return
        self.lines(["", f"{number(len(found), 'pod')} would not be rescheduled:"])
        most = None if self._wide else MOST_NAMES
        alike = _alike(found, most)
        shown = alike if self._wide else alike[:MOST_DEVICES]
        for (why, *requests), names in shown:
            self.lines([f"  {_some(names, most)}: {why}", *requests])
        self._more(len(found) - sum(len(names) for _, names in shown), "pod")

    def _more(self, left: int, thing: str) -> None:
        if left > 0:
            self.lines([f"and {number(left, f'more {thing}')}; -o wide shows all"])


def _device(told: "DeviceTold") -> list[str]:
    # The source is above the table.
    gains = (each.partition(" ")[0] for each in told.gains)
    loses = (each.partition(" ")[0] for each in told.loses)
    changes = [*(f"+{each}" for each in gains), *(f"-{each}" for each in loses)]
    changes += [_PUBLISHED.get(each, each) for each in told.changes]
    return [
        told.device,
        told.node or "-",
        ", ".join(changes),
        ", ".join(told.claims) or "-",
    ]


def _departure(each: "Departure") -> list[Cell | str]:
    return [
        each.namespace,
        each.name,
        each.owner,
        each.node,
        _when(each.after),
        _fate(each.landing),
    ]


def _when(seconds: float) -> str:
    # Times of taints are whole seconds, so a fraction is rounded up.
    return duration(ceil(seconds)) if seconds >= 1 else "immediately"


def _fate(landing: "Landing") -> Cell:
    from sully.domain.planning.report import Fate

    match landing.fate:
        case Fate.LANDS:
            return Cell(f"rescheduled to {landing.node}", "green")
        case Fate.PENDING:
            return Cell("unschedulable", "red")
        case Fate.RETURNS:
            return Cell(f"rescheduled to {landing.node}, evicted again", "red")
        case Fate.LOST:
            return Cell("not recreated", "red")


def _group(group: "Group") -> list[Cell | str]:
    first, last = _when(group.first), _when(group.last)
    return [
        group.namespace,
        group.owner,
        str(len(group.departures)),
        first if first == last else f"{first} to {last}",
        _fates(group),
    ]


def _fates(group: "Group") -> Cell:
    from sully.domain.planning.report import Fate

    nodes = group.nodes
    more = f" and {len(nodes) - 3} more" if nodes[3:] else ""
    where = f" to {', '.join(nodes[:3])}{more}" if nodes else ""
    words = {
        Fate.LANDS: f"rescheduled{where}",
        Fate.PENDING: "unschedulable",
        Fate.RETURNS: "evicted again",
        Fate.LOST: "not recreated",
    }
    texts = [f"{count} {words[fate]}" for fate, count in group.fates.items()]
    return Cell(", ".join(texts), "green" if set(group.fates) == {Fate.LANDS} else "red")


def _class(told: "ClassTold") -> list[str]:
    return [
        told.name,
        _from_to(told.devices_before, told.devices),
        _from_to(told.tainted_before, told.tainted_after),
        _from_to(told.used_before, told.used_after),
        _from_to(told.free_before, told.free_after),
    ]


def _from_to(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} -> {after}"


def _alike(
    departures: "Iterable[Departure]", most: int | None
) -> list[tuple[tuple[str, ...], list[str]]]:
    """Group pods that are unschedulable for the same reasons."""
    found: dict[tuple[str, ...], list[str]] = {}
    for each in departures:
        # Preemption is not part of a plan.
        why = each.landing.why.partition(" preemption:")[0]
        reasons = (why, *_spoken(each.landing, most))
        found.setdefault(reasons, []).append(f"{each.namespace}/{each.name}")
    return list(found.items())


def _some(names: Sequence[str], most: int | None) -> str:
    """Write the first names, and how many more there are."""
    left = 0 if most is None else len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


def _spoken(landing: "Landing", most: int | None) -> Iterator[str]:
    """Yield why devices were not available for each request."""
    account = landing.account
    for asked in account.requests if account is not None else ():
        parts = [f"{asked.available} available"]
        parts += [
            f"{count} {_words(why)}" for why, count in asked.refused.items() if why != "taint"
        ]
        parts += _tainted(asked.taints, most)
        if asked.more_taints:
            parts.append(number(asked.more_taints, "more taint"))
        yield f"    request {asked.request} needs {asked.wanted}: {', '.join(parts)}"


def _tainted(taints: "Sequence[Taint]", most: int | None) -> Iterator[str]:
    """Yield how many devices each taint excludes, and its source.

    A taint that many rules set, as those of a glob do, is listed once, with the devices of each
    rule in parentheses: two rules may select the same device, so there is no sum.
    """
    found: dict[tuple[str, bool], list[Taint]] = {}
    for each in taints:
        found.setdefault((f"{each.key}:{each.effect}", each.expired), []).append(each)
    for (taint, expired), counts in found.items():
        end = ", no longer tolerated" if expired else ""
        if len(counts) == 1:
            yield f"{counts[0].devices} tainted {taint} by {counts[0].origin}{end}"
        else:
            origins = [f"{each.origin} ({each.devices})" for each in counts]
            yield f"tainted {taint} by {_some(origins, most)}{end}"


def _words(name: str) -> str:
    """Write a name such as `inUse` in words."""
    return "".join(f" {each.lower()}" if each.isupper() else each for each in name)
