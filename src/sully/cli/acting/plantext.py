"""A plan on the screen: a summary, tables, and who would find no place, and why."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, TextIO

from sully.cli.client.tables import Cell, Column, Table, broken, look_of
from sully.cli.client.words import number, span

if TYPE_CHECKING:
    from sully.domain.planning.grouping import Group
    from sully.domain.planning.report import (
        ClassTold,
        Departure,
        DeviceTold,
        Landing,
        Plan,
    )

_DONE = re.compile(r" (created|changed|unchanged|deleted)$")
MOST_DEVICES = 10
"""Rows that the short form has for devices, and for pods without a place."""


def show_plan(plan: "Plan", *, wide: bool = False, stream: TextIO | None = None) -> None:
    """Print a plan for people."""
    out = stream or sys.stdout
    screen = _Screen(out, wide=wide)
    screen.changes(plan)
    screen.lines(["", *summary(plan)])
    screen.devices(plan)
    screen.pods(plan)
    screen.others(plan)
    screen.fleet(plan)
    screen.classes(plan.classes)
    screen.homeless(plan)
    screen.lines(f"note: {each}" for each in plan.notes)
    out.flush()


def summary(plan: "Plan") -> Iterator[str]:
    """Say the most important in a few lines."""
    if plan.about == "clusters":
        yield f"{number(len(plan.placements), 'placement')} would come out otherwise."
        if plan.homeless:
            yield f"{plan.homeless} of them would lack clusters."
        return
    devices, claims = number(len(plan.devices), "device"), number(len(plan.claims), "claim")
    yield f"{devices} of {plan.devices_known} would change, held by {claims}."
    left = plan.caused
    surely = ", as far as is known." if plan.notes else "."
    if not left:
        yield f"Nobody would have to leave{surely}"
        return
    at_once = sum(each.after < 1 for each in left)
    last = max(each.after for each in left)
    when = "at once" if at_once == len(left) else f"{at_once} at once, the last after {_when(last)}"
    yield f"{number(len(left), 'pod')} would have to leave: {when}."
    yield f"{_places(len(left), plan.homeless)}{surely}"


def _places(pods: int, homeless: int) -> str:
    if pods == 1:
        return f"It would find {'no' if homeless else 'another'} place"
    if homeless == pods:
        return "None of them would find another place"
    if homeless:
        return f"{homeless} of them would find no place"
    return "All of them would find another place"


def _would(done: re.Match[str]) -> str:
    return " would stay as it is" if done[1] == "unchanged" else f" would be {done[1]}"


class _Screen:
    def __init__(self, out: TextIO, *, wide: bool) -> None:
        self._out = out
        self._wide = wide
        self._look = look_of(out)

    def lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            text, width = line.lstrip(), self._look.width
            indent = line[: len(line) - len(text)]
            parts = broken(text, width - len(indent)) if width is not None else [text]
            self._out.writelines(f"{indent}{part}".rstrip() + "\n" for part in parts)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]]) -> None:
        self._out.write("\n")
        Table(columns, self._look).show(rows, self._out)

    def changes(self, plan: "Plan") -> None:
        shown = plan.changes if self._wide else plan.changes[:MOST_DEVICES]
        self.lines(_DONE.sub(_would, each) for each in shown)
        self._more(len(plan.changes) - len(shown), "change")

    def devices(self, plan: "Plan") -> None:
        shown = plan.devices if self._wide else plan.devices[:MOST_DEVICES]
        if not shown:
            return
        columns = [
            Column("DEVICE", shrinks=True),
            # Most drivers have a pool for each node and call it so: then it is said already.
            Column("NODE", drops=all(f"/{each.node}/" in each.device for each in shown)),
            Column("CHANGE", shrinks=True),
            Column("CLAIMS", shrinks=True),
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
                Column("LEAVES"),
                Column("THEN", shrinks=True),
            ]
            self.table(columns, [_departure(each) for each in plan.caused])
            return
        columns = [
            Column("NAMESPACE"),
            Column("OWNER", shrinks=True),
            Column("PODS", right=True),
            Column("LEAVE"),
            Column("THEN", shrinks=True),
        ]
        self.table(columns, [_group(each) for each in grouped(plan.caused)])

    def others(self, plan: "Plan") -> None:
        anyway = len(plan.departures) - len(plan.caused)
        told = [f"{each.namespace}/{each.name} would stay: {each.why}" for each in plan.stays]
        told += [
            f"{each.namespace}/{each.name}, which waits now, would get {each.node}"
            + (" and leave again" if each.returns else "")
            for each in plan.arrivals
        ]
        if anyway:
            told.append(f"{number(anyway, 'pod')} would leave without the change as well.")
        if told:
            self.lines(["", *told])

    def fleet(self, plan: "Plan") -> None:
        if plan.moves:
            columns = [
                Column("AFTER"),
                Column("PLACEMENT", shrinks=True),
                Column("LEAVES", shrinks=True),
                Column("JOINS", shrinks=True),
            ]
            rows = [
                [_when(x.after), x.placement, ", ".join(x.leaves), ", ".join(x.joins)]
                for x in plan.moves
            ]
            self.table(columns, rows)
        if plan.placements:
            columns = [
                Column("PLACEMENT", shrinks=True),
                Column("HAS", right=True),
                Column("GETS", right=True),
                Column("LACKS", right=True),
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
        self.lines(["", f"{number(len(found), 'pod')} would find no place:"])
        shown = found if self._wide else found[:MOST_DEVICES]
        for each in shown:
            # That nobody is made to leave for it goes without saying.
            why = each.landing.why.partition(" preemption:")[0]
            self.lines([f"  {each.namespace}/{each.name}: {why}"])
            self.lines(_spoken(each.landing))
        self._more(len(found) - len(shown), "pod")

    def _more(self, left: int, thing: str) -> None:
        if left > 0:
            self.lines([f"and {number(left, f'more {thing}')}; -o wide shows all"])


def _device(told: "DeviceTold") -> list[str]:
    # Who sets it stands above the table.
    gains = (each.partition(" ")[0] for each in told.gains)
    loses = (each.partition(" ")[0] for each in told.loses)
    changes = [*(f"+{each}" for each in gains), *(f"-{each}" for each in loses)]
    return [
        told.device,
        told.node or "-",
        ", ".join([*changes, *told.changes]),
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
    # Times of taints are whole seconds, so what is a fraction short is meant in full.
    return span(ceil(seconds)) if seconds >= 1 else "at once"


def _fate(landing: "Landing") -> Cell:
    from sully.domain.planning.report import Fate

    match landing.fate:
        case Fate.LANDS:
            return Cell(f"lands on {landing.node}", "green")
        case Fate.PENDING:
            return Cell("no place", "red")
        case Fate.RETURNS:
            return Cell(f"lands on {landing.node}, leaves again", "red")
        case Fate.LOST:
            return Cell("not replaced", "red")


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

    one = {
        Fate.LANDS: "lands",
        Fate.PENDING: "finds no place",
        Fate.RETURNS: "leaves again",
        Fate.LOST: "not replaced",
    }
    several = one | {
        Fate.LANDS: "land",
        Fate.PENDING: "find no place",
        Fate.RETURNS: "leave again",
    }
    nodes = group.nodes
    where = ""
    if nodes:
        where = f" on {', '.join(nodes[:3])}" + (f" and {len(nodes) - 3} more" if nodes[3:] else "")
    texts = [
        f"{count} {(one if count == 1 else several)[fate]}{where if fate is Fate.LANDS else ''}"
        for fate, count in group.fates.items()
    ]
    return Cell(", ".join(texts), "green" if set(group.fates) == {Fate.LANDS} else "red")


def _class(told: "ClassTold") -> list[str]:
    return [
        told.name,
        str(told.devices),
        _from_to(told.tainted_before, told.tainted_after),
        _from_to(told.used_before, told.used_after),
        _from_to(told.free_before, told.free_after),
    ]


def _from_to(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} -> {after}"


def _spoken(landing: "Landing") -> Iterator[str]:
    """Say which taints and holders kept how many devices from it."""
    account = landing.account
    for asked in account.requests if account is not None else ():
        parts = [f"{asked.available} available"]
        parts += [
            f"{count} {_words(why)}" for why, count in asked.refused.items() if why != "taint"
        ]
        parts += [
            f"{each.devices} tainted {each.key}:{each.effect} by {each.origin}"
            + (", no longer tolerated" if each.lapsed else "")
            for each in asked.taints
        ]
        yield f"    request {asked.request} wants {asked.wanted}: {', '.join(parts)}"


def _words(name: str) -> str:
    """Write a name such as `inUse` as people do."""
    return "".join(f" {each.lower()}" if each.isupper() else each for each in name)
